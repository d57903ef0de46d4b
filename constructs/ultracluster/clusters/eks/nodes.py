"""Managed node groups of EKS.

EKS User Guide, "Managed node groups", "Customize managed nodes with launch templates".

On the L1, because the L2 rejects the hyphenated families, and gives some accelerated types an image without a
driver (aws/aws-cdk#27587, #31347); the instance type is only in the launch template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.catalog import InstanceType
from ultracluster.catalog.eks import ami_type
from ultracluster.clusters.eks.block_start import fill_when_block_begins
from ultracluster.clusters.eks.interface import IEksControlPlane
from ultracluster.clusters.eks.node_settings import node_config, repair_config, user_data
from ultracluster.clusters.eks.roles import node_role
from ultracluster.clusters.eks.scripts import NodeScripts
from ultracluster.clusters.given import Parts, given_cluster, nodes_groups, waits_of_nodes
from ultracluster.clusters.launch_template import NodeLaunchTemplate
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.kubernetes import Eks, NodeRepair
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Taint
from ultracluster.guard.objects import take_objects
from ultracluster.kubernetes.labels import GROUP_LABEL, ROLE_LABEL, default_taints, node_labels
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import decide, placement_for
from ultracluster.model.root_volume import root_throughput
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.software.node_image import full_image_release

__all__ = ["GROUP_LABEL", "ROLE_LABEL", "EksNodeGroup"]

_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
_SCARCE = ("reservation", "capacity-block")
"""Kinds of capacity that may have no further instance during an update."""


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class EksNodeGroup(Construct):
    """A managed node group with our own launch template: network cards, capacity, placement, image, scripts.

    It gets no name of its own in EKS, because a change of image kind, capacity or subnet replaces it, and the
    new one could not have the name of the old.

    Attributes:
        resource: the `AWS::EKS::Nodegroup`.
        launch_template: how its nodes are launched.
        role: what the nodes may do.
        key: encrypts root volumes.
        security_groups: of the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IEksControlPlane,
        subnet: ec2.ISubnet,
        node_group: NodeGroup | None = None,
        name: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        role: iam.IRole | None = None,
        key: kms.IKey | ClusterKey | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        lifecycle: Literal["user-data", "none"] = "user-data",
        repair: NodeRepair | None = None,
        max_unavailable: int = 1,
        image_release: str | None = None,
        scripts: NodeScripts | None = None,
        after: Sequence[IConstruct] = (),
        resolved: Cluster | None = None,
    ) -> None:
        """Make the group.

        Args:
            cluster: the control plane that nodes join.
            subnet: the one subnet: EFA does not leave it.
            node_group: type, count, capacity, labels, taints; role `compute` or `system`; no default without
                `resolved`.
            name: of the group, as label `ultracluster/node-group`; the construct's id by default.
            security_groups: on every interface; each lets everything in from, and out to, itself. Those of
                the control plane by default.
            role: of the nodes; it gets the statements that they need. Made by default.
            key: encrypts root volumes; that of the control plane by default. The service-linked role of Auto
                Scaling is added to its policy; that of an imported key is its owner's, and a warning says
                what must be in it.
            release: software release of the nodes; the newest one for EKS by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            lifecycle: when our scripts run on compute nodes: before a node joins, or not at all. By default
                `user-data`.
            repair: what is done about faulty nodes; by default the fields of `NodeRepair`.
            max_unavailable: nodes replaced at once by an update; by default `1`.
            image_release: of EKS's own image, `1.34.12-20261012`; None: the newest of the cluster's release.
                By default the newest of the cluster's release.
            scripts: shared with other groups, instead of those that are made here; by default scripts of its
                own.
            after: what must be there first, in addition to `EksControlPlane.before_nodes`; by default none.
            resolved: what an environment file comes to, instead of group, release, mirror and types: the
                group `name` of it. It runs `scripts`, and no others. By default none.

        Raises:
            ValueError: EKS has no image for the type, or an image of one's own without a service CIDR, or
                what `NodeLaunchTemplate` refuses.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        name = name or construct_id
        settings = resolved.settings if resolved else None
        inputs = given_cluster(
            self,
            resolved=resolved,
            settings=settings
            or Eks(
                kubernetes_version=cluster.kubernetes_version,
                lifecycle=lifecycle,
                node_image_release=image_release,
                service_cidr=cluster.service_cidr,
                cluster_name=cluster.cluster_name,
            ),
            parts=Parts(
                node_groups={name: node_group} if node_group else None,
                release=release,
                mirror=mirror,
                instance_types=instance_types,
            ),
            judged=[("node_groups", name), ("software",), ("instance_types",)],
        )
        self.security_groups = nodes_groups(
            self, security_groups or list(cluster.security_groups) or None, None, subnet
        )
        self._connections = ec2.Connections(security_groups=self.security_groups)
        self.key = ClusterKey.of(self, key or cluster.key)
        if not inputs.from_file:
            allow_use(self, self.key, *inputs.cluster.launched_by)
        group = inputs.cluster.groups[name]
        ready: list[IConstruct] = []
        if role is None or resolved is None:
            role = node_role(
                self,
                "Role",
                cluster_arn=cluster.cluster_arn,
                nodes=group.role,
                mirror=inputs.cluster.environment.software.mirror,
                role=role,
            )
            ready.append(role)
        self.role = self._principal = role
        runs = inputs.cluster.runs_scripts and group.role == "compute"
        if scripts is None and resolved is None and runs:
            scripts = NodeScripts(self, "Scripts", configurations=inputs.configurations.by_group)
            scripts.grant_read(role)
        with inputs.in_words_of_rules():
            self._add_group(
                group,
                cluster=cluster,
                subnet=subnet,
                scripts=scripts,
                repair=repair or NodeRepair(),
                max_unavailable=max_unavailable,
                image_release=full_image_release(inputs.cluster.environment, name),
            )
        self.resource.node.add_dependency(
            *cluster.before_nodes, *ready, *after, *waits_of_nodes(subnet, self.security_groups)
        )

    @property
    def connections(self) -> ec2.Connections:
        """Of its nodes."""
        return self._connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """Its nodes' role."""
        return self._principal

    def _add_group(
        self,
        group: Group,
        *,
        cluster: IEksControlPlane,
        subnet: ec2.ISubnet,
        scripts: NodeScripts | None,
        repair: NodeRepair,
        max_unavailable: int,
        image_release: str | None,
    ) -> None:
        settings, instance_type, capacity = group.settings, group.checked_type, group.settings.capacity
        image_kind = _image_kind(settings, instance_type, cluster)
        image_release = None if settings.image else image_release
        labels = node_labels(group.name, settings, instance_type)
        taints = default_taints(settings, instance_type)
        join = node_config(cluster, labels, taints) if settings.image else None
        purchase = self._add_launch_template(group, scripts, join)
        starts = capacity.starts if isinstance(capacity, CapacityBlock) else None
        count = 0 if starts else settings.count
        self.resource = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            node_role=self.role.role_arn,
            subnets=[subnet.subnet_id],
            # an image of one's own has none of them. Without a version the group keeps its Kubernetes release
            # (EKS API reference, UpdateNodegroupVersion).
            ami_type=image_kind,
            version=image_release.rpartition(".")[0] if image_release else None,
            release_version=image_release,
            capacity_type=purchase or None,
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=self.launch_template.launch_template_id,
                version=self.launch_template.latest_version_number,
            ),
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=count, desired_size=count, max_size=max(1, settings.max_nodes)
            ),
            labels=labels,
            taints=list(map(_taint_property, taints)),
            update_config=eks.CfnNodegroup.UpdateConfigProperty(
                max_unavailable=max_unavailable,
                # there is no further instance in a reservation that is full: the old node goes first
                update_strategy="MINIMAL" if capacity.kind in _SCARCE else "DEFAULT",
            ),
            # a pod disruption budget is someone's job
            force_update_enabled=False,
            node_repair_config=repair_config(repair),
        )
        if starts and settings.count:
            fill_when_block_begins(
                self,
                "BlockStart",
                group=self.resource,
                cluster_name=cluster.cluster_name,
                starts=starts,
                nodes=settings.count,
                most=settings.max_nodes,
            )

    def _add_launch_template(self, group: Group, scripts: NodeScripts | None, join: str | None) -> str:
        """Add launch template and placement group; return the purchase option, "" for that of the template.

        Args:
            group: of the cluster.
            scripts: run by compute nodes.
            join: `node_config` of an image of one's own.
        """
        settings, instance_type, capacity = group.settings, group.checked_type, group.settings.capacity
        compute = settings.role == "compute"
        reserved = isinstance(capacity, Reservation) and capacity.placement_group is not None
        placement = self._placement(settings, instance_type, reserved) if compute else None
        decision = decide(
            capacity,
            orchestrator="eks",
            placement="none" if placement is None else "reservation-group" if reserved else "cluster",
            instance_type=instance_type,
        )
        self.launch_template = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            instance_type=instance_type,
            security_groups=self.security_groups,
            key=self.key,
            root_device="/dev/xvda",
            capacity=capacity,
            orchestrator="eks",
            placement_group=placement,
            reserved_in_group=reserved,
            efa=settings.efa_interface,
            efa_interfaces=None if compute else 0,
            image_id=settings.image_in_template,
            root_volume_gib=settings.root_volume_gib,
            root_throughput_mbps=root_throughput(settings, instance_type),
            root_io2_iops=settings.root_volume_iops,
            ena_express=settings.ena_express,
            tags={"Name": f"{Stack.of(self).stack_name}/{group.name}"},
            threads_per_core=settings.threads_per_core,
            user_data=user_data(scripts.user_data(group.name) if scripts and compute else None, join),
        )
        return decision.purchase

    def _placement(
        self, group: NodeGroup, instance_type: InstanceType, reserved: bool
    ) -> ec2.IPlacementGroup | None:
        kind = placement_for(
            group.capacity,
            instance_type=instance_type,
            orchestrator="eks",
            reserved_in_group=reserved,
            declined=group.placement_group == "none",
        ).kind
        if kind == "none":
            return None
        if kind == "reservation-group":
            assert isinstance(group.capacity, Reservation) and group.capacity.placement_group
            return ec2.PlacementGroup.from_placement_group_name(
                self, "ReservationGroup", group.capacity.placement_group
            )
        return ClusterPlacementGroup(self, "PlacementGroup").placement_group


def _image_kind(group: NodeGroup, instance_type: InstanceType, cluster: IEksControlPlane) -> str | None:
    """EKS's image for the type, `AL2023_x86_64_NVIDIA`; None for an image of one's own.

    Raises:
        ValueError: neither is known, or an image of one's own has no service CIDR to join with.
    """
    kind = ami_type(instance_type)
    if kind is None and not group.image:
        raise ValueError(
            f"EKS has no image for {instance_type.name} ({instance_type.architecture}); give `image`"
        )
    if group.image and not cluster.service_cidr:
        raise ValueError(f"the image {group.image} needs the cluster's service_cidr to join nodes")
    return None if group.image else kind


def _taint_property(taint: Taint) -> eks.CfnNodegroup.TaintProperty:
    effect = _EFFECTS[taint.effect]
    return eks.CfnNodegroup.TaintProperty(key=taint.key, value=taint.value or None, effect=effect)
