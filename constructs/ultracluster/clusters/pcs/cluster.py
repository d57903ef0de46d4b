"""AWS Parallel Computing Service (AWS PCS User Guide).

The CDK only has L1 constructs of it. Launch templates, images, mounts, placement and network cards are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import Stack, Stage
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_pcs as pcs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.clusters.directory import let_ask_directory
from ultracluster.clusters.given import (
    Given,
    MadeCluster,
    scripts_bucket_of,
    use_bucket_key,
    waits_of_nodes,
)
from ultracluster.clusters.job_access import job_role
from ultracluster.clusters.metrics import arguments as metrics_arguments
from ultracluster.clusters.metrics import let_write_metrics
from ultracluster.clusters.node_roles import GivenRoles, role_shares
from ultracluster.clusters.pcs.groups import ENTRY, ComputeGroups, GroupScripts
from ultracluster.clusters.pcs.slurm import check_groups, cluster_configuration, queues
from ultracluster.clusters.settings import PcsSettings
from ultracluster.clusters.state import arguments, state_bundles
from ultracluster.config.environment import Access
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Role
from ultracluster.config.pcs import Pcs
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.model import Cluster
from ultracluster.model.leases import asked_of
from ultracluster.model.mounts import as_arguments
from ultracluster.model.parent_zone import parent_zone
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.every_role import every
from ultracluster.security.job_role import JobRole
from ultracluster.security.node_role import NodeRole
from ultracluster.slurm.configuration import slurm_configuration
from ultracluster.storage.buckets import DataBucket
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

LONGEST_NAME = 40
ROLE_PATH = "/aws-pcs/"
"""PCS looks for it in the ARN of the instance profile, unless its name begins with AWSPCS."""

_CLUSTER = pcs.CfnCluster


class PcsCluster(MadeCluster):
    """A PCS cluster with Slurm in one subnet.

    What is not given is made below it: security group, key, roles, bucket of the scripts. PCS makes one
    cluster at a time in a Region: a cluster of the same app and Region that was added before is waited for.

    Attributes:
        cluster_name: name of the cluster.
        cluster_id: `pcs_...`.
        cluster_arn: its ARN.
        roles: what nodes may do, by their role: `compute`, `login`.
        role: that of the compute nodes.
        job_role: what users' jobs may do in S3; None without `storage.job_buckets`.
        key: encrypts volumes and scripts.
        security_groups: of controller and nodes.
        scripts_bucket: where the lifecycle scripts are; None without any.
        groups: the compute node groups by name of the node group.
        queues: the queues by name of the partition.
        placement_groups: the cluster placement groups by name of the partition whose nodes are in it.
        cluster: what it was worked out to be, as rules and plans take it.
        resource: the `AWS::PCS::Cluster`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        further_subnets: Mapping[str, ec2.ISubnet] | None = None,
        vpc: ec2.IVpc | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        role: GivenRoles = None,
        key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        scripts_bucket: s3.IBucket | DataBucket | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        node_tags: Mapping[str, str] | None = None,
        access: Access | None = None,
        config: Pcs | None = None,
        metrics: MetricsDestination | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[PcsSettings],
    ) -> None:
        """Make the cluster.

        Args:
            subnet: the one subnet of controller and nodes; PCS takes one.
            further_subnets: in other zones of the same VPC, by zone id: of login groups that name a
                `zone_id`, where the other nodes are in a Local Zone. By default none.
            vpc: of the subnet; needed where no `security_groups` are given; by default none.
            security_groups: of controller and nodes; each must allow all traffic from and to itself
                (`EfaSecurityGroup`, of which one is made by default).
            role: of all nodes, or a mapping by role of node; PCS requires each below `/aws-pcs/`, or a name
                that begins with `AWSPCS`. Each gets the statements that these nodes need. By default one is
                made for each role of node.
            key: encrypts root volumes and scripts; made by default. PCS's service-linked role is added to its
                policy; that of an imported key is its owner's, and a warning says what must be in it.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster.
            node_groups: login and compute groups by name, each with its image; no default without `resolved`.
            lustre: mounted by the lifecycle scripts; by default none.
            further_lustre: mounted beside `lustre`, each at its own path, by name; by default none.
            open_zfs: mounted by the lifecycle scripts; by default none.
            scripts_bucket: where the lifecycle scripts go; made by default.
            release: software release of the nodes; the newest one for PCS by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            node_tags: of instances, volumes and interfaces; the CDK's own `Tags` do not get there; by default
                none.
            access: `node_metadata` and `metadata_users`: who on a node reaches the instance metadata, and
                with it what the nodes' roles may; services only by default.
            config: the settings as a model, instead of by keyword; by default the keywords say them.
            metrics: where nodes write metrics: `ClusterObservability(...).destination`; by default they
                collect none.
            resolved: what an environment file comes to, instead of groups, names, release and settings; by
                default none, and the arguments say it.
            settings: fields of `Pcs`: `size`, `slurm_version`, `accounting`, `partitions` and others.

        Raises:
            ValueError: what is given contradicts itself, or no cluster can be made of it: an unknown type,
                capacity that PCS cannot launch. What AWS would refuse otherwise is reported by the CDK's
                validation.
        """
        super().__init__(scope, construct_id)
        inputs = self._take(Pcs, locals(), longest_name=LONGEST_NAME)
        self._config = cast("Pcs", inputs.cluster.settings)
        self._subnet = subnet
        allow_use(self, self.key, *inputs.cluster.launched_by)
        self._rights = self._make_rights(role)
        self.roles = {name: rights.role for name, rights in self._rights.items()}
        self.role = self.roles.get("compute") or next(iter(self.roles.values()))
        self._principal = every(self.roles.values())
        self.scripts_bucket = (
            scripts_bucket_of(self, scripts_bucket, self.key, self.cluster_name)
            if inputs.cluster.runs_scripts
            else None
        )
        ways = let_ask_directory(
            self, inputs.cluster, rights=self._distinct_rights, security_groups=self.security_groups
        )
        self.job_role = job_role(self, inputs.cluster, self.roles)
        let_write_metrics(inputs.cluster, metrics, self.roles.values())
        self._scripts: GroupScripts | None = None
        with inputs.in_words_of_rules():
            state = arguments(self.cluster, self.scripts_bucket) if self.scripts_bucket else []
            told_at_deploy = [*as_arguments(self._mounts()), *_arguments(self.job_role), *state]
            self._bundle = self._upload(inputs, [*told_at_deploy, *metrics_arguments(self.cluster, metrics)])
            self._make([*self._admitted(), *ways])

    def _make_rights(self, roles: GivenRoles) -> dict[Role, NodeRole]:
        """Of each role of node; one object where several have one role."""
        mirror = self.cluster.environment.software.mirror
        rights_by_role: dict[Role, NodeRole] = {}
        for share in role_shares(self, self.cluster, roles):
            rights = NodeRole(
                self,
                share.construct_id,
                cluster_name=self.cluster_name,
                key=self.key,
                nodes=share.nodes,
                path=ROLE_PATH,
                role=share.given,
            )
            if mirror:
                rights.grant_read_mirror(mirror)
            if "login" in share.nodes and asked_of(self.cluster, "capacity-block"):
                rights.allow("ReadCapacityBlocks", ["ec2:DescribeCapacityReservations"], ["*"])
            rights_by_role |= dict.fromkeys(share.nodes, rights)
        return rights_by_role

    @property
    def _distinct_rights(self) -> list[NodeRole]:
        return list(dict.fromkeys(self._rights.values()))

    def _let_nodes_register(self) -> None:
        """Only with this cluster: the answer holds the key with which Slurm's daemons trust each other.

        AWS's own example allows every cluster; its Service Authorization Reference ("AWS Parallel Computing
        Service") limits the call to one. The agent names the cluster by id or by name, so both may stand in
        the ARN that is asked for.
        """
        by_name = Stack.of(self).format_arn(
            service="pcs", resource="cluster", resource_name=self.cluster_name
        )
        for rights in self._distinct_rights:
            rights.allow(
                "RegisterNode", ["pcs:RegisterComputeNodeGroupInstance"], [self.cluster_arn, by_name]
            )

    def _make(self, admissions: Sequence[Construct]) -> None:
        node_groups = self.cluster.environment.node_groups
        check_groups(node_groups)
        before = _clusters_before(self)
        nodes = sum(group.most_nodes for group in self.cluster.groups.values())
        slurm = slurm_configuration(self.cluster)
        self.resource = _CLUSTER(
            self,
            "Resource",
            name=self.cluster_name,
            size=(self._config.size or pcs_size_for(nodes).name).upper(),
            scheduler=_CLUSTER.SchedulerProperty(type="SLURM", version=self._config.slurm_version),
            networking=_CLUSTER.NetworkingProperty(
                subnet_ids=[self._controller_subnet_id()],
                security_group_ids=[group.security_group_id for group in self.security_groups],
                # left out where it is the default, so that clusters that exist stay
                network_type="IPV6" if self._config.network_type == "ipv6" else None,
            ),
            slurm_configuration=cluster_configuration(self._config, slurm),
        )
        # the controller is in the nodes' group, and speaks to them
        self.resource.node.add_dependency(*before, *self.security_groups)
        self.cluster_id = self.resource.attr_id
        self.cluster_arn = self.resource.attr_arn
        self._let_nodes_register()
        groups = ComputeGroups(
            scope=self,
            cluster_id=self.cluster_id,
            config=self._config,
            subnet_ids=self._subnet_ids(),
            home=self.cluster.environment.network.zone_id,
            security_groups=self.security_groups,
            key=self.key,
            instance_profiles={name: rights.instance_profile for name, rights in self._rights.items()},
            scripts=self._scripts,
            tags=self._parts.node_tags,
        )
        self.groups = {name: groups.add(group) for name, group in self.cluster.groups.items()}
        for name, node_group in self.groups.items():
            # its policy, not only the role, must be there before the first node is
            self._rights[self.cluster.groups[name].role].depend_on_policy(node_group)
            node_group.node.add_dependency(
                *waits_of_nodes(self._subnet, self.security_groups, *admissions),
                *([self._bundle] if self._bundle else ()),
            )
        self.placement_groups = groups.placement_groups
        self.queues = queues(self, slurm.partitions, node_groups, self.groups)

    def _controller_subnet_id(self) -> str:
        """Subnet of the controller's interface: PCS accepts none of a Local Zone."""
        network = self.cluster.environment.network
        return self._subnet_ids().get(parent_zone(network) or network.zone_id, self._subnet.subnet_id)

    def _subnet_ids(self) -> dict[str, str]:
        """Facts of the nodes' subnets, by zone id."""
        further = {
            zone: further_subnet.subnet_id
            for zone, further_subnet in (self._parts.further_subnets or {}).items()
        }
        return {self.cluster.environment.network.zone_id: self._subnet.subnet_id, **further}

    def _upload(self, inputs: Given, told_at_deploy: Sequence[str]) -> ScriptBundle | None:
        """The scripts in S3, for each group as the one file that PCS hands to its nodes."""
        if self.scripts_bucket is None:
            return None
        files = NodeFiles.of(ENTRY, release=inputs.configurations.release)
        bundles = files.bundles(inputs.configurations.by_group, list(self.cluster.groups), one_file=True)
        uploaded = ScriptBundle(
            self,
            "Scripts",
            bucket=self.scripts_bucket,
            name=self.cluster_name,
            bundles=bundles,
            others=[*tools(inputs.configurations.of_all), *state_bundles(self.cluster)],
        )
        checksums = {name: bundle.sha256 for name, bundle in bundles.items()}
        self._scripts = GroupScripts(uris=uploaded.uris, checksums=checksums, arguments=told_at_deploy)
        for rights in self._distinct_rights:
            rights.grant_read_scripts(self.scripts_bucket, self.cluster_name)
        use_bucket_key(self.scripts_bucket, self.key, self)
        return uploaded


def _arguments(role: JobRole | None) -> list[str]:
    return ["--job-role", role.role.role_arn] if role else []


def _clusters_before(scope: Construct) -> list[pcs.CfnCluster]:
    """The last PCS cluster of the same app, account and Region; PCS refuses to make two at once."""
    stack = Stack.of(scope)
    stage = Stage.of(scope)
    if stage is None:
        return []
    place = (stack.account, stack.region)
    clusters = [
        child
        for child in stage.node.find_all()
        if isinstance(child, _CLUSTER) and (Stack.of(child).account, Stack.of(child).region) == place
    ]
    return clusters[-1:]
