"""What the parts of one cluster must know of each other, whether they are in one stack or in several.

A part gives ids, which may be imports of a stack's exports, and the objects that it made. Whoever gets the
objects takes them, with their dependencies; where a value crosses into another stack they are left out
(`ids_only`), and that stack imports by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from typing import Literal, Protocol, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from ultracluster.config import Environment
from ultracluster.config.storage import FIRST_LUSTRE
from ultracluster.model.mounts import Accounting, LustreMount, OpenZfsMount
from ultracluster.network.existing import existing_subnet, existing_vpc
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.storage.accounting_database import AccountingDatabase, IAccountingDatabase
from ultracluster.storage.lustre_file_system import LustreFileSystem, mounts_of
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem, OpenZfsFileSystem


class Cross(Protocol):
    """Gives what other parts write instead of a value of this one: the value, or the import of its export."""

    def __call__(self, scope: Construct, name: str, value: str) -> str: ...


def stay(scope: Construct, name: str, value: str) -> str:
    """Of one stack: nothing crosses a border."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What people and commands read of a deployed cluster."""

    value: str
    description: str


Outputs = Mapping[str, Output]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeNetwork:
    """The objects of a network."""

    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    security_groups: Sequence[ec2.ISecurityGroup]
    further_subnets: Mapping[str, ec2.ISubnet] = field(default_factory=dict[str, ec2.ISubnet])
    """By zone id."""
    database_subnets: Sequence[ec2.ISubnet] = ()
    control_plane_subnets: Sequence[ec2.ISubnet] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkParts:
    """The network that nodes and file systems are in."""

    vpc_id: str
    vpc_cidr: str
    subnet_id: str
    security_group_ids: tuple[str, ...]
    nodes_cidr: str | None = None
    """The network of the nodes' subnet, maybe in another block of the VPC; None where it is not known."""
    route_table_id: str | None = None
    """Of the nodes' subnet; None where the subnet exists."""
    further_subnet_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of nodes in other zones, by zone id."""
    further_route_table_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of those of them that are made here, by zone id."""
    default_security_group_id: str | None = None
    """The group that EC2 makes with a VPC; None where the VPC exists."""
    database_subnet_ids: tuple[str, ...] = ()
    control_plane_subnet_ids: tuple[str, ...] = ()
    """Of an EKS control plane, in two zones or more."""
    made: MadeNetwork | None = None

    @property
    def vpc_cidrs(self) -> tuple[str, ...]:
        """The VPC's first block, and that of the nodes where it is another one."""
        nodes = self.nodes_cidr
        apart = nodes and not IPv4Network(nodes).overlaps(IPv4Network(self.vpc_cidr))
        return (self.vpc_cidr, nodes) if nodes and apart else (self.vpc_cidr,)

    def vpc(self, scope: Construct) -> ec2.IVpc:
        if self.made:
            return self.made.vpc
        return existing_vpc(scope, "Vpc", self.vpc_id, cidr=self.vpc_cidr)

    def subnet(self, scope: Construct) -> ec2.ISubnet:
        """Of the nodes."""
        return self.made.subnet if self.made else existing_subnet(scope, "Nodes", self.subnet_id)

    def further_subnets(self, scope: Construct) -> dict[str, ec2.ISubnet]:
        """Of nodes in other zones, by zone id."""
        if self.made:
            return dict(self.made.further_subnets)
        return {
            zone: existing_subnet(scope, f"Nodes-{zone}", subnet_id)
            for zone, subnet_id in self.further_subnet_ids.items()
        }

    def security_groups(self, scope: Construct) -> list[ec2.ISecurityGroup]:
        """Of the nodes; each admits itself."""
        if self.made:
            return list(self.made.security_groups)
        return [
            ec2.SecurityGroup.from_security_group_id(
                scope, f"NodeSecurityGroup{number or ''}", group_id, mutable=False
            )
            for number, group_id in enumerate(self.security_group_ids)
        ]

    def connectable(self, scope: Construct) -> ec2.IConnectable:
        """The nodes, as what is admitted somewhere."""
        return cast("ec2.IConnectable", ec2.Connections(security_groups=self.security_groups(scope)))

    def database_subnets(self, scope: Construct, subnet_ids: Sequence[str] = ()) -> list[ec2.ISubnet]:
        """Of the accounting database; `subnet_ids` where the file names them."""
        return _subnets(
            scope,
            "DatabaseSubnet",
            () if subnet_ids or self.made is None else self.made.database_subnets,
            subnet_ids or self.database_subnet_ids,
        )

    def control_plane_subnets(self, scope: Construct) -> list[ec2.ISubnet]:
        return _subnets(
            scope,
            "ControlPlaneSubnet",
            self.made.control_plane_subnets if self.made else (),
            self.control_plane_subnet_ids,
        )

    def ids_only(self) -> NetworkParts:
        """For other stacks."""
        return replace(self, made=None)


