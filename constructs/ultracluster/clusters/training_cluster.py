"""A whole training cluster in one construct: network, file systems, scripts and the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

import jsii
from aws_cdk import Stack, Tags, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from ultracluster.clusters.cluster import ClusterConstruct
from ultracluster.clusters.composition.alarms import add_cluster_alarms
from ultracluster.clusters.composition.buckets import add_buckets, existing_buckets
from ultracluster.clusters.composition.egress import add_egress
from ultracluster.clusters.composition.foundation import add_foundation
from ultracluster.clusters.composition.keys import Purpose, encrypt_logs, key_for
from ultracluster.clusters.composition.network import add_network, existing_network
from ultracluster.clusters.composition.parts import (
    BucketParts,
    FileSystemParts,
    MadeNetwork,
    NetworkParts,
    ObservabilityParts,
    StorageParts,
    stay,
)
from ultracluster.clusters.composition.protection import add_protection
from ultracluster.clusters.composition.repositories import add_repositories
from ultracluster.clusters.composition.service_logs import add_cluster_logs
from ultracluster.clusters.composition.sessions import add_sessions
from ultracluster.clusters.composition.storage import add_storage, existing_file_systems
from ultracluster.clusters.given import nodes_groups
from ultracluster.clusters.parallelcluster.ways_out import ways_out
from ultracluster.config import Environment, Loaded, load
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.config.orchestrator import HyperPodSlurm, OrchestratorSettings, ParallelCluster, Pcs
from ultracluster.guard import already_judged, report_findings
from ultracluster.guard.objects import plain_bucket, take_objects
from ultracluster.model import Cluster, resolve
from ultracluster.network.efa_security_group import IEfaSecurityGroup
from ultracluster.network.existing import cidr_of
from ultracluster.rules import check
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.security.governance import govern
from ultracluster.software.locked_images import with_locked_images
from ultracluster.storage.accounting_database import IAccountingDatabase
from ultracluster.storage.buckets import DataBucket
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

UNTAGGED = "@aws-cdk/aws-eks:clusterMustManuallyTagSubnet"
"""The CDK's warning about subnets that it did not make."""
_NOT_OF_ALL = frozenset({"accounting", "node_tags", "scripts_bucket", "secrets_key", "upload_role"})
"""Arguments that not every orchestrator's cluster takes."""


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class TrainingCluster(Construct):
    """Everything that `cdk deploy` of an environment makes, below one construct of your own stack.

    Either from an environment, of which any part can be replaced by an object of yours; or from an
    orchestrator, node groups and a network that exists. In one stack it is deployed, tried again and deleted
    as one: give it file systems of a stack of their own, if their data is to outlive it.

    It is an `IConnectable` and an `IGrantable`, as its cluster is: `bucket.grant_read(training)` works.

    To make a part in another way, override `make_key`, `make_network`, `make_storage`, `make_observability`
    or `make_cluster`.

    Attributes:
        key: encrypts everything.
        network: what the nodes are in.
        storage: what the nodes mount, and where their scripts are.
        observability: where metrics and alerts go; None where the environment asks for nothing.
        cluster: of the orchestrator: a `HyperPodSlurmCluster`, `HyperPodEksCluster`, `PcsCluster`,
            `EksCluster` or `ParallelClusterCluster`.
        resolved: what the environment comes to; None for a cluster from parts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment | Loaded | Path | str | None = None,
        orchestrator: OrchestratorSettings | None = None,
        node_groups: Mapping[str, NodeGroup] | None = None,
        cluster_name: str | None = None,
        release: str | None = None,
        mirror: str | None = None,
        instance_types: Mapping[str, DeclaredInstanceType] | None = None,
        vpc: ec2.IVpc | None = None,
        subnet: ec2.ISubnet | None = None,
        control_plane_subnets: Sequence[ec2.ISubnet] | None = None,
        security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None = None,
        key: kms.IKey | ClusterKey | None = None,
        scripts_bucket: s3.IBucket | DataBucket | None = None,
        lustre: ILustreFileSystem | None = None,
        further_lustre: Mapping[str, ILustreFileSystem] | None = None,
        open_zfs: IOpenZfsFileSystem | None = None,
        accounting: IAccountingDatabase | None = None,
    ) -> None:
        """Make the cluster and all that it needs and was not given.

        Args:
            environment: a file, by its path or read with `ultracluster.load`, or an `EnvironmentConfig`. Its
                Region and account are those of the stack. No default without `orchestrator`.
            orchestrator: instead of an environment: `HyperPodSlurm()`, `Pcs()`, `Eks()` and others. No
                default without an environment.
            node_groups: with `orchestrator`: groups by name. No default with it.
            cluster_name: with `orchestrator`: by default from the construct's path.
            release: with `orchestrator`: software release of the nodes, by default the newest one for it.
            mirror: with `orchestrator`: `s3://bucket/prefix` of mirrored releases. By default none.
            instance_types: with `orchestrator`: those that the catalogue does not have, by name. By default
                none.
            vpc: the network, with `subnet`, instead of that of the environment; by default that of the
                environment.
            subnet: the one subnet of nodes and file systems; by default that of the environment.
            control_plane_subnets: of a Kubernetes control plane: private, in two zones or more. By default
                the private subnets of the VPC.
            security_groups: of the nodes; each must allow all traffic from and to itself. With `vpc`, an
                `EfaSecurityGroup` is made by default.
            key: encrypts everything; made by default.
            scripts_bucket: where lifecycle scripts go; made by default.
            lustre: mounted by the nodes, instead of that of the environment; by default that of the
                environment.
            further_lustre: mounted beside `lustre`, by name, instead of those of the environment; by default
                those of the environment.
            open_zfs: mounted by the nodes, instead of that of the environment; by default that of the
                environment.
            accounting: database of Slurm's accounting, instead of that of the environment; by default that of
                the environment.

        Raises:
            InvalidEnvironmentError: a file cannot be read, or has the wrong shape.
            ValueError: what is given contradicts itself. What AWS would refuse otherwise is reported by the
                CDK's validation.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        if (environment is None) == (orchestrator is None):
            raise ValueError("TrainingCluster: give environment=, or orchestrator= with node_groups=")
        if (vpc is None) != (subnet is None) or (orchestrator and vpc is None):
            raise ValueError("TrainingCluster: give vpc= and subnet= together, and always with orchestrator=")
        parts = {
            "node_groups": node_groups,
            "cluster_name": cluster_name,
            "release": release,
            "mirror": mirror,
            "instance_types": instance_types,
        }
        self._parts = {name: value for name, value in parts.items() if value is not None}
        self._orchestrator = orchestrator
        self._vpc, self._subnet, self._security_groups = vpc, subnet, security_groups
        self._control_plane_subnets = control_plane_subnets
        self._given_key = key
        self._scripts_bucket = plain_bucket(scripts_bucket) if scripts_bucket else None
        self._lustre, self._open_zfs, self._accounting = lustre, open_zfs, accounting
        self._further_lustre = further_lustre or {}
        self._waits: list[IDependable] = []
        self.resolved = None if environment is None else self._read(environment)
        self.key = self.make_key()
        self.network = self.make_network()
        self.storage = self.make_storage()
        self.observability = self.make_observability()
        self.cluster = self.make_cluster()
        self._finish()

    def _read(self, environment: Environment | Loaded | Path | str) -> Cluster:
        if self._parts:
            raise ValueError(f"TrainingCluster: environment= says {', '.join(self._parts)}: leave them out")
        source = load(environment) if isinstance(environment, str | Path) else environment
        report_findings(self, [finding for finding in check(source) if not finding.acknowledged])
        # what is made below was judged with the whole
        already_judged(self)
        settings = with_locked_images(source.environment if isinstance(source, Loaded) else source)
        stack = Stack.of(self)
        for word, actual, expected in (
            ("Region", stack.region, settings.region),
            ("account", stack.account, settings.account or stack.account),
        ):
            if not Token.is_unresolved(actual) and actual != expected:
                raise ValueError(
                    f"TrainingCluster: environment {settings.name} is for {word} {expected}, and its stack "
                    f"for {actual}: give the stack env=cdk.Environment(...) with those of the environment"
                )
        govern(self, settings.governance)
        encrypt_logs(self, settings)
        for name, value in {ENVIRONMENT_TAG: settings.name, **settings.tags}.items():
            Tags.of(self).add(name, value)
        return resolve(settings)

    @property
    def connections(self) -> ec2.Connections:
        """Of the cluster's nodes."""
        return self.cluster.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the cluster's nodes."""
        return self.cluster.grant_principal

    def make_key(self) -> kms.IKey:
        """The key: that which was given, that of the environment, or a new one."""
        if self._given_key or self.resolved is None:
            return ClusterKey.of(self, self._given_key)
        return add_foundation(Construct(self, "Foundation"), self.resolved, logs=False)

    def make_network(self) -> NetworkParts:
        """The network: that which was given, or that of the environment with the ways out of it."""
        if self._vpc and self._subnet:
            return self._given_network(self._vpc, self._subnet)
        assert self.resolved
        asked = self.resolved.environment
        home = Construct(self, "Network")
        if not asked.makes_network:
            return existing_network(self.resolved)
        network = add_network(home, self.resolved, cross=stay)
        if asked.makes_egress:
            egress = add_egress(Construct(self, "Egress"), self.resolved, network=network, key=self.key)
            self._waits.append(egress)
        return network

    def make_storage(self) -> StorageParts:
        """Buckets and file systems: those that were given, and those of the environment."""
        return StorageParts(buckets=self._buckets(), file_systems=self._file_systems())

    def make_observability(self) -> ObservabilityParts | None:
        """Workspace of metrics, topic of alerts and Grafana, as the environment asks."""
        if self.resolved is None or self.resolved.environment.observability is None:
            return None
        # loaded when it is needed: it brings CDK modules that the others do not need
        from ultracluster.clusters.composition.observability import add_observability

        home = Construct(self, "Watching")
        return add_observability(home, self.resolved, key=self.key, cross=stay)

    def make_cluster(self) -> ClusterConstruct:
        """The cluster of the orchestrator, in the network, with the storage."""
        settings = self.resolved.settings if self.resolved else self._orchestrator
        assert settings
        arguments = self._cluster_arguments(settings)

        def of(*names: str) -> dict[str, Any]:
            """Arguments that clusters of all orchestrators take, and these."""
            left_out = _NOT_OF_ALL - set(names)
            return {name: value for name, value in arguments.items() if name not in left_out}

        # loaded when they are needed: each brings CDK modules that the others do not need
        match settings:
            case HyperPodSlurm():
                from ultracluster.clusters.hyperpod.slurm import HyperPodSlurmCluster

                return HyperPodSlurmCluster(
                    self, "Cluster", **of("accounting", "scripts_bucket", "upload_role")
                )
            case HyperPodEks():
                from ultracluster.clusters.hyperpod.eks import HyperPodEksCluster

                return HyperPodEksCluster(
                    self,
                    "Cluster",
                    control_plane_subnets=self.network.control_plane_subnets(self),
                    **of("scripts_bucket", "secrets_key", "upload_role"),
                )
            case ParallelCluster():
                from ultracluster.clusters.parallelcluster.cluster import ParallelClusterCluster

                cluster = ParallelClusterCluster(
                    self, "Cluster", **of("accounting", "node_tags", "scripts_bucket")
                )
                self._waits += ways_out(
                    self,
                    settings,
                    security_group_id=self.network.security_group_ids[0],
                    vpc_cidrs=self.network.vpc_cidrs,
                )
                return cluster
            case Pcs():
                from ultracluster.clusters.pcs.cluster import PcsCluster

                return PcsCluster(self, "Cluster", **of("node_tags", "scripts_bucket"))
            case Eks():
                from ultracluster.clusters.eks.cluster import EksCluster

                return EksCluster(
                    self,
                    "Cluster",
                    control_plane_subnets=self.network.control_plane_subnets(self),
                    **of("node_tags", "secrets_key"),
                )
            case _ as never:
                assert_never(never)

    def _cluster_arguments(self, settings: OrchestratorSettings) -> dict[str, Any]:
        """Arguments of clusters by keyword; those of `_NOT_OF_ALL` are not taken by all of them."""
        files, buckets = self.storage.file_systems, self.storage.buckets
        what: dict[str, Any] = (
            {"resolved": self.resolved} if self.resolved else {**self._parts, "config": settings}
        )
        what |= {
            "vpc": self.network.vpc(self),
            "subnet": self.network.subnet(self),
            "security_groups": self.network.security_groups(self),
            "key": self._key_for("volumes"),
            "lustre": files.lustre_in(self),
            "further_lustre": files.further_lustre_in(self),
            "open_zfs": files.open_zfs_in(self),
            "scripts_bucket": (
                buckets.scripts_bucket(self, self._key_for("buckets")) if buckets.scripts else None
            ),
            "upload_role": buckets.upload_role(self),
        }
        secrets = self._key_for("secrets")
        tags = (
            {ENVIRONMENT_TAG: self.resolved.name, **self.resolved.environment.tags} if self.resolved else None
        )
        return what | {
            "secrets_key": secrets,
            "accounting": files.accounting_in(self, secrets),
            "node_tags": tags,
            "further_subnets": self.network.further_subnets(self),
            "metrics": self.observability.metrics if self.observability else None,
        }

    def _key_for(self, purpose: Purpose) -> kms.IKey:
        return key_for(self, self.resolved.environment, purpose, self.key) if self.resolved else self.key

    def _given_network(self, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> NetworkParts:
        groups = nodes_groups(self, self._security_groups, vpc, subnet)
        control_plane = list(self._control_plane_subnets or vpc.private_subnets)
        return NetworkParts(
            vpc_id=vpc.vpc_id,
            vpc_cidr=cidr_of(vpc, self),
            subnet_id=subnet.subnet_id,
            security_group_ids=tuple(group.security_group_id for group in groups),
            control_plane_subnet_ids=tuple(plane_subnet.subnet_id for plane_subnet in control_plane),
            made=MadeNetwork(
                vpc=vpc, subnet=subnet, security_groups=groups, control_plane_subnets=control_plane
            ),
        )

    def _buckets(self) -> BucketParts:
        bucket = self._scripts_bucket
        if self.resolved is None:
            # a cluster that needs one makes it
            return BucketParts(
                scripts=bucket.bucket_name if bucket else "", made={"scripts": bucket} if bucket else {}
            )
        if bucket is None and not self.resolved.environment.makes_buckets:
            return existing_buckets(self.resolved.environment.storage)
        return add_buckets(
            Construct(self, "Buckets"),
            self.resolved,
            key=self.key,
            cross=stay,
            uploaded_by=Stack.of(self).stack_name,
            scripts=bucket,
        )

    def _file_systems(self) -> FileSystemParts:
        parts = FileSystemParts.of(
            lustre=self._lustre,
            further_lustre=self._further_lustre,
            open_zfs=self._open_zfs,
            accounting=self._accounting,
        )
        if self.resolved is None:
            return parts
        storage = self.resolved.environment.storage
        if not self.resolved.environment.makes_storage:
            return existing_file_systems(storage).with_given(parts)
        return add_storage(
            Construct(self, "Storage"),
            self.resolved,
            network=self.network,
            key=self.key,
            cross=stay,
            given=parts,
        )

    def _finish(self) -> None:
        """What is tied to the whole: who waits for the ways out, associations with S3, protection."""
        if self._waits:
            self.cluster.node.add_dependency(*self._waits)
        if self.resolved is None:
            return
        asked = self.resolved.environment
        if self.resolved.kubernetes and self._vpc is None:
            acknowledge(self.cluster, {UNTAGGED: "ClusterNetwork tags the subnets that it makes."})
        if not isinstance(self.resolved.settings, Eks):  # there, people come in with kubectl
            add_sessions(self, self.resolved, nodes=self.cluster, key=self.key)
        add_cluster_logs(self, self.resolved, source=self.cluster, key=self.key)
        if self.observability:
            watched = Construct(self, "Watched")
            add_cluster_alarms(
                watched,
                self.resolved,
                storage=self.storage,
                observability=self.observability,
                key=self.key,
            )
        if asked.all_data_repositories and self._lustre is None:
            add_repositories(Construct(self, "Repositories"), self.resolved, storage=self.storage)
        database_id = self.storage.file_systems.database_id
        if asked.protect and (self.resolved.kubernetes or database_id):
            protection = Construct(self, "Protection")
            add_protection(protection, self.resolved, key=self.key, database_id=database_id)
            protection.node.add_dependency(self.cluster)
