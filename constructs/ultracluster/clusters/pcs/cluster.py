"""AWS Parallel Computing Service (AWS PCS User Guide).

The CDK only has L1 constructs of it. Launch templates, images, mounts, placement and network cards are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import Stack, Stage
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_pcs as pcs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.clusters.cluster import ClusterConstruct
from ultracluster.clusters.given import (
    Given,
    Parts,
    admitted,
    given_cluster,
    nodes_groups,
    scripts_bucket_of,
    settings_for,
    use_bucket_key,
    waits_of_nodes,
)
from ultracluster.clusters.pcs.groups import ENTRY, ComputeGroups, GroupScripts
from ultracluster.clusters.pcs.slurm import check_groups, queues, slurm_configuration
from ultracluster.clusters.settings import PcsSettings
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.slurm import SlurmSettings
from ultracluster.lifecycle.bundles import NodeFiles, tools
from ultracluster.lifecycle.script_bundle import ScriptBundle
from ultracluster.model import Cluster
from ultracluster.model.mounts import as_arguments, told
from ultracluster.network.admission import Admission
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.node_role import NodeRole
from ultracluster.slurm.prolog import slurm_prolog
from ultracluster.storage.lustre_file_system import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

LONGEST_NAME = 40
ROLE_PATH = "/aws-pcs/"
"""PCS looks for it in the ARN of the instance profile, unless its name begins with AWSPCS."""

_CLUSTER = pcs.CfnCluster


class PcsCluster(ClusterConstruct):
    """A PCS cluster with Slurm in one subnet.

    What is not given is made below it: security group, key, role, bucket of the scripts. PCS makes one
    cluster at a time in a Region: a cluster of the same app and Region that was added before is waited for.

    Attributes:
        cluster_name: name of the cluster.
        cluster_id: `pcs_...`.
        cluster_arn: its ARN.
        role: what the nodes may do.
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
        vpc: ec2.IVpc | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        role: iam.IRole | None = None,
        key: kms.IKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        scripts_bucket: s3.IBucket | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        node_tags: Mapping[str, str] | None = None,
        config: Pcs | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[PcsSettings],
    ) -> None:
        """Make the cluster.

        Args:
            subnet: the one subnet of controller and nodes; PCS takes one.
            vpc: of the subnet; needed where no `security_groups` are given.
            security_groups: of controller and nodes; each must allow all traffic from and to itself
                (`EfaSecurityGroup`, of which one is made by default).
            role: of the nodes; PCS requires it below `/aws-pcs/`, or a name that begins with `AWSPCS`. It
                gets the statements that nodes need. Made by default.
            key: encrypts root volumes and scripts; made by default. PCS's service-linked role is added to its
                policy; that of an imported key is its owner's, and a warning says what must be in it.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster.
            node_groups: login and compute groups by name, each with its image.
            lustre: mounted by the lifecycle scripts.
            open_zfs: mounted by the lifecycle scripts.
            scripts_bucket: where the lifecycle scripts go; made by default.
            release: software release of the nodes; the newest one for PCS by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read.
            instance_types: those that the catalogue does not have, by name.
            node_tags: of instances, volumes and interfaces; the CDK's own `Tags` do not get there.
            config: the settings as a model, instead of by keyword.
            resolved: what an environment file comes to, instead of groups, names, release and settings.
            settings: fields of `Pcs`: `size`, `slurm_version`, `accounting`, `partitions` and others.

        Raises:
            ValueError: what is given contradicts itself, or no cluster can be made of it: an unknown type,
                capacity that PCS cannot launch. What AWS would refuse otherwise is reported by the CDK's
                validation.
        """
        super().__init__(scope, construct_id)
        made = given_cluster(
            self,
            resolved=resolved,
            settings=settings_for(self, Pcs, config, settings, resolved),
            parts=Parts(
                node_groups=node_groups,
                cluster_name=cluster_name,
                lustre=lustre,
                open_zfs=open_zfs,
                release=release,
                mirror=mirror,
                instance_types=instance_types,
                tags=node_tags,
            ),
            longest_name=LONGEST_NAME,
        )
        self.cluster = made.cluster
        self._config = cast("Pcs", made.cluster.settings)
        self.cluster_name = made.cluster.cluster_name
        self._subnet, self._tags = subnet, node_tags
        self.security_groups = nodes_groups(self, security_groups, vpc, subnet)
        self._connections = ec2.Connections(security_groups=self.security_groups)
        self.key = ClusterKey.of(self, key)
        allow_use(self, self.key, *made.cluster.launched_by)
        self._rights = NodeRole(
            self, "Role", cluster_name=self.cluster_name, key=self.key, path=ROLE_PATH, role=role
        )
        self.role = self._principal = self._rights.role
        # the API names no resource type that the policy could be limited to
        self._rights.allow("RegisterNode", ["pcs:RegisterComputeNodeGroupInstance"], ["*"])
        software = made.cluster.environment.software
        if software.mirror:
            self._rights.grant_read_mirror(software.mirror)
        self.scripts_bucket = (
            scripts_bucket_of(self, scripts_bucket, self.key) if made.cluster.runs_scripts else None
        )
        mounts = told(lustre.mount if lustre else None, open_zfs.mount if open_zfs else None)
        self._scripts: GroupScripts | None = None
        with made.in_words_of_rules():
            self._bundle = self._upload(made, as_arguments(mounts))
            self._make(admitted(self, subnet=subnet, lustre=lustre, open_zfs=open_zfs))

    def _make(self, admissions: Sequence[Admission]) -> None:
        node_groups = self.cluster.environment.node_groups
        check_groups(node_groups)
        before = _clusters_before(self)
        nodes = sum(group.most_nodes for group in self.cluster.groups.values())
        self.resource = _CLUSTER(
            self,
            "Resource",
            name=self.cluster_name,
            size=(self._config.size or pcs_size_for(nodes).name).upper(),
            scheduler=_CLUSTER.SchedulerProperty(type="SLURM", version=self._config.slurm_version),
            networking=_CLUSTER.NetworkingProperty(
                subnet_ids=[self._subnet.subnet_id],
                security_group_ids=[group.security_group_id for group in self.security_groups],
            ),
            slurm_configuration=slurm_configuration(self._config, self._cluster_settings()),
        )
        # the controller is in the nodes' group, and speaks to them
        self.resource.node.add_dependency(*before, *self.security_groups)
        self.cluster_id = self.resource.attr_id
        self.cluster_arn = self.resource.attr_arn
        groups = ComputeGroups(
            scope=self,
            cluster_id=self.cluster_id,
            config=self._config,
            subnet=self._subnet,
            security_groups=self.security_groups,
            key=self.key,
            instance_profile=self._rights.instance_profile,
            scripts=self._scripts,
            tags=self._tags,
        )
        self.groups = {name: groups.add(group) for name, group in self.cluster.groups.items()}
        for made in self.groups.values():
            # its policy, not only the role, must be there before the first node is
            self._rights.depend_on_policy(made)
            made.node.add_dependency(
                *waits_of_nodes(self._subnet, self.security_groups, *admissions),
                *([self._bundle] if self._bundle else ()),
            )
        self.placement_groups = groups.placement_groups
        self.queues = queues(self, self._config, node_groups, self.groups)

    def _cluster_settings(self) -> SlurmSettings:
        """Those that are asked for; with UltraServers also what runs the prolog of our scripts."""
        asked = self._config.slurm_settings
        compute = self.cluster.with_role("compute").values()
        runs_prolog = self._config.imex and self.cluster.runs_scripts
        if not runs_prolog or not any(group.checked_type.imex for group in compute):
            return asked
        given = {key.lower() for key in asked}
        return {key: value for key, value in slurm_prolog(PROLOG).items() if key.lower() not in given} | asked

    def _upload(self, made: Given, mounts: Sequence[str]) -> ScriptBundle | None:
        """The scripts in S3, for each group as the one file that PCS hands to its nodes."""
        if self.scripts_bucket is None:
            return None
        files = NodeFiles.of(ENTRY, release=made.configurations.release)
        bundles = files.bundles(made.configurations.by_group, list(self.cluster.groups), one_file=True)
        uploaded = ScriptBundle(
            self,
            "Scripts",
            bucket=self.scripts_bucket,
            name=self.cluster_name,
            bundles=bundles,
            others=tools(made.configurations.of_all),
        )
        checksums = {name: bundle.sha256 for name, bundle in bundles.items()}
        self._scripts = GroupScripts(uris=uploaded.uris, checksums=checksums, mounts=mounts)
        self._rights.grant_read_scripts(self.scripts_bucket, self.cluster_name)
        use_bucket_key(self.scripts_bucket, self.key, self)
        return uploaded


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
