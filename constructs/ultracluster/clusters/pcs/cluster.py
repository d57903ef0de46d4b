"""AWS Parallel Computing Service (AWS PCS User Guide).

The CDK only has L1 constructs of it. Launch templates, images, mounts, placement and network cards are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Stack, Stage
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_pcs as pcs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.catalog import InstanceType, instance_type
from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.clusters.launch_template import NodeLaunchTemplate
from ultracluster.clusters.pcs.slurm import check_groups, node_configuration, queues, slurm_configuration
from ultracluster.clusters.placement import ClusterPlacementGroup
from ultracluster.config.capacity import Reservation, Spot
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.slurm import SlurmSettings
from ultracluster.lifecycle.bundles import NODE_FILE, NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.model.capacity import decide, placement_for
from ultracluster.model.cluster_json import ScriptConfigurations
from ultracluster.model.mounts import LustreMount, OpenZfsMount, as_arguments, told
from ultracluster.model.network_cards import EfaKind, takes_combined_efa
from ultracluster.model.root_volume import root_throughput
from ultracluster.security.node_role import NodeRole
from ultracluster.slurm.prolog import slurm_prolog

ENTRY = "pcs_node"
"""Of the scripts that the file holds, the one that is run."""
ROLE_PATH = "/aws-pcs/"
"""PCS looks for it in the ARN of the instance profile, unless its name begins with AWSPCS."""

_GROUP = pcs.CfnComputeNodeGroup
_CLUSTER = pcs.CfnCluster


class PcsCluster(Construct):
    """A PCS cluster with Slurm in one subnet.

    PCS makes one cluster at a time in a Region: a cluster of the same app and Region that was added before
    is waited for.

    Attributes:
        cluster_name: name of the cluster.
        cluster_id: `pcs_...`.
        cluster_arn: its ARN.
        role: what the nodes may do.
        groups: the compute node groups by name of the node group.
        queues: the queues by name of the partition.
        placement_groups: the cluster placement groups by name of the partition whose nodes are in it.
        resource: the `AWS::PCS::Cluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        config: Pcs,
        node_groups: Mapping[str, NodeGroup],
        subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        key: kms.IKey,
        instance_types: Mapping[str, InstanceType] | None = None,
        scripts_bucket: s3.IBucket | None = None,
        script_configurations: ScriptConfigurations | None = None,
        lustre: LustreMount | None = None,
        open_zfs: OpenZfsMount | None = None,
        mirror: str | None = None,
        role: NodeRole | None = None,
        node_tags: Mapping[str, str] | None = None,
    ) -> None:
        """Make the cluster.

        Args:
            cluster_name: unique in account and Region; a new name is a new cluster.
            config: size, Slurm, accounting, settings and when lifecycle scripts run.
            node_groups: login and compute groups by name, each with its image.
            subnet: the one subnet of controller and nodes; PCS takes one.
            security_groups: of controller and nodes; each must allow all traffic from and to itself
                (`EfaSecurityGroup`).
            key: encrypts the root volumes. Its policy must let PCS's service-linked role use it
                (`ClusterKey(launched_by=...)`).
            instance_types: those that the catalogue does not have, by name.
            scripts_bucket: where the lifecycle scripts go; needed unless `config.lifecycle` is "none".
            script_configurations: what the lifecycle scripts read as `cluster.json`, with it.
            lustre: mounted by the lifecycle scripts.
            open_zfs: mounted by the lifecycle scripts.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read.
            role: the nodes' role, made here by default; PCS requires it below `/aws-pcs/`.
            node_tags: of instances, volumes and interfaces; the CDK's own `Tags` do not get there.

        Raises:
            ValueError: a role PCS does not support, a group without an image, lifecycle scripts without
                scripts_bucket, or capacity PCS cannot launch.
        """
        super().__init__(scope, construct_id)
        check_groups(node_groups)
        self.cluster_name = cluster_name
        self._config = config
        self._key = key
        self._subnet = subnet
        self._security_groups = security_groups
        self._types = instance_types or {}
        self._tags = node_tags
        self.role = role or NodeRole(self, "Role", cluster_name=cluster_name, key=key, path=ROLE_PATH)
        # the API names no resource type that the policy could be limited to
        self.role.allow("RegisterNode", ["pcs:RegisterComputeNodeGroupInstance"], ["*"])
        if mirror:
            self.role.grant_read_mirror(mirror)
        self._checksums: dict[str, str] = {}
        self._bundle = self._upload(scripts_bucket, script_configurations, list(node_groups))
        self._mount_arguments = as_arguments(told(lustre, open_zfs))
        before = _clusters_before(self)
        self.resource = _CLUSTER(
            self,
            "Resource",
            name=cluster_name,
            size=(config.size or pcs_size_for(sum(g.max_nodes for g in node_groups.values())).name).upper(),
            scheduler=_CLUSTER.SchedulerProperty(type="SLURM", version=config.slurm_version),
            networking=_CLUSTER.NetworkingProperty(
                subnet_ids=[subnet.subnet_id],
                security_group_ids=[group.security_group_id for group in security_groups],
            ),
            slurm_configuration=slurm_configuration(config, self._cluster_settings(node_groups)),
        )
        for cluster in before:
            self.resource.node.add_dependency(cluster)
        self.cluster_id = self.resource.attr_id
        self.cluster_arn = self.resource.attr_arn
        self.placement_groups: dict[str, ClusterPlacementGroup] = {}
        self.groups = {name: self._group(name, group) for name, group in node_groups.items()}
        self.queues = queues(self, config, node_groups, self.groups)

    def _cluster_settings(self, node_groups: Mapping[str, NodeGroup]) -> SlurmSettings:
        """Those that are asked for; with UltraServers also what runs the prolog of our scripts."""
        asked = self._config.slurm_settings
        compute = [group for group in node_groups.values() if group.role == "compute"]
        runs_prolog = self._config.imex and self._config.lifecycle != "none"
        if not runs_prolog or not any(self._type(group).imex for group in compute):
            return asked
        given = {key.lower() for key in asked}
        return {key: value for key, value in slurm_prolog(PROLOG).items() if key.lower() not in given} | asked

    def _upload(
        self, bucket: s3.IBucket | None, configurations: ScriptConfigurations | None, groups: Sequence[str]
    ) -> ScriptBundle | None:
        """The scripts in S3, for each group as the one file that PCS hands to its nodes."""
        if self._config.lifecycle == "none":
            return None
        if bucket is None or configurations is None:
            raise ValueError(
                f"lifecycle {self._config.lifecycle!r} needs a scripts_bucket and script_configurations"
            )
        files = NodeFiles.of(ENTRY, release=configurations.release)
        bundles = files.bundles(configurations.by_group, groups, one_file=True)
        self._checksums = {name: bundle.sha256 for name, bundle in bundles.items()}
        made = ScriptBundle(
            self,
            "Scripts",
            bucket=bucket,
            name=self.cluster_name,
            bundles=bundles,
            others=tools(configurations.of_all),
        )
        self.role.grant_read_scripts(bucket, self.cluster_name)
        return made

    def _group(self, name: str, group: NodeGroup) -> pcs.CfnComputeNodeGroup:
        known = self._type(group)
        capacity = group.capacity
        in_group = _reserved_in_group(group)
        placement = placement_for(
            capacity,
            instance_type=known,
            orchestrator="pcs",
            reserved_in_group=in_group,
            declined=group.placement_group == "none",
        )
        # a login node runs no job over the fabric; a reservation's group is where its instances are
        kind = placement.kind if group.role == "compute" or in_group else "none"
        template = NodeLaunchTemplate(
            self,
            f"Nodes{name}",
            instance_type=known,
            security_groups=self._security_groups,
            key=self._key,
            root_device=self._config.root_device,
            capacity=capacity,
            orchestrator="pcs",
            placement_group=self._placement_group(name, group, kind),
            reserved_in_group=kind == "reservation-group",
            efa=_efa(self._config, known),
            efa_interfaces=None if group.role == "compute" else 0,
            root_volume_gib=group.root_volume_gib,
            root_throughput_mbps=root_throughput(group, known),
            threads_per_core=group.threads_per_core,
            tags=self._tags,
        )
        made = _GROUP(
            self,
            f"Group{name}",
            name=name,
            cluster_id=self.cluster_id,
            ami_id=group.image_in_template,
            custom_launch_template=_GROUP.CustomLaunchTemplateProperty(
                template_id=template.launch_template_id, version=template.latest_version_number
            ),
            iam_instance_profile_arn=self.role.instance_profile.instance_profile_arn,
            instance_configs=[_GROUP.InstanceConfigProperty(instance_type=group.instance_type)],
            scaling_configuration=_GROUP.ScalingConfigurationProperty(
                min_instance_count=group.count, max_instance_count=group.max_nodes
            ),
            subnet_ids=[self._subnet.subnet_id],
            purchase_option=decide(capacity, orchestrator="pcs", placement=kind, instance_type=known).purchase
            or None,
            spot_options=_GROUP.SpotOptionsProperty(allocation_strategy=capacity.allocation)
            if isinstance(capacity, Spot) and capacity.allocation
            else None,
            slurm_configuration=node_configuration(self._config, group, known),
            node_lifecycle_actions=self._lifecycle(name),
        )
        # its policy, not only the role, must be there before the first node is
        self.role.depend_on_policy(made)
        if self._bundle:
            made.node.add_dependency(self._bundle)
        return made

    def _type(self, group: NodeGroup) -> InstanceType:
        known = self._types.get(group.instance_type) or instance_type(group.instance_type)
        if known is None:
            raise ValueError(f"unknown instance type {group.instance_type!r}: pass it in instance_types")
        return known

    def _placement_group(self, name: str, group: NodeGroup, kind: str) -> ec2.IPlacementGroup | None:
        if kind == "reservation-group":
            assert isinstance(group.capacity, Reservation) and group.capacity.placement_group
            return ec2.PlacementGroup.from_placement_group_name(
                self, f"Reserved{name}", group.capacity.placement_group
            )
        if kind != "cluster":
            return None
        # the nodes of a partition train together, whichever of its groups they are of
        partition = group.partition or name
        if partition not in self.placement_groups:
            self.placement_groups[partition] = ClusterPlacementGroup(self, f"Placement{partition}")
        return self.placement_groups[partition].placement_group

    def _lifecycle(self, group: str) -> pcs.CfnComputeNodeGroup.NodeLifecycleActionsProperty | None:
        if self._bundle is None:
            return None
        script = _GROUP.NodeLifecycleScriptProperty(
            name="Ultracluster",
            script_source=_GROUP.ScriptSourceProperty(
                script_location=f"{self._bundle.uris[group]}/{NODE_FILE}", checksum=self._checksums[group]
            ),
            arguments=[ENTRY, *self._mount_arguments, "--group", group],
            # it mounts file systems; what is there already takes seconds
            execution_policy="EVERY_BOOT",
            # a node without its file systems or fabric must not take jobs
            on_error="TERMINATE",
        )
        return _GROUP.NodeLifecycleActionsProperty(
            stages=_GROUP.NodeLifecycleStagesProperty(node_bootstrapped=[script])
        )


def _clusters_before(scope: Construct) -> list[pcs.CfnCluster]:
    """The last PCS cluster of the same app, account and Region; PCS refuses to make two at once."""
    stack = Stack.of(scope)
    stage = Stage.of(scope)
    if stage is None:
        return []
    place = (stack.account, stack.region)
    found = [
        one
        for one in stage.node.find_all()
        if isinstance(one, _CLUSTER) and (Stack.of(one).account, Stack.of(one).region) == place
    ]
    return found[-1:]


def _reserved_in_group(group: NodeGroup) -> bool:
    return isinstance(group.capacity, Reservation) and group.capacity.placement_group is not None


def _efa(config: Pcs, known: InstanceType) -> EfaKind:
    """The kind that is asked for, unless the type's cards only take `efa-only`."""
    return config.efa_interface if takes_combined_efa(known) else "efa-only"
