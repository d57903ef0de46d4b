"""HyperPod's inference operator: its roles, its bucket, the add-ons before it, and the add-on's values.

SageMaker Developer Guide, "Setting up your HyperPod clusters for model deployment".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.addons import S3_DRIVER_VALUES, s3_driver
from ultracluster.clusters.eks.roles import ANY, DESCRIBES
from ultracluster.clusters.eks.web_identity import WebIdentity
from ultracluster.config.hyperpod_eks import HyperPodInference
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.storage import JobBucket
from ultracluster.model.inference import (
    NAMESPACE,
    S3_DRIVER,
    addon_version,
    inference_has,
    operator_role_name,
)
from ultracluster.security.acknowledgements import acknowledge, wildcard
from ultracluster.storage.buckets import CertificateBucket

METRICS = "metrics-server"


def volumes_driver(scope: Construct, *, config: HyperPodEks, cluster_name: str) -> eks.CfnAddon:
    """The driver of the volumes of `mountpoint_s3`, which reads buckets of models, too."""
    models = config.inference.model_buckets if config.inference else ()
    driver = s3_driver(
        scope,
        cluster_name=cluster_name,
        kubernetes_version=config.kubernetes_version,
        buckets=[*config.mountpoint_s3.values(), *(JobBucket(bucket=name) for name in models)],
    )
    driver.addon_version = addon_version(config, S3_DRIVER)
    return driver


class InferenceParts(Construct):
    """What the add-on requires, as far as it was not made elsewhere.

    Attributes:
        values: configuration values of the add-on.
        first: what must be there before it.
        roles: those that were made, by `operator`, `load_balancer`, `autoscaler`, `gateway`, `reader`.
        bucket: of certificates, where it was made.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: HyperPodEks,
        cluster_name: str,
        hyperpod_cluster_arn: str,
        issuer_url: str,
        vpc: ec2.IVpc | None = None,
        workspace_arns: Sequence[str] = (),
        after: Sequence[IConstruct] = (),
    ) -> None:
        """Make them.

        Args:
            config: with `inference`.
            cluster_name: name of the EKS cluster.
            hyperpod_cluster_arn: what endpoints are served from.
            issuer_url: of the EKS cluster's tokens, with `https://`.
            vpc: the cluster's, to which rights on interfaces and security groups are kept; by default any.
            workspace_arns: Prometheus workspaces that the autoscaler may ask; none by default.
            after: what must be there before add-ons.
        """
        super().__init__(scope, construct_id)
        assert config.inference, "only where the operator is asked for"
        self._config, self._wanted = config, config.inference
        self._cluster_name, self._after = cluster_name, after
        self.roles: dict[str, iam.Role] = {}
        self.bucket: s3.Bucket | None = None
        if self._wanted.certificate_bucket is None:
            self.bucket = CertificateBucket(self, "Certificates").bucket
        self._bucket = self.bucket.bucket_name if self.bucket else str(self._wanted.certificate_bucket)
        self._hyperpod_cluster_arn = hyperpod_cluster_arn
        self._issuer_url = issuer_url
        self._vpc = vpc
        self._each = {"each_model_bucket": self._wanted.model_buckets, "each_workspace": workspace_arns}
        self._identity: WebIdentity | None = None
        self.values = self._values(self._wanted)
        self.first: list[IConstruct] = [
            self._reader(),
            self._addon(METRICS, {}),
            *self.roles.values(),
        ]

    def _values(self, settings: HyperPodInference) -> dict[str, Any]:
        values: dict[str, Any] = {
            "executionRoleArn": self._arn("operator", settings.execution_role_arn),
            "tlsCertificateS3Bucket": self._bucket,
            "hyperpodClusterArn": self._hyperpod_cluster_arn,
            "alb": {"enabled": False},
            "keda": {"enabled": False},
        }
        if settings.load_balancer_controller:
            role = self._arn("load_balancer", settings.load_balancer_role_arn)
            values["alb"] = {"enabled": True, "serviceAccount": {"create": True, "roleArn": role}}
        if settings.autoscaler:
            role = self._arn("autoscaler", settings.autoscaler_role_arn)
            values["keda"] = {
                "enabled": True,
                "auth": {"aws": {"irsa": {"enabled": True, "roleArn": role}}},
            }
        if inference_has(self._config, "gateway"):
            # on by default, and then its controller does not start without a role
            values["inferenceGateway"] = {"enabled": False}
            if settings.gateway:
                account = {"roleArn": self._arn("gateway", settings.gateway_role_arn)}
                values["inferenceGateway"] = {"enabled": True, "serviceAccount": account}
        return values

    def _reader(self) -> eks.CfnAddon:
        """One driver for models and for the volumes of jobs, which then share its role."""
        settings = self._wanted
        if self._config.mountpoint_s3:
            driver = volumes_driver(self, config=self._config, cluster_name=self._cluster_name)
            driver.node.add_dependency(*self._after)
            return driver
        named = settings.model_buckets or settings.model_reader_role_arn
        role = self._arn("reader", settings.model_reader_role_arn) if named else None
        return self._addon(S3_DRIVER, S3_DRIVER_VALUES, role=role)

    def _arn(self, part: str, arn: str | None) -> str:
        return str(arn) if arn else self._role(part).role_arn

    def _role(self, part: str) -> iam.Role:
        row, stack = _rights()[part], Stack.of(self)
        name = operator_role_name(self._cluster_name, stack.region) if part == "operator" else None
        role = self._web_identity().role(
            self,
            f"{part.title().replace('_', '')}Role",
            namespace=row.get("namespace", NAMESPACE),
            account=row["account"],
            of=f"HyperPod inference: {row['account']}",
            name=name,
            service="sagemaker.amazonaws.com" if part == "operator" else None,
        )
        accepted = {ANY: DESCRIBES}
        for statement in row["statements"]:
            resources = list(self._resources(statement["resources"], role_name=name or ""))
            if not resources:
                continue
            role.add_to_policy(
                iam.PolicyStatement(
                    sid=statement["sid"],
                    actions=statement["actions"],
                    resources=resources,
                    conditions=_filled(statement.get("conditions", {}), self._known(name or "")),
                )
            )
            if "why" in statement:
                accepted |= {wildcard(self, arn): statement["why"] for arn in resources if "*" in arn}
        acknowledge(role, accepted)
        self.roles[part] = role
        return role

    def _web_identity(self) -> WebIdentity:
        """Whoever has made the operator's role has made the identity provider that its trust names."""
        if self._identity is None:
            if self._wanted.execution_role_arn:
                self._identity = WebIdentity.there(self, issuer_url=self._issuer_url)
            else:
                self._identity = WebIdentity.made(self, "IdentityProvider", issuer_url=self._issuer_url)
        return self._identity

    def _resources(self, patterns: Sequence[str], *, role_name: str) -> Iterator[str]:
        values = self._known(role_name)
        for pattern in patterns:
            several = next((word for word in self._each if f"{{{word}}}" in pattern), None)
            if several is None:
                yield pattern.format_map(_Here(values))
                continue
            for item in self._each[several]:
                yield pattern.format_map(_Here(values, **{several: item}))

    def _known(self, role_name: str) -> dict[str, str]:
        stack = Stack.of(self)
        return {
            "partition": stack.partition,
            "region": stack.region,
            "account": stack.account,
            "bucket": self._bucket,
            "cluster": self._cluster_name,
            "hyperpod_cluster": self._hyperpod_cluster_arn,
            "role_name": role_name,
            # a shared VPC is another account's; ids are unique in all of them
            "vpc": stack.format_arn(
                service="ec2",
                account="*",
                resource="vpc",
                resource_name=self._vpc.vpc_id if self._vpc else "*",
            ),
        }

    def _addon(self, name: Any, values: Mapping[str, Any], *, role: str | None = None) -> eks.CfnAddon:
        addon = eks.CfnAddon(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            addon_name=name,
            addon_version=addon_version(self._config, name),
            cluster_name=self._cluster_name,
            resolve_conflicts="OVERWRITE",
            configuration_values=json.dumps(values, sort_keys=True) if values else None,
            service_account_role_arn=role,
        )
        for dependency in (*self._after, *self.roles.values()):
            addon.node.add_dependency(dependency)
        return addon


class _Here(dict[str, str]):
    """Words for the braces of `inference_rights.json`; of a service, its ARNs of this account and Region."""

    def __missing__(self, service: str) -> str:
        return "arn:{partition}:{service}:{region}:{account}".format(**self, service=service)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """The same with its braces filled in."""
    if isinstance(value, str):
        return value.format_map(_Here(values))
    if isinstance(value, list):
        return [_filled(item, values) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return {key: _filled(item, values) for key, item in value.items()}


@cache
def _rights() -> Mapping[str, Any]:
    return json.loads(Path(__file__).with_name("inference_rights.json").read_text(encoding="utf-8"))
