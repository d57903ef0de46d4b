"""The EKS control plane that HyperPod on EKS and EKS alone share (EKS User Guide, "Clusters")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.addons import pinned_addon
from ultracluster.clusters.eks.capabilities import add_capabilities
from ultracluster.clusters.eks.kubectl import Kubectl, handler_role, provider_of, write_out
from ultracluster.clusters.eks.logs import control_plane_logs
from ultracluster.clusters.eks.roles import addon_role, allow_interfaces, control_plane_role
from ultracluster.config.kubernetes import Eks, HyperPodEks, PublicEndpoint
from ultracluster.kubernetes.charts import Chart

ALL_LOGS = [
    eks.ClusterLoggingTypes.API,
    eks.ClusterLoggingTypes.AUDIT,
    eks.ClusterLoggingTypes.AUTHENTICATOR,
    eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
    eks.ClusterLoggingTypes.SCHEDULER,
]


class EksControlPlane(Construct):
    """A Kubernetes control plane with add-ons, access entries, and a way to apply charts and manifests.

    Its API answers within the VPC only, unless asked otherwise; all its logs are kept in one encrypted log
    group, and secrets are encrypted with the key. Only the principals that are named, and the function that
    applies charts and manifests, may do anything in it. `DeletionProtection` protects it, once it is there;
    what runs on nodes (`EksAddons`) is not part of it.

    Attributes:
        cluster: the CDK's own construct.
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        cluster_security_group_id: the group that EKS makes; nodes need not be in it.
        handler_arn: what other stacks give to `existing_kubectl`.
        before_nodes: what must be there before the first node, and nothing else must: the add-ons without
            which a node does not become ready.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        config: Eks | HyperPodEks,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_group: ec2.ISecurityGroup,
        key: kms.IKey,
        logs: bool = True,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """Make the control plane.

        Args:
            cluster_name: unique in account and Region; a new name is a new cluster.
            config: releases, endpoint, people, options.
            vpc: the VPC.
            subnets: private subnets in two zones or more, each with 16 free addresses, and a way to AWS and
                to chart repositories.
            security_group: the nodes' own group, which lets everything in from itself: the control plane and
                the function that applies manifests are in it, too, so that no further rule is needed.
            key: encrypts secrets and logs.
            logs: with the log group; False where `control_plane_logs` made it in another stack. EKS makes it
                again, without the key, when it goes with the control plane, and a second try then fails.
            removal_policy: of the log group.
        """
        super().__init__(scope, construct_id)
        self._config = config
        self._key = key
        self.cluster_name = cluster_name
        log_group = (
            control_plane_logs(
                self,
                "Logs",
                cluster_name=cluster_name,
                key=key,
                days=config.log_retention_days,
                removal_policy=removal_policy,
            )
            if logs
            else None
        )
        arn = _arn(self, cluster_name)
        role = handler_role(self, "HandlerRole", cluster_arn=arn)
        # the CDK's grants would be wider
        narrow = role.without_policy_updates()
        endpoint = config.endpoint
        self.cluster = eks.Cluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            version=eks.KubernetesVersion.of(config.kubernetes_version),
            role=control_plane_role(self, "Role", key=key).without_policy_updates(),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            security_group=security_group,
            endpoint_access=(
                eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*endpoint.cidrs)
                if isinstance(endpoint, PublicEndpoint)
                else eks.EndpointAccess.PRIVATE
            ),
            secrets_encryption_key=key,
            cluster_logging=ALL_LOGS,
            service_ipv4_cidr=config.service_cidr,
            control_plane_scaling_tier=_TIERS[config.scaling_tier],
            # the default is Auto Mode
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            # add-ons are ours to pin, and so is who may do what
            bootstrap_self_managed_addons=False,
            bootstrap_cluster_creator_admin_permissions=False,
            output_config_command=False,
            prune=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=KubectlV35Layer(self, "Kubectl"), role=narrow, security_groups=[security_group]
            ),
        )
        write_out(self.cluster, key)
        # of a policy that the CDK would have attached to the handler's role; without it nothing is left over
        self.node.try_remove_child("HasEcrPublic")
        resource = cast("CfnResource", self.cluster.node.default_child)
        resource.add_property_override("UpgradePolicy.SupportType", config.support.upper())
        resource.node.add_dependency(self.node.find_child("Role"))
        if log_group:  # else EKS makes it, and does not encrypt it
            resource.node.add_dependency(log_group)
        self.cluster_arn = self.cluster.cluster_arn
        self.cluster_security_group_id = self.cluster.cluster_security_group_id
        self.handler_arn = provider_of(self.cluster).service_token
        self.kubectl = Kubectl(self, cast("eks.ICluster", self.cluster))
        for number, principal in enumerate(config.admins, start=1):
            self.cluster.grant_cluster_admin(f"Admin{number}", principal)
        self.before_nodes: list[IConstruct] = self._node_addons()
        add_capabilities(self, config.capabilities, cluster_name=self.cluster.cluster_name)

    def add_manifest(self, construct_id: str, *objects: Mapping[str, Any]) -> eks.KubernetesManifest:
        """Apply Kubernetes objects; see `Kubectl.add_manifest`."""
        return self.kubectl.add_manifest(construct_id, *objects)

    def add_chart(self, construct_id: str, chart: Chart, *, wait: bool = False) -> eks.HelmChart:
        """Install a chart; see `Kubectl.add_chart`."""
        return self.kubectl.add_chart(construct_id, chart, wait=wait)

    def _node_addons(self) -> list[IConstruct]:
        """The three wait for each other on a node, where they all are; EKS takes them in any order
        (terraform-aws-modules/terraform-aws-eks#3260)."""
        interfaces = addon_role(
            self, "VpcCniRole", cluster_arn=_arn(self, self.cluster_name), addon="vpc-cni"
        )
        allow_interfaces(interfaces)
        # by default a node keeps one whole interface's addresses in stock, up to fifty
        stock = {"env": {"MINIMUM_IP_TARGET": "12", "WARM_IP_TARGET": "4"}}
        return [
            self._addon("eks-pod-identity-agent"),
            self._addon("vpc-cni", accounts={"aws-node": interfaces}, values=stock),
            self._addon("kube-proxy"),
        ]

    def _addon(
        self,
        name: str,
        *,
        accounts: Mapping[str, iam.Role] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> eks_l1.CfnAddon:
        return pinned_addon(
            self,
            name,
            cluster_name=self.cluster.cluster_name,
            kubernetes_version=self._config.kubernetes_version,
            accounts=accounts,
            values=values,
        )


def _arn(scope: Construct, cluster_name: str) -> str:
    """Known before the cluster is, for roles that the cluster needs first."""
    return Stack.of(scope).format_arn(service="eks", resource="cluster", resource_name=cluster_name)


_TIERS = {
    "standard": None,
    "xl": eks.ControlPlaneScalingTier.TIER_XL,
    "2xl": eks.ControlPlaneScalingTier.TIER_2_XL,
    "4xl": eks.ControlPlaneScalingTier.TIER_4_XL,
    "8xl": eks.ControlPlaneScalingTier.TIER_8_XL,
}
