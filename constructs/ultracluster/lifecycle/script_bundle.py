"""The lifecycle scripts of one cluster in S3, for each group below a prefix that names their content."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import jsii
from aws_cdk import RemovalPolicy, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from ultracluster.guard.objects import HoldsBucket, plain_bucket, take_objects
from ultracluster.lifecycle.bundles import CONFIGURATION, Bundle, configuration_text
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.assets import allow_reading_assets
from ultracluster.security.cdk_tree import policy_of, singletons
from ultracluster.security.cluster_key import allow_use
from ultracluster.security.principals import trusted

MEMORY_MIB = 1024
"""Of the uploading function: it copies file by file, 100 groups have some 5000, and nodes wait for it."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


class ScriptBundle(Construct):
    """Uploads the scripts of each group and its `cluster.json` to `s3://<bucket>/<name>/<content hash>/`.

    A changed script is a changed prefix of the groups that run it, so a replaced node never runs an older one
    than its cluster asks for. Older prefixes stay, because nodes of a running update may still read them.
    One custom resource uploads for all groups.

    Attributes:
        prefixes: key prefix without slashes at its ends, by group.
        uris: the `s3://` URI of the prefix, by group.
        deployment: the upload.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket | HoldsBucket,
        name: str,
        bundles: Mapping[str, Bundle],
        others: Iterable[Bundle] = (),
        deployed_values: Mapping[str, Any] | None = None,
        role: iam.IRole | None = None,
    ) -> None:
        """Upload the scripts.

        Args:
            bucket: where to.
            name: first part of the prefixes.
            bundles: what the nodes of a group run, by group.
            others: what else is uploaded; by default none.
            deployed_values: what is known only after deploy (CDK tokens), e.g. DNS names; merged into each
                `cluster.json` at upload. By default none.
            role: from `upload_role`, of a stack that is deployed before; made here by default.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        bucket = plain_bucket(bucket)
        self.prefixes = {group: f"{name}/{bundle.folder}" for group, bundle in bundles.items()}
        self.uris = {group: f"s3://{bucket.bucket_name}/{prefix}" for group, prefix in self.prefixes.items()}
        archive = _Archive(self, [*bundles.values(), *others], deployed_values or {})
        log_group = logs.LogGroup(
            self,
            "Logs",
            encryption_key=bucket.encryption_key,
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        if bucket.encryption_key:
            allow_use(self, bucket.encryption_key, "logs")
        upload_role = None if role else self._upload_role(bucket, name, archive.asset.bucket, log_group)
        self.deployment = deployment.BucketDeployment(
            self,
            "Resource",
            sources=[cast("deployment.ISource", archive)],
            destination_bucket=bucket,
            destination_key_prefix=name,
            prune=False,
            retain_on_delete=True,
            # the CDK's grants would be wider: deleting, and any prefix
            role=upload_role.without_policy_updates() if upload_role else role,
            memory_limit=MEMORY_MIB,
            log_group=log_group,
        )
        if upload_role:
            self.deployment.node.add_dependency(policy_of(upload_role))
        for function in singletons(Stack.of(self), "Custom::CDKBucketDeployment"):
            acknowledge(function, {"AwsSolutions-L1": RUNTIME})

    def _upload_role(
        self, bucket: s3.IBucket, name: str, assets_bucket: s3.IBucket, log_group: logs.ILogGroup
    ) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=trusted(self, "lambda.amazonaws.com"),
            description="Uploads lifecycle scripts",
        )
        target = bucket.arn_for_objects(f"{name}/*")
        for sid, actions, resources in (
            ("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn]),
            ("FindScripts", ["s3:ListBucket"], [bucket.bucket_arn]),
            ("WriteScripts", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], [target]),
        ):
            role.add_to_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
        allow_reading_assets(role, assets_bucket.bucket_arn, "*")
        if bucket.encryption_key:
            role.add_to_policy(
                iam.PolicyStatement(
                    sid="UseKey",
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=[bucket.encryption_key.key_arn],
                )
            )
        acknowledge(
            role,
            {
                wildcard(self, log_group.log_group_arn): "All streams of one log group.",
                wildcard(self, target): "The folders of this cluster's scripts only.",
            },
        )
        return role


@jsii.implements(deployment.ISource)
class _Archive:
    """All folders in one archive, with marks that the CDK's function replaces by deployed values."""

    def __init__(self, scope: Construct, bundles: Iterable[Bundle], values: Mapping[str, Any]) -> None:
        self._markers: dict[str, str] = {}
        marked = self._marked(dict(values))
        content: dict[str, bytes] = {}
        for bundle in bundles:
            content |= {f"{bundle.folder}/{path}": data for path, data in bundle.files.items()}
            if bundle.configuration is not None:
                text = configuration_text(_merged(bundle.configuration, marked))
                content[f"{bundle.folder}/{CONFIGURATION}"] = text
        with tempfile.TemporaryDirectory() as folder:  # the CDK copies it at once
            file = Path(folder) / "scripts.zip"
            file.write_bytes(_zipped(content))
            self.asset = assets.Asset(scope, "Files", path=str(file))

    def bind(self, scope: Construct, *, handler_role: iam.IRole) -> deployment.SourceConfig:
        """What the CDK's upload asks of a source; the role has its rights from us."""
        return deployment.SourceConfig(
            bucket=self.asset.bucket, zip_object_key=self.asset.s3_object_key, markers=self._markers
        )

    def _marked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._marked(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, str) and Token.is_unresolved(value):
            marker = f"<<marker:0xbaba:{len(self._markers)}>>"  # as the CDK's own sources write them
            self._markers[marker] = value
            return marker
        return value


def _merged(base: Mapping[str, Any], deployed: Mapping[str, Any]) -> dict[str, Any]:
    """What is known at synth with what is deployed: an object in both has the keys of both."""
    merged = {**base, **deployed}
    for key in base.keys() & deployed.keys():
        if isinstance(base[key], Mapping) and isinstance(deployed[key], Mapping):
            merged[key] = {**base[key], **deployed[key]}
    return merged


def _zipped(content: Mapping[str, bytes]) -> bytes:
    """An archive whose bytes depend on the content only; compressed it would depend on the zlib at hand."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content[name])
    return data.getvalue()


RUNTIME = "The runtime of the CDK's own upload function is chosen by the CDK release."