def _subnets(
    scope: Construct, name: str, new_subnets: Sequence[ec2.ISubnet], subnet_ids: Sequence[str]
) -> list[ec2.ISubnet]:
    return list(new_subnets) or [
        existing_subnet(scope, f"{name}{number}", subnet_id)
        for number, subnet_id in enumerate(subnet_ids, start=1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketParts:
    """Names of the buckets, and who fills one of them."""

    scripts: str
    data: str | None = None
    """The environment's own bucket for data; None unless an association asks for it."""
    upload_role_arn: str | None = None
    """Uploads the lifecycle scripts; None where the bucket exists."""
    made: Mapping[str, s3.IBucket] = field(default_factory=dict[str, s3.IBucket])
    """The buckets, by field."""
    made_upload_role: iam.IRole | None = None

    def scripts_bucket(self, scope: Construct, key: kms.IKey) -> s3.IBucket:
        return self.made.get("scripts") or s3.Bucket.from_bucket_attributes(
            scope, "ScriptsBucket", bucket_name=self.scripts, encryption_key=key
        )

    def data_bucket(self, scope: Construct) -> s3.IBucket | None:
        if self.data is None:
            return None
        return self.made.get("data") or s3.Bucket.from_bucket_name(scope, "DataBucket", self.data)

    def upload_role(self, scope: Construct) -> iam.IRole | None:
        """Uploads the scripts; None where the construct makes its own."""
        if self.upload_role_arn is None:
            return None
        return self.made_upload_role or iam.Role.from_role_arn(
            scope, "UploadRole", self.upload_role_arn, mutable=False
        )

    def ids_only(self) -> BucketParts:
        """For other stacks."""
        return replace(self, made={}, made_upload_role=None)


FileSystem = Literal["lustre", "open_zfs", "accounting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFileSystems:
    """The objects of file systems and database."""

    lustre: ILustreFileSystem | None = None
    further_lustre: Mapping[str, ILustreFileSystem] = field(default_factory=dict[str, ILustreFileSystem])
    open_zfs: IOpenZfsFileSystem | None = None
    accounting: IAccountingDatabase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemParts:
    """What is mounted, and the accounting database; None where there is none."""

    lustre: LustreMount | None = None
    further_lustre: Mapping[str, LustreMount] = field(default_factory=dict[str, LustreMount])
    """By name, as `storage.further_lustre` has them."""
    open_zfs: OpenZfsMount | None = None
    accounting: Accounting | None = None
    database_id: str | None = None
    """Of an accounting database that is made here."""
    group_ids: Mapping[FileSystem, str] = field(default_factory=dict["FileSystem", str])
    """Security groups of those that exist: their clients are admitted where the clients are. What is made
    admits them where it is made."""
    further_group_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The same of further Lustre file systems, by name."""
    made: MadeFileSystems = MadeFileSystems()

    @property
    def lustres(self) -> dict[str, LustreMount]:
        """All Lustre file systems by name; the first is `storage.lustre`."""
        first = {FIRST_LUSTRE: self.lustre} if self.lustre else {}
        return {**first, **self.further_lustre}

    @staticmethod
    def of(
        *,
        lustre: ILustreFileSystem | None,
        further_lustre: Mapping[str, ILustreFileSystem],
        open_zfs: IOpenZfsFileSystem | None,
        accounting: IAccountingDatabase | None,
    ) -> FileSystemParts:
        """Of objects that exist."""
        return FileSystemParts(
            lustre=lustre.mount if lustre else None,
            further_lustre=mounts_of(further_lustre),
            open_zfs=open_zfs.mount if open_zfs else None,
            accounting=accounting.accounting if accounting else None,
            made=MadeFileSystems(
                lustre=lustre, further_lustre=further_lustre, open_zfs=open_zfs, accounting=accounting
            ),
        )

    def with_given(self, others: FileSystemParts) -> FileSystemParts:
        """The same with what was given instead of its own."""
        return replace(
            self,
            lustre=others.lustre or self.lustre,
            further_lustre={**self.further_lustre, **others.further_lustre},
            open_zfs=others.open_zfs or self.open_zfs,
            accounting=others.accounting or self.accounting,
            made=MadeFileSystems(
                lustre=others.made.lustre or self.made.lustre,
                further_lustre={**self.made.further_lustre, **others.made.further_lustre},
                open_zfs=others.made.open_zfs or self.made.open_zfs,
                accounting=others.made.accounting or self.made.accounting,
            ),
        )

    def lustre_in(self, scope: Construct, construct_id: str = "Lustre") -> ILustreFileSystem | None:
        if self.lustre is None:
            return None
        group = self.group_ids.get("lustre")
        return self.made.lustre or _imported(scope, construct_id, self.lustre, group, "LustreSecurityGroup")

    def further_lustre_in(
        self, scope: Construct, construct_id: str = "Lustre"
    ) -> dict[str, ILustreFileSystem]:
        """Further Lustre file systems by name; each has its name before `construct_id`."""
        return {
            name: self.made.further_lustre.get(name)
            or _imported(
                scope,
                f"{name.capitalize()}{construct_id}",
                mount,
                self.further_group_ids.get(name),
                f"{name.capitalize()}LustreSecurityGroup",
            )
            for name, mount in self.further_lustre.items()
        }

    def open_zfs_in(self, scope: Construct) -> IOpenZfsFileSystem | None:
        if self.open_zfs is None:
            return None
        return self.made.open_zfs or OpenZfsFileSystem.from_open_zfs_attributes(
            scope,
            "OpenZfs",
            file_system_id=self.open_zfs.file_system_id,
            dns_name=self.open_zfs.dns_name,
            root_volume_id=self.open_zfs.volume_id,
            mount_path=self.open_zfs.path,
            security_group=self._group(scope, "open_zfs"),
        )

    def accounting_in(self, scope: Construct, key: kms.IKey) -> IAccountingDatabase | None:
        """The database; `key` encrypts its secret where the file names no other."""
        database = self.accounting
        if database is None:
            return None
        if self.made.accounting:
            return self.made.accounting
        own = database.secret_key_arn
        secret = secretsmanager.Secret.from_secret_attributes(
            scope,
            "AccountingSecret",
            # whether the random characters at its end are there decides nothing: it is used as it is
            secret_partial_arn=database.secret_arn,
            encryption_key=kms.Key.from_key_arn(scope, "AccountingKey", own) if own else key,
        )
        return AccountingDatabase.from_accounting_attributes(
            scope,
            "Accounting",
            endpoint=database.endpoint,
            secret=secret,
            port=database.port,
            database_name=database.database_name,
            username=database.username,
            security_group=self._group(scope, "accounting"),
        )

    def _group(self, scope: Construct, server: FileSystem) -> ec2.ISecurityGroup | None:
        group_id = self.group_ids.get(server)
        if group_id is None:
            return None
        name = f"{server.title().replace('_', '')}SecurityGroup"
        return ec2.SecurityGroup.from_security_group_id(scope, name, group_id, mutable=False)

    def ids_only(self) -> FileSystemParts:
        """For other stacks."""
        return replace(self, made=MadeFileSystems())


def _imported(
    scope: Construct, construct_id: str, mount: LustreMount, group_id: str | None, group_name: str
) -> ILustreFileSystem:
    group = None
    if group_id is not None:
        group = ec2.SecurityGroup.from_security_group_id(scope, group_name, group_id, mutable=False)
    return LustreFileSystem.from_lustre_attributes(
        scope,
        construct_id,
        file_system_id=mount.file_system_id,
        dns_name=mount.dns_name,
        mount_name=mount.mount_name,
        mount_path=mount.path,
        efa=mount.efa,
        security_group=group,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityParts:
    """Where metrics and alerts go."""

    topic_arn: str
    metrics: MetricsDestination | None = None
    """None where nothing collects metrics of nodes."""
    grafana_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageParts:
    """What the cluster must know of everything that holds data."""

    buckets: BucketParts
    file_systems: FileSystemParts


def removal(environment: Environment) -> RemovalPolicy:
    """What happens to file systems, and to what they need, when they leave their stack.

    Nothing is retained when the stack that first creates it is rolled back: a file system that was never used
    would cost as much as one in use, and resources with fixed names would block the next attempt.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if environment.protect else RemovalPolicy.DESTROY
