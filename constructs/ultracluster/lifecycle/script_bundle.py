"""The lifecycle scripts of one cluster in S3, below a prefix that names their content."""

from __future__ import annotations

from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from ultracluster.lifecycle.scripts import CONFIGURATION, content_hash, not_uploaded, scripts_folder
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.security.principals import service


class ScriptBundle(Construct):
    """Uploads the scripts and `cluster.json` to `s3://<bucket>/<name>/<content hash>/`.

    A changed script is a changed prefix, so a replaced node never runs an older one than its cluster
    asks for. Older prefixes stay, because nodes of a running update may still read them.

    Attributes:
        prefix: key prefix without slashes at its ends.
        uri: the `s3://` URI of the prefix.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket,
        name: str,
        configuration: dict[str, Any],
        deployed_values: dict[str, Any] | None = None,
        role: iam.IRole | None = None,
    ) -> None:
        """Upload the scripts.

        Args:
            bucket: where to.
            name: first part of the prefix.
            configuration: what the scripts must know, all known at synth; part of the content hash.
            deployed_values: what is known only after deploy (CDK tokens), e.g. DNS names; merged into
                `cluster.json` at upload.
            role: from `upload_role`, of a stack that is deployed before; made here by default.
        """
        super().__init__(scope, construct_id)
        folder = scripts_folder()
        self.prefix = f"{name}/{content_hash(folder, configuration)}"
        self.uri = f"s3://{bucket.bucket_name}/{self.prefix}"
        scripts = assets.Asset(self, "Files", path=str(folder), exclude=not_uploaded(folder))
        log_group = logs.LogGroup(
            self,
            "Logs",
            encryption_key=bucket.encryption_key,
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        made = None if role else self._upload_role(bucket, scripts.bucket, log_group)
        self.deployment = deployment.BucketDeployment(
            self,
            "Resource",
            sources=[
                deployment.Source.bucket(scripts.bucket, scripts.s3_object_key),
                deployment.Source.json_data(CONFIGURATION, configuration | (deployed_values or {})),
            ],
            destination_bucket=bucket,
            destination_key_prefix=self.prefix,
            prune=False,
            retain_on_delete=True,
            # the CDK's grants would be wider: deleting, and any prefix
            role=made.without_policy_updates() if made else role,
            memory_limit=256,
            log_group=log_group,
        )
        if made:
            self.deployment.node.add_dependency(made.node.find_child("DefaultPolicy"))
        for function in Stack.of(self).node.children:
            if function.node.id.startswith("Custom::CDKBucketDeployment"):
                acknowledge(function, {"AwsSolutions-L1": RUNTIME})

    def _upload_role(
        self, bucket: s3.IBucket, assets_bucket: s3.IBucket, log_group: logs.ILogGroup
    ) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=service("lambda.amazonaws.com"),
            description="Uploads lifecycle scripts",
        )
        source = assets_bucket.arn_for_objects("*")
        target = bucket.arn_for_objects(f"{self.prefix}/*")
        for sid, actions, resources in (
            ("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn]),
            ("ReadAssets", ["s3:GetObject"], [source]),
            ("FindScripts", ["s3:ListBucket"], [bucket.bucket_arn]),
            ("WriteScripts", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], [target]),
        ):
            role.add_to_policy(iam.PolicyStatement(sid=sid, actions=actions, resources=resources))
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
                wildcard(self, source): "The CDK names its assets by hash; read-only.",
                wildcard(self, target): "The folder of this content hash only.",
            },
        )
        return role


RUNTIME = "The runtime of the CDK's own upload function is chosen by the CDK release."
