"""Compute node groups of PCS: launch template, image, placement, scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from ultracluster.catalog import InstanceType
from ultracluster.clusters.launch_template import NodeLaunchTemplate
from ultracluster.clusters.pcs.slurm import node_configuration
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import Reservation, Spot
from ultracluster.config.nodes import NodeGroup, Role
from ultracluster.config.pcs import Pcs
from ultracluster.lifecycle.bundles import NODE_FILE
from ultracluster.model import Group
from ultracluster.model.capacity import decide, placement_for
from ultracluster.model.network_cards import EfaKind, takes_combined_efa
from ultracluster.model.root_volume import root_throughput

ENTRY = "pcs_node"
"""Of the scripts that the file holds, the one that is run."""

_GROUP = pcs.CfnComputeNodeGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScripts:
    """Where the file of each group is, and what its entry is called with."""

    uris: Mapping[str, str]
    """Of the folder of the file, by group."""
    checksums: Mapping[str, str]
    """Of the file, by group."""
    arguments: Sequence[str]
    """Those that tell of file systems, and of the role of jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeGroups:
    """Adds the groups of one cluster."""

    scope: Construct
    cluster_id: str
    config: Pcs
    subnet_ids: Mapping[str, str]
    """Facts of the nodes' subnets, by zone id."""
    home: str
    """Zone of the groups that name none."""
    security_groups: Sequence[ec2.ISecurityGroup]
    key: kms.IKey
    instance_profiles: Mapping[Role, iam.IInstanceProfile]
    """By role of node."""
    scripts: GroupScripts | None
    """None where no scripts run."""
    tags: Mapping[str, str] | None
    placement_groups: dict[str, ClusterPlacementGroup] = field(
        default_factory=dict[str, ClusterPlacementGroup]
    )
    """By name of the partition whose nodes are in it."""

    def add(self, cluster_group: Group) -> pcs.CfnComputeNodeGroup:
        """A compute node group with its launch template."""
        name, group, instance_type = cluster_group.name, cluster_group.settings, cluster_group.checked_type
        capacity = group.capacity
        in_group = _reserved_in_group(group)
        placement = placement_for(
            capacity,
            instance_type=instance_type,
            orchestrator="pcs",
            reserved_in_group=in_group,
            declined=group.placement_group == "none",
        )
        # a login node runs no job over the fabric; a reservation's group is where its instances are
        kind = placement.kind if group.role == "compute" or in_group else "none"
        template = NodeLaunchTemplate(
            self.scope,
            f"Nodes{name}",
            instance_type=instance_type,
            security_groups=self.security_groups,
            key=self.key,
            root_device=self.config.root_device,
            capacity=capacity,
            orchestrator="pcs",
            placement_group=self._placement_group(name, group, kind),
            reserved_in_group=kind == "reservation-group",
            efa=_efa(self.config, instance_type),
            efa_interfaces=None if group.role == "compute" else 0,
            root_volume_gib=group.root_volume_gib,
            root_throughput_mbps=root_throughput(group, instance_type),
            root_io2_iops=group.root_volume_iops,
            ena_express=group.ena_express,
            threads_per_core=group.threads_per_core,
            tags=self.tags,
        )
        return _GROUP(
            self.scope,
            f"Group{name}",
            name=name,
            cluster_id=self.cluster_id,
            ami_id=group.image_in_template,
            custom_launch_template=_GROUP.CustomLaunchTemplateProperty(
                template_id=template.launch_template_id, version=template.latest_version_number
            ),
            iam_instance_profile_arn=self.instance_profiles[group.role].instance_profile_arn,
            instance_configs=[_GROUP.InstanceConfigProperty(instance_type=group.instance_type)],
            scaling_configuration=_GROUP.ScalingConfigurationProperty(
                min_instance_count=group.count, max_instance_count=group.max_nodes
            ),
            subnet_ids=[self.subnet_ids[group.zone_id or self.home]],
            purchase_option=decide(
                capacity, orchestrator="pcs", placement=kind, instance_type=instance_type
            ).purchase
            or None,
            spot_options=_GROUP.SpotOptionsProperty(allocation_strategy=capacity.allocation)
            if isinstance(capacity, Spot) and capacity.allocation
            else None,
            slurm_configuration=node_configuration(self.config, group, instance_type),
            node_lifecycle_actions=self._lifecycle(name),
        )

    def _placement_group(self, name: str, group: NodeGroup, kind: str) -> ec2.IPlacementGroup | None:
        if kind == "reservation-group":
            assert isinstance(group.capacity, Reservation) and group.capacity.placement_group
            return ec2.PlacementGroup.from_placement_group_name(
                self.scope, f"Reserved{name}", group.capacity.placement_group
            )
        if kind != "cluster":
            return None
        # the nodes of a partition train together, whichever of its groups they are of
        partition = group.partition or name
        if partition not in self.placement_groups:
            self.placement_groups[partition] = ClusterPlacementGroup(self.scope, f"Placement{partition}")
        return self.placement_groups[partition].placement_group

    def _lifecycle(self, group: str) -> pcs.CfnComputeNodeGroup.NodeLifecycleActionsProperty | None:
        if self.scripts is None:
            return None
        script = _GROUP.NodeLifecycleScriptProperty(
            name="Ultracluster",
            script_source=_GROUP.ScriptSourceProperty(
                script_location=f"{self.scripts.uris[group]}/{NODE_FILE}",
                checksum=self.scripts.checksums[group],
            ),
            arguments=[ENTRY, *self.scripts.arguments, "--group", group],
            # it mounts file systems; what is there already takes seconds
            execution_policy="EVERY_BOOT",
            # a node without its file systems or fabric must not take jobs
            on_error="TERMINATE",
        )
        return _GROUP.NodeLifecycleActionsProperty(
            stages=_GROUP.NodeLifecycleStagesProperty(node_bootstrapped=[script])
        )


def _reserved_in_group(group: NodeGroup) -> bool:
    return isinstance(group.capacity, Reservation) and group.capacity.placement_group is not None


def _efa(config: Pcs, instance_type: InstanceType) -> EfaKind:
    """The kind that is asked for, unless the type's cards only take `efa-only`."""
    return config.efa_interface if takes_combined_efa(instance_type) else "efa-only"
