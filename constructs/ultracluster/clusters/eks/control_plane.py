"""The EKS control plane that HyperPod on EKS and EKS without HyperPod share (EKS User Guide, "Clusters")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

import jsii
from aws_cdk import CfnResource, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
from constructs import Construct, IConstruct

from ultracluster.clusters.cluster import ClusterConstruct
from ultracluster.clusters.eks.addons import pinned_addon
from ultracluster.clusters.eks.capabilities import add_capabilities
from ultracluster.clusters.eks.interface import IEksControlPlane, ImportedControlPlane, arn_of
from ultracluster.clusters.eks.kubectl import Kubectl, handler_role, provider_of, write_out
from ultracluster.clusters.eks.logs import control_plane_logs
from ultracluster.clusters.eks.roles import addon_role, allow_interfaces, control_plane_role
from ultracluster.clusters.given import control_plane_subnets_of, nodes_groups
from ultracluster.clusters.settings import EksSettings
from ultracluster.config.findings import Finding
from ultracluster.config.kubernetes import Eks, HyperPodEks, PublicEndpoint
from ultracluster.config.remedy import ask
from ultracluster.guard import report, report_findings, settings_of, unique_name
from ultracluster.guard.objects import HoldsSecurityGroup, take_objects
from ultracluster.kubernetes.charts import Chart
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.security.cluster_key import ClusterKey, allow_use

ALL_LOGS = [
    eks.ClusterLoggingTypes.API,
    eks.ClusterLoggingTypes.AUDIT,
    eks.ClusterLoggingTypes.AUTHENTICATOR,
    eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
    eks.ClusterLoggingTypes.SCHEDULER,
]


@jsii.implements(ec2.IConnectable)
class EksControlPlane(Construct):
    """A Kubernetes control plane with add-ons, access entries, and a way to apply charts and manifests.

    Its API answers within the VPC only, unless asked otherwise; all its logs are kept in one encrypted log
    group, and secrets are encrypted with the key. Only the principals that are named, and the function that
    applies charts and manifests, may do anything in it. `DeletionProtection` protects it, once it is there;
    what runs on nodes (`EksAddons`) is not part of it, and `EksCluster` is the whole.

    Attributes:
        cluster: the CDK's own construct.
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        cluster_endpoint: address of the Kubernetes API.
        cluster_certificate_authority_data: what the API's certificate is signed with, base64.
        issuer_url: who signs the tokens of service accounts.
        cluster_security_group_id: the group that EKS makes; nodes need not be in it.
        security_groups: those of the nodes; the control plane is in them.
        key: encrypts secrets and logs.
        kubectl_handler_arn: what `from_cluster_attributes` asks for in other stacks.
        before_nodes: what must be there before the first node, and nothing else must: the add-ons without
            which a node does not become ready.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet] | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        config: Eks | HyperPodEks | None = None,
        logs: bool = True,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **settings: Unpack[EksSettings],
    ) -> None:
        """Make the control plane.

        Args:
            vpc: the VPC.
            subnets: private subnets in two zones or more, each with 16 free addresses, and a way to AWS and
                to chart repositories; by default the private subnets of the VPC.
            security_groups: the nodes' own groups, the first of which lets everything in from itself: the
                control plane and the function that applies manifests are in them, too, so that no further
                rule is needed. One for EFA is made by default.
            key: encrypts secrets and logs; made by default.
            cluster_name: unique in account and Region, by default from the construct's path, and known at
                synth; a new name is a new cluster.
            config: releases, endpoint, people, options as a model, instead of by keyword; by default the
                keywords say them.
            logs: with the log group; False where `control_plane_logs` made it in another stack. EKS makes it
                again, without the key, when it goes with the control plane, and a second try then fails. By
                default True.
            removal_policy: of the log group; by default it is destroyed.
            settings: fields of `Eks`: `kubernetes_version`, `admins`, `endpoint` and others.

        Raises:
            ValueError: what is given contradicts itself, or has the wrong shape.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        subnets = control_plane_subnets_of(self, subnets, vpc)
        if config is None or settings:
            config = settings_of(Eks, cast("Eks | None", config), settings, construct="EksControlPlane")
        if not isinstance(scope, ClusterConstruct):  # which judged all of it
            report(self, config)
        if len({subnet.subnet_id for subnet in subnets}) < 2:
            report_findings(self, [_ONE_SUBNET])
        self._config = config
        self.cluster_name = cluster_name = cluster_name or config.cluster_name or unique_name(self)
        self.kubernetes_version, self.service_cidr = config.kubernetes_version, config.service_cidr
        self.security_groups = nodes_groups(self, security_groups, vpc)
        self._connections = ec2.Connections(security_groups=self.security_groups)
        self.key = key = ClusterKey.of(self, key)
        if logs:
            allow_use(self, key, "logs")
            control_plane_logs(
                self,
                "Logs",
                cluster_name=cluster_name,
                key=key,
                days=config.log_retention_days,
                removal_policy=removal_policy,
            )
        self.cluster = self._add_cluster(vpc, subnets)
        resource = cast("CfnResource", self.cluster.node.default_child)
        resource.node.add_dependency(self.node.find_child("Role"))
        if logs:  # else EKS makes the group, and does not encrypt it
            resource.node.add_dependency(self.node.find_child("Logs"))
        # what it applies reaches the API through the group's own rules, and the internet through its routes
        resource.node.add_dependency(*self.security_groups)
        for subnet in subnets:
            resource.node.add_dependency(subnet.internet_connectivity_established)
        self.cluster_arn = self.cluster.cluster_arn
        self.cluster_endpoint = self.cluster.cluster_endpoint
        self.cluster_certificate_authority_data = self.cluster.cluster_certificate_authority_data
        self.issuer_url: str | None = self.cluster.cluster_open_id_connect_issuer_url
        self.cluster_security_group_id = self.cluster.cluster_security_group_id
        self.kubectl_handler_arn = provider_of(self.cluster).service_token
        self.kubectl = Kubectl(self, cast("eks.ICluster", self.cluster))
        for number, principal in enumerate(config.admins, start=1):
            self.cluster.grant_cluster_admin(f"Admin{number}", principal)
        self.before_nodes: list[IConstruct] = self._node_addons(vpc)
        add_capabilities(self, config.capabilities, cluster_name=self.cluster.cluster_name)

    def _add_cluster(self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> eks.Cluster:
        """Add the CDK's cluster, with roles whose policies are written out here."""
        config, endpoint = self._config, self._config.endpoint
        arn = arn_of(self, self.cluster_name)
        role = handler_role(self, "HandlerRole", cluster_arn=arn)
        # the CDK's grants would be wider
        narrow = role.without_policy_updates()
        cluster = eks.Cluster(
            self,
            "Resource",
            cluster_name=self.cluster_name,
            version=eks.KubernetesVersion.of(config.kubernetes_version),
            role=control_plane_role(self, "Role", cluster_arn=arn, key=self.key).without_policy_updates(),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            security_group=self.security_groups[0],
            endpoint_access=(
                eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*endpoint.cidrs)
                if isinstance(endpoint, PublicEndpoint)
                else eks.EndpointAccess.PRIVATE
            ),
            secrets_encryption_key=self.key,
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
                kubectl_layer=KubectlV35Layer(self, "Kubectl"),
                role=narrow,
                security_groups=self.security_groups,
            ),
        )
        write_out(cluster, self.key)
        # of a policy that the CDK would have attached to the handler's role; without it nothing is left over
        self.node.try_remove_child("HasEcrPublic")
        resource = cast("CfnResource", cluster.node.default_child)
        resource.add_property_override("UpgradePolicy.SupportType", config.support.upper())
        if len(self.security_groups) > 1:  # the CDK's construct takes one
            resource.add_property_override(
                "ResourcesVpcConfig.SecurityGroupIds",
                [group.security_group_id for group in self.security_groups],
            )
        return cluster

    @staticmethod
    def from_cluster_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        kubectl_handler_arn: str,
        kubernetes_version: str,
        cluster_endpoint: str = "",
        cluster_certificate_authority_data: str = "",
        cluster_arn: str | None = None,
        service_cidr: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | HoldsSecurityGroup] = (),
        key: kms.IKey | ClusterKey | None = None,
        issuer_url: str | None = None,
    ) -> IEksControlPlane:
        """A control plane of another stack.

        Args:
            cluster_name: known at synth.
            kubectl_handler_arn: `EksControlPlane.kubectl_handler_arn`, or the handler of the CDK's own
                `Cluster`: the service token of its `KubectlProvider`.
            kubernetes_version: release, as `1.36`.
            cluster_endpoint: address of the API; only for nodes on images of one's own; by default none.
            cluster_certificate_authority_data: base64; only for those, too; by default none.
            cluster_arn: its ARN, by default in this account and Region.
            service_cidr: of Kubernetes services; only for those, too; by default none.
            security_groups: of its nodes; each lets everything in from, and out to, itself; by default none.
            key: what nodes' volumes are encrypted with by default.
            issuer_url: of its tokens, with `https://`; only for HyperPod's inference operator; by default
                none.
        """
        return ImportedControlPlane(scope, construct_id, locals())

    @property
    def connections(self) -> ec2.Connections:
        """Of control plane and nodes."""
        return self._connections

    def add_manifest(self, construct_id: str, *objects: Mapping[str, Any]) -> eks.KubernetesManifest:
        """Apply Kubernetes objects; see `Kubectl.add_manifest`."""
        return self.kubectl.add_manifest(construct_id, *objects)

    def add_chart(self, construct_id: str, chart: Chart, *, wait: bool = False) -> eks.HelmChart:
        """Install a chart; see `Kubectl.add_chart`."""
        return self.kubectl.add_chart(construct_id, chart, wait=wait)

    def _node_addons(self, vpc: ec2.IVpc) -> list[IConstruct]:
        """The three wait for each other on a node, where they all are; EKS takes them in any order
        (terraform-aws-modules/terraform-aws-eks#3260)."""
        interfaces = addon_role(
            self, "VpcCniRole", cluster_arn=arn_of(self, self.cluster_name), addon="vpc-cni"
        )
        allow_interfaces(interfaces, vpc=vpc)
        # by default a node keeps one whole interface's addresses in stock, up to fifty
        values: dict[str, Any] = {"env": {"MINIMUM_IP_TARGET": "12", "WARM_IP_TARGET": "4"}}
        if self._config.network_policies:
            # else policies are accepted and not enforced (EKS User Guide, Restrict Pod network traffic with
            # Kubernetes network policies). What enforces them is a container of the same pod in any case
            values["enableNetworkPolicy"] = "true"
        return [
            self._addon("eks-pod-identity-agent"),
            self._addon("vpc-cni", accounts={"aws-node": interfaces}, values=values),
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


_ONE_SUBNET = Finding(
    code="EKS002",
    severity="error",
    path=("control_plane_subnets",),
    message="EKS requires subnets in two zones or more for the control plane, and this is less than two.",
    remedy=ask("fact", "private subnets in two zones, such as vpc.private_subnets of a VPC with max_azs=2"),
)
"""In the words of the rule; a construct is told objects, which the rule does not see."""

_TIERS = {
    "standard": None,
    "xl": eks.ControlPlaneScalingTier.TIER_XL,
    "2xl": eks.ControlPlaneScalingTier.TIER_2_XL,
    "4xl": eks.ControlPlaneScalingTier.TIER_4_XL,
    "8xl": eks.ControlPlaneScalingTier.TIER_8_XL,
}
