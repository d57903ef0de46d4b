"""A whole EKS cluster for training: control plane, system nodes, add-ons, node groups, volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.eks.control_plane import EksControlPlane
from ultracluster.clusters.eks.karpenter_group import EksKarpenterGroup
from ultracluster.clusters.eks.nodes import EksNodeGroup
from ultracluster.clusters.eks.system import System, add_system
from ultracluster.clusters.eks.volumes import give_volumes
from ultracluster.clusters.eks.workers import add_workers
from ultracluster.clusters.given import MadeCluster, control_plane_subnets_of
from ultracluster.clusters.settings import EksSettings
from ultracluster.config.kubernetes import Eks
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup, Role
from ultracluster.model import Cluster
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.every_role import every
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem


class EksCluster(MadeCluster):
    """Kubernetes with accelerated nodes in one subnet, ready for jobs.

    `EksControlPlane` with `EksAddons`, system nodes, device plugins, a scheduler with its queues, Karpenter
    if it is asked for, managed node groups of our own launch templates, and volume claims of the file
    systems. What is not given is made below it: security group, key, roles.

    Attributes:
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        control_plane: the control plane; `control_plane.kubectl` applies charts and manifests.
        groups: what runs nodes, by name of the group, system groups included.
        role: of the managed compute nodes; None where Karpenter launches all of them.
        roles: by role of node: `compute` (the managed ones', else that of Karpenter's nodes) and `system`.
        key: encrypts volumes, secrets and logs.
        security_groups: of nodes and control plane.
        cluster: what it was worked out to be, as rules and plans take it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        further_subnets: Mapping[str, ec2.ISubnet] | None = None,
        control_plane_subnets: Sequence[ec2.ISubnet] | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        key: kms.IKey | ClusterKey | None = None,
        secrets_key: kms.IKey | ClusterKey | None = None,
        cluster_name: str | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        node_tags: Mapping[str, str] | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        config: Eks | None = None,
        metrics: MetricsDestination | None = None,
        resolved: Cluster | None = None,
        **settings: Unpack[EksSettings],
    ) -> None:
        """Make the cluster.

        Args:
            vpc: the VPC.
            subnet: the one subnet of the nodes: EFA does not leave it.
            further_subnets: in other zones of the same VPC, by zone id: of system groups that name a
                `zone_id`, where the other nodes are in a Local Zone. By default none.
            control_plane_subnets: private subnets in two zones or more, each with 16 free addresses, and a
                way to AWS and to chart repositories; by default the private subnets of the VPC.
            security_groups: of nodes and control plane; each must allow all traffic from and to itself
                (`EfaSecurityGroup`, of which one is made by default).
            key: encrypts volumes, secrets and logs; made by default.
            secrets_key: encrypts secrets in, and logs of, the control plane; by default `key`.
            cluster_name: unique in account and Region, by default from the construct's path; a new name is a
                new cluster.
            node_groups: groups of role `compute` and `system` by name; no default without `resolved`.
            lustre: mounted by pods, as claim `lustre`; by default none.
            further_lustre: mounted by pods, as claims `lustre-<name>`, by name; by default none.
            open_zfs: mounted by pods, as claim `home`; by default none.
            release: software release of the nodes; the newest one for EKS by default.
            mirror: `s3://bucket/prefix` of mirrored software releases, which nodes may read; by default none.
            instance_types: those that the catalogue does not have, by name; by default none.
            node_tags: of what Karpenter launches; the CDK's own `Tags` do not get there; by default none.
            removal_policy: of the control plane's logs; by default it is destroyed.
            config: the settings as a model, instead of by keyword; by default the keywords say them.
            metrics: where pods write metrics: `ClusterObservability(...).destination`; none collect any by
                default.
            resolved: what an environment file comes to, instead of groups, names, release and settings; by
                default none, and the arguments say it.
            settings: fields of `Eks`: `kubernetes_version`, `admins`, `scheduler`, `karpenter` and others.

        Raises:
            ValueError: what is given contradicts itself, or no cluster can be made of it. What AWS would
                refuse otherwise is reported by the CDK's validation.
        """
        super().__init__(scope, construct_id)
        inputs = self._take(Eks, locals())
        allow_use(self, self.key, *inputs.cluster.launched_by)
        assert inputs.cluster.kubernetes
        control_plane_subnets = control_plane_subnets_of(self, control_plane_subnets, vpc)
        self.control_plane = plane = EksControlPlane(
            self,
            "ControlPlane",
            cluster_name=inputs.cluster.cluster_name,
            config=inputs.cluster.kubernetes,
            vpc=vpc,
            subnets=control_plane_subnets,
            security_groups=self.security_groups,
            key=secrets_key or self.key,
            removal_policy=removal_policy,
        )
        self.cluster_name, self.cluster_arn = plane.cluster_name, plane.cluster_arn
        with inputs.in_words_of_rules():
            system = add_system(
                Construct(self, "System"),
                inputs.cluster,
                configurations=inputs.configurations,
                plane=plane,
                subnet=subnet,
                further_subnets=further_subnets,
                security_groups=self.security_groups,
                key=self.key,
                metrics=metrics,
                control_plane_subnets=control_plane_subnets,
            )
            workers = add_workers(
                Construct(self, "Workers"),
                inputs.cluster,
                configurations=inputs.configurations,
                plane=plane,
                subnet=subnet,
                security_groups=self.security_groups,
                key=self.key,
                karpenter_profile=system.karpenter_profile,
            )
        names = inputs.cluster.with_role("system")
        self.groups: dict[str, EksNodeGroup | EksKarpenterGroup] = {
            **dict(zip(names, system.groups, strict=True)),
            **workers,
        }
        if system.karpenter:
            # pools are objects of Karpenter's own kinds
            for group in workers.values():
                if isinstance(group, EksKarpenterGroup):
                    group.pool.node.add_dependency(*system.karpenter.ready)
        self._set_roles(system, workers)
        give_volumes(
            plane.kubectl,
            inputs.cluster,
            lustre=lustre,
            further_lustre=further_lustre,
            open_zfs=open_zfs,
            system=system,
            after=self._admitted(),
        )

    def _set_roles(self, system: System, workers: Mapping[str, EksNodeGroup | EksKarpenterGroup]) -> None:
        managed = [group.role for group in workers.values() if isinstance(group, EksNodeGroup)]
        self.role: iam.IRole | None = managed[0] if managed else None
        launched = system.karpenter.node_role if system.karpenter else None
        roles = {"compute": self.role or launched, "system": system.groups[0].role if system.groups else None}
        self.roles = {cast("Role", name): role for name, role in roles.items() if role}
        self._principal = every([*self.roles.values(), *([launched] if launched else ())])
