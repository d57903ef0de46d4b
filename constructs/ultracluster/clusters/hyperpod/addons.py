"""HyperPod's add-ons of EKS: task governance, training operator, observability, inference, spaces, certs.

Their pods get roles through EKS Pod Identity, written out instead of AWS's managed policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.hyperpod_addon import hyperpod_addon
from ultracluster.clusters.eks.roles import addon_role
from ultracluster.clusters.hyperpod.inference import InferenceParts, volumes_driver
from ultracluster.clusters.hyperpod.spaces import SpacesRoles
from ultracluster.config.hyperpod_spaces import HyperPodSpaces
from ultracluster.config.kubernetes import HyperPodAddon, HyperPodEks
from ultracluster.kubernetes.hyperpod_eks import NAMESPACE
from ultracluster.kubernetes.spaces import space_values
from ultracluster.observability.hyperpod import COLLECTOR, addon_values, allow_collecting
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.acknowledgements import acknowledge

SPACES: HyperPodAddon = "amazon-sagemaker-spaces"


class HyperPodAddons(Construct):
    """The add-ons that are asked for, each pinned. They run on system nodes, once HyperPod's nodes are there;
    training operator and inference need `cert_manager` before.

    Attributes:
        addons: by name.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: HyperPodEks,
        cluster_name: str,
        eks_cluster_arn: str,
        hyperpod_cluster_arn: str,
        metrics: MetricsDestination | None = None,
        issuer_url: str | None = None,
        vpc: ec2.IVpc | None = None,
        workspace_arn: str | None = None,
        governance: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
        after: Sequence[IConstruct] = (),
    ) -> None:
        """Add them.

        Args:
            config: which ones, and their versions.
            cluster_name: name of the EKS cluster.
            eks_cluster_arn: its ARN, in which roles may be used.
            hyperpod_cluster_arn: what the training operator may look at, and inference runs on.
            metrics: where the observability add-on writes, which is added then; by default `config` says.
            issuer_url: of the EKS cluster's tokens, with `https://`; inference needs it.
            vpc: the cluster's, to which inference's rights on interfaces and security groups are kept; by
                default any.
            workspace_arn: Prometheus workspace that inference's autoscaler may ask, besides that of the
                observability add-on; by default none.
            governance: policy and quotas of task governance, of `governance_resources`; by default none.
            after: what must be there first, in the same stack: the HyperPod cluster, cert-manager.
        """
        super().__init__(scope, construct_id)
        self._config = config
        self._cluster_name = cluster_name
        self._eks_cluster_arn = eks_cluster_arn
        self._after = after
        self.addons: dict[str, eks.CfnAddon] = {}
        if config.task_governance:
            addon = self._add("amazon-sagemaker-hyperpod-taskgovernance")
            self._governance(governance or {}, hyperpod_cluster_arn, addon)
        if config.training_operator:
            self._training_operator(hyperpod_cluster_arn)
        if config.observability:
            metrics = MetricsDestination.of(config.observability.workspace_arn)
        if metrics:
            self._observability(metrics)
        if config.inference:
            workspace_arns = (workspace_arn, metrics.workspace_arn if metrics else None)
            workspaces = tuple(dict.fromkeys(arn for arn in workspace_arns if arn))
            self._inference(hyperpod_cluster_arn, issuer_url, vpc, workspaces)
        elif config.mountpoint_s3:
            # where the operator would have it: it stays when the operator comes or goes
            driver = volumes_driver(Construct(self, "Inference"), config=config, cluster_name=cluster_name)
            driver.node.add_dependency(*after)
        if config.spaces:
            self._spaces(config.spaces)

    def _governance(
        self,
        resources: Mapping[str, tuple[str, Mapping[str, Any]]],
        hyperpod_cluster_arn: str,
        addon: eks.CfnAddon,
    ) -> None:
        """Policy and quotas, which HyperPod writes for the add-on's Kueue."""
        for name, (kind, properties) in resources.items():
            resource = CfnResource(
                self, name, type=kind, properties={"ClusterArn": hyperpod_cluster_arn, **properties}
            )
            resource.node.add_dependency(addon)
            # cfn-lint's schema judges the properties
            acknowledge(
                resource,
                {
                    "CloudFormation-Validate::F3006": f"CloudFormation and cfn-lint 1.58.0 have {kind}; the "
                    "schemas inside the CDK (2.275.0) do not yet."
                },
            )

    def _training_operator(self, hyperpod_cluster_arn: str) -> None:
        name = "amazon-sagemaker-hyperpod-training-operator"
        role = addon_role(self, "TrainingOperatorRole", cluster_arn=self._eks_cluster_arn, addon=name)
        role.add_to_policy(
            iam.PolicyStatement(
                sid="SeeNodes", actions=["sagemaker:DescribeClusterNode"], resources=[hyperpod_cluster_arn]
            )
        )
        # the add-on refuses an association of its own (awslabs/awsome-distributed-ai#1075)
        identity = eks.CfnPodIdentityAssociation(
            self,
            "TrainingOperatorIdentity",
            cluster_name=self._cluster_name,
            namespace=NAMESPACE,
            service_account="hp-training-operator-controller-manager",
            role_arn=role.role_arn,
        )
        addon = self._add(name)
        addon.node.add_dependency(identity)

    def _observability(self, metrics: MetricsDestination) -> None:
        name = "amazon-sagemaker-hyperpod-observability"
        role = addon_role(self, "ObservabilityRole", cluster_arn=self._eks_cluster_arn, addon=name)
        allow_collecting(role, workspace_arn=metrics.workspace_arn)
        self._add(name, values=addon_values(metrics), identities={COLLECTOR: role})

    def _inference(
        self,
        hyperpod_cluster_arn: str,
        issuer_url: str | None,
        vpc: ec2.IVpc | None,
        workspace_arns: Sequence[str],
    ) -> None:
        if issuer_url is None:
            raise ValueError(
                "HyperPodAddons: the inference operator's roles name the issuer of tokens: issuer_url="
            )
        parts = InferenceParts(
            self,
            "Inference",
            config=self._config,
            cluster_name=self._cluster_name,
            hyperpod_cluster_arn=hyperpod_cluster_arn,
            issuer_url=issuer_url,
            vpc=vpc,
            workspace_arns=workspace_arns,
            after=self._after,
        )
        addon = self._add("amazon-sagemaker-hyperpod-inference", values=parts.values)
        for dependency in parts.first:
            addon.node.add_dependency(dependency)

    def _spaces(self, settings: HyperPodSpaces) -> None:
        roles = SpacesRoles(self, "SpacesRoles", wanted=settings, eks_cluster_arn=self._eks_cluster_arn)
        values = space_values(settings, ssm_role_arn=roles.ssm.role_arn if roles.ssm else None)
        self._add(SPACES, values=values, identities=roles.identities)

    def _add(
        self,
        name: HyperPodAddon,
        *,
        values: dict[str, Any] | None = None,
        identities: dict[str, iam.Role] | None = None,
    ) -> eks.CfnAddon:
        addon = hyperpod_addon(self, self._config, name, self._cluster_name)
        addon.configuration_values = Stack.of(self).to_json_string(values) if values else None
        addon.pod_identity_associations = [
            eks.CfnAddon.PodIdentityAssociationProperty(service_account=account, role_arn=role.role_arn)
            for account, role in (identities or {}).items()
        ] or None
        for dependency in (*self._after, *(identities or {}).values()):
            addon.node.add_dependency(dependency)
        self.addons[name] = addon
        return addon
