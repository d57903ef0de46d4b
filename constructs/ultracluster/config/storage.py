"""File systems, buckets, key and accounting database of one environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import (
    ON_ONE_LINE,
    OR_TOKEN,
    SEEN,
    AbsolutePath,
    BucketName,
    Line,
    Many,
    Model,
    SecurityGroupId,
    SubnetId,
    TimeOfDay,
)
from ultracluster.config.nodes import GroupName

Event = Literal["new", "changed", "deleted"]
KeyArn = Annotated[
    str, Field(pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$"), OR_TOKEN
]
FileSystemId = Annotated[str, Field(pattern=r"^fs-[0-9a-f]{8,17}$"), OR_TOKEN]
EfaInterfaces = Literal[8, 4, 2, 1]
LustreName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$", examples=["rack2"])]
VolumeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$", examples=["datasets"])]
"""Part of a claim's name. Without `-`: behind it stands the namespace in the volume's."""
FIRST_LUSTRE = "storage.lustre"
"""What the first file system is called beside those of `storage.further_lustre`, none of which can have this
name."""


class ExistingKey(Model):
    """A customer-managed KMS key made elsewhere. Its policy must let FSx, S3, EC2, RDS, Secrets Manager
    and CloudWatch Logs use it."""

    arn: KeyArn


class KeysByPurpose(Model):
    """Keys made elsewhere, for accounts that have one for each purpose; `key` is for what is left out."""

    volumes: ExistingKey | None = None
    """Of nodes and of Kubernetes block storage. ParallelCluster encrypts its volumes with AWS's key."""
    file_systems: ExistingKey | None = None
    """Of FSx file systems and of Lustre's logs."""
    buckets: ExistingKey | None = None
    """Of the buckets that are made: scripts and data."""
    logs: ExistingKey | None = None
    """Of log groups that are made: flow logs, the Kubernetes control plane, calls of the deploy itself."""
    secrets: ExistingKey | None = None
    """Of the accounting database and its password, and of the secrets in a Kubernetes control plane."""


class DataRepository(Model):
    """A data repository association: a folder of the file system tied to an S3 prefix."""

    bucket: BucketName | None = None
    """An existing bucket; without one the environment's own data bucket is made and used."""
    prefix: Annotated[str, Field(pattern=f"^([^/]{SEEN}*)?$", max_length=900), ON_ONE_LINE] | None = None
    """Key prefix within the bucket, without a leading slash; the whole bucket by default."""
    import_events: Many[Event] = ()
    """Changes in S3 that appear in the file system by themselves."""
    export_events: Many[Event] = ()
    """Changes in the file system that are written to S3 by themselves."""
    import_existing: bool = True
    """List the objects that are in S3 at creation. (AWS's own default is not to list them.)"""
    chunk_mib: Annotated[int, Field(ge=1, le=512_000)] = 1024
    """Stripe width in MiB of imported files."""


class Backups(Model):
    """Daily backups of a file system."""

    retention_days: Annotated[int, Field(ge=0, le=90)] = 0
    """Days a backup is kept; 0 is no backups."""
    start_time: TimeOfDay | None = None
    """Start of the daily window, `HH:MM` UTC; only with a retention."""


class RootSquash(Model):
    """Which user root on a client becomes on the Lustre file system."""

    uid: Annotated[int, Field(ge=0, le=4_294_967_294)]
    gid: Annotated[int, Field(ge=0, le=4_294_967_294)]
    exempt_clients: Annotated[
        Many[Annotated[str, Field(pattern=r"^[A-Za-z0-9.,:*\[\]@-]+$", max_length=255)]], Field(max_length=64)
    ] = ()
    """NIDs whose root stays root, e.g. `10.0.1.6@tcp` or `10.0.[2-10].[1-255]@tcp`."""


class _NewLustre(Model):
    mount_path: AbsolutePath = "/fsx"
    """Where nodes mount it."""
    groups: Many[GroupName] = ()
    """Node groups that mount it; all by default. Not on ParallelCluster, whose nodes mount everything."""
    version: Literal["2.10", "2.12", "2.15"] = "2.15"
    """Lustre server version. Clients of 2.15 are refused by 2.10."""
    compression: Literal["none", "lz4"] = "lz4"
    """Transparent compression of file data."""
    maintenance_window: Annotated[str, Field(pattern=r"^[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    """`d:HH:MM` UTC, 1 is Monday."""
    log_level: Literal["disabled", "warn-only", "error-only", "warn-error"] = "disabled"
    """Data repository events that go to CloudWatch Logs. CloudFormation's schema has it only since
    late 2026; not every Region may."""
    root_squash: RootSquash | None = None
    """CloudFormation cannot set it: a custom resource calls UpdateFileSystem after creation."""


class _Persistent(_NewLustre):
    backups: Backups = Backups.model_construct()


class ScratchLustre(_NewLustre):
    """Unreplicated SSD for data that may be lost: no backups, no customer key."""

    deployment: Literal["scratch-1", "scratch-2"] = "scratch-2"
    capacity_gib: Annotated[int, Field(gt=0)]
    """Storage in GiB."""
    data_repositories: dict[Line, DataRepository] = {}
    """Folder of the file system -> S3 (scratch-2 only)."""


class Persistent1SsdLustre(_Persistent):
    """Replicated SSD of the first generation, for Regions without the second."""

    deployment: Literal["persistent-1-ssd"] = "persistent-1-ssd"
    capacity_gib: Annotated[int, Field(gt=0)]
    """Storage in GiB."""
    throughput_mbps_per_tib: Annotated[int, Field(gt=0)]
    """Throughput tier in MB/s per TiB: 50, 100 or 200."""
    data_repositories: dict[Line, DataRepository] = {}
    """Folder of the file system -> S3."""


class Persistent1HddLustre(_Persistent):
    """Replicated hard disks of the first generation."""

    deployment: Literal["persistent-1-hdd"] = "persistent-1-hdd"
    capacity_gib: Annotated[int, Field(gt=0)]
    """Storage in GiB."""
    throughput_mbps_per_tib: Annotated[int, Field(gt=0)]
    """Throughput tier in MB/s per TiB: 12 or 40."""
    drive_cache: Literal["none", "read"]
    """SSD read cache in front of the disks."""
    data_repositories: dict[Line, DataRepository] = {}
    """Folder of the file system -> S3."""


class Persistent2SsdLustre(_Persistent):
    """Replicated SSD: the file system for training, over EFA where `efa` is on."""

    deployment: Literal["persistent-2-ssd"] = "persistent-2-ssd"
    capacity_gib: Annotated[int, Field(gt=0)]
    """Storage in GiB. With EFA the smallest size and the step depend on the throughput tier."""
    throughput_mbps_per_tib: Annotated[int, Field(gt=0)]
    """Throughput tier in MB/s per TiB: 125, 250, 500 or 1000."""
    metadata_iops: Annotated[int, Field(gt=0)] | Literal["automatic"] | None = "automatic"
    """Metadata operations per second; `automatic` follows the capacity; null is none configured."""
    efa: bool = False
    """EFA between clients and servers; only at creation."""
    efa_interfaces_per_client: EfaInterfaces | None = None
    """EFA interfaces that each client binds; by default those of FSx's set-up. Each is one of the file
    system's 1,024 connections (FSx for Lustre User Guide, Configuring EFA clients): fewer serve more nodes,
    each slower."""
    gds: bool = False
    """Clients read into accelerator memory (GPUDirect Storage); needs `efa`."""
    data_repositories: dict[Line, DataRepository] = {}
    """Folder of the file system -> S3."""


class ReadCache(Model):
    """SSD read cache of an Intelligent-Tiering file system."""

    mode: Literal["none", "proportional", "sized"] = "proportional"
    gib: Annotated[int, Field(gt=0)] | None = None
    """Size in GiB, only with `mode: sized`."""


class IntelligentTieringLustre(_Persistent):
    """Elastic storage that moves cold data to cheaper tiers; cannot be tied to S3."""

    deployment: Literal["intelligent-tiering"] = "intelligent-tiering"
    throughput_mbps: Annotated[int, Field(gt=0)]
    """Throughput in MB/s, in steps of 4000; may only grow."""
    metadata_iops: Annotated[int, Field(gt=0)]
    """Metadata operations per second: 6000 or 12000."""
    read_cache: ReadCache = ReadCache.model_construct()
    efa: bool = False
    """EFA between clients and servers; only at creation."""
    efa_interfaces_per_client: EfaInterfaces | None = None
    """EFA interfaces that each client binds; by default those of FSx's set-up. Each is one of the file
    system's 1,024 connections (FSx for Lustre User Guide, Configuring EFA clients): fewer serve more nodes,
    each slower."""
    gds: bool = False
    """Clients read into accelerator memory (GPUDirect Storage); needs `efa`."""


class ExistingLustre(Model):
    """A Lustre file system made elsewhere, e.g. by another environment."""

    deployment: Literal["existing"] = "existing"
    id: FileSystemId
    dns_name: Annotated[str, Field(pattern=r"^f[sc]-[0-9a-z]+\.fsx\.[a-z0-9-]+\.[a-z.]+$"), OR_TOKEN]
    mount_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,8}$"), OR_TOKEN]
    security_group_id: SecurityGroupId
    """The file system's own group: the nodes are admitted by rules added to it."""
    mount_path: AbsolutePath = "/fsx"
    """Where nodes mount it."""
    groups: Many[GroupName] = ()
    """Node groups that mount it; all by default. Not on ParallelCluster, whose nodes mount everything."""
    efa: bool = False
    """It was created with EFA."""
    efa_interfaces_per_client: EfaInterfaces | None = None
    """EFA interfaces that each client binds; by default those of FSx's set-up. Each is one of the file
    system's 1,024 connections (FSx for Lustre User Guide, Configuring EFA clients): fewer serve more nodes,
    each slower."""
    gds: bool = False
    """Clients read into accelerator memory (GPUDirect Storage); needs `efa`."""


Lustre = Annotated[
    ScratchLustre
    | Persistent1SsdLustre
    | Persistent1HddLustre
    | Persistent2SsdLustre
    | IntelligentTieringLustre
    | ExistingLustre,
    Field(discriminator="deployment"),
]


class NfsRootSquash(Model):
    """Root of a client is nobody on the OpenZFS file system (exports(5), `root_squash`).

    Folders for users and teams are made by root: by an exempt client, or before this is switched on. Nodes
    that came up before have made the homes of their image's users."""

    exempt_clients: Annotated[
        Many[Annotated[str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?$")]],
        Field(max_length=24),
    ] = ()
    """Hosts and networks whose root stays root: IPv4, as `10.0.1.6` or `10.0.1.0/28`."""


class NewOpenZfs(Model):
    """An FSx for OpenZFS file system for home directories."""

    deployment: Literal["single-az-1", "single-az-2", "single-az-ha-1", "single-az-ha-2"] = "single-az-2"
    """`-ha-` has a standby file server in the same zone; `-2` is the newer generation."""
    capacity_gib: Annotated[int, Field(gt=0)]
    """SSD storage in GiB."""
    throughput_mbps: Annotated[int, Field(gt=0)]
    """Throughput in MB/s."""
    mount_path: AbsolutePath = "/home"
    """Where nodes mount it."""
    backups: Backups = Backups.model_construct(retention_days=7)
    maintenance_window: Annotated[str, Field(pattern=r"^[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    """`d:HH:MM` UTC, 1 is Monday."""
    root_squash: NfsRootSquash | None = None
    """Root of nodes and pods is nobody on it. Off by default, because nodes make homes as root; people need
    none on Slurm nodes, and pods are not root in a `restricted` namespace. It is switched by a call of
    UpdateVolume and keeps the files; CloudFormation may replace the file system for it."""


class ExistingOpenZfs(Model):
    """An OpenZFS file system made elsewhere."""

    deployment: Literal["existing"] = "existing"
    id: FileSystemId
    dns_name: Annotated[str, Field(pattern=r"^fs-[0-9a-z]+\.fsx\.[a-z0-9-]+\.[a-z.]+$"), OR_TOKEN]
    volume_id: Annotated[str, Field(pattern=r"^fsvol-[0-9a-f]{17}$"), OR_TOKEN] | None = None
    """Its root volume; ParallelCluster asks for it."""
    security_group_id: SecurityGroupId
    """The file system's own group: the nodes are admitted by rules added to it."""
    mount_path: AbsolutePath = "/home"
    """Where nodes mount it."""


OpenZfs = Annotated[NewOpenZfs | ExistingOpenZfs, Field(discriminator="deployment")]


class RdsMySql(Model):
    """An RDS for MySQL instance that keeps Slurm's accounting; passwords are in Secrets Manager."""

    kind: Literal["rds-mysql"] = "rds-mysql"
    instance_class: Annotated[str, Field(pattern=r"^[a-z0-9]+\.[a-z0-9]+$")] = "m7g.large"
    """RDS instance class without the `db.` prefix."""
    engine_version: Annotated[str, Field(pattern=r"^8\.4\.[0-9]{1,3}$")] = "8.4.10"
    """RDS for MySQL version that it is created with; RDS raises it afterwards, and refuses a lower one.
    Source: RDS User Guide, MySQL on Amazon RDS versions."""
    storage_gib: Annotated[int, Field(ge=20, le=65_536)] = 100
    """Allocated storage in GiB."""
    multi_az: bool = False
    """A standby in `second_zone_id`."""
    second_zone_id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    """RDS requires subnets in two zones; this is the other one. Only with a VPC that is made."""
    subnet_ids: Annotated[Many[SubnetId], Field(max_length=2)] = ()
    """Two private subnets in two zones; only with `network.vpc`."""
    backup_retention_days: Annotated[int, Field(ge=1, le=35)] = 14
    """Days that automatic backups are kept."""
    database_name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_$]{0,62}$")] = "slurm_acct_db"
    """Schema that slurmdbd creates."""
    require_tls: bool | None = None
    """Refuse connections without TLS; by default where the controller's slurmdbd is known to speak it: with
    ParallelCluster (its User Guide, "Slurm accounting with AWS ParallelCluster"). TLS is always offered."""


class ExistingDatabase(Model):
    """A MySQL-compatible database made elsewhere."""

    kind: Literal["existing"] = "existing"
    endpoint: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9.-]+$"), OR_TOKEN]
    port: Annotated[int, Field(ge=1, le=65_535)] = 3306
    database_name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_$]{0,62}$")] = "slurm_acct_db"
    """Schema that slurmdbd creates."""
    secret_arn: Annotated[
        str,
        Field(pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]+$"),
        OR_TOKEN,
    ]
    """Secret with `username` and `password`."""
    username: Annotated[str, Field(min_length=1, max_length=32), ON_ONE_LINE] | None = None
    """The secret's `username`; ParallelCluster requires it in its configuration."""
    secret_key_arn: KeyArn | None = None
    """KMS key of that secret, if it has its own."""
    security_group_id: SecurityGroupId
    """The database's group: the nodes are admitted by a rule added to it."""


AccountingDatabase = Annotated[RdsMySql | ExistingDatabase, Field(discriminator="kind")]


class ExistingBucket(Model):
    """A bucket made elsewhere."""

    name: BucketName


class JobBucket(Model):
    """A folder in S3 that jobs may reach by a role of their own: users on Slurm nodes, or volumes of
    pods (docs/security.md)."""

    bucket: BucketName
    """A bucket made elsewhere, in the Region of the cluster; its policy must not refuse the role."""
    prefix: (
        Annotated[
            str, Field(pattern=r"^[A-Za-z0-9_.=+@-][A-Za-z0-9_.=+@/-]*$", max_length=900, examples=["runs"])
        ]
        | None
    ) = None
    """Folder within the bucket, without a leading slash; the whole bucket by default."""
    write: bool = False
    """Write and delete objects, too; by default jobs only list and read."""
    key: ExistingKey | None = None
    """KMS key of the bucket, where it has a customer-managed one. Its policy must let the account's IAM
    policies decide, or name the role."""


class Storage(Model):
    """What holds data. It outlives the cluster."""

    key: ExistingKey | None = None
    """Encrypt with this key instead of one that is made."""
    keys: KeysByPurpose = KeysByPurpose.model_construct()
    """Encrypt with a key for each purpose instead."""
    scripts_bucket: ExistingBucket | None = None
    """Put lifecycle scripts here instead of into a bucket that is made."""
    log_bucket: ExistingBucket | None = None
    """Send access logs of the buckets that are made here instead of to one that is made."""
    lustre: Lustre | None = None
    """The shared file system for data and checkpoints."""
    further_lustre: Annotated[dict[LustreName, Lustre], Field(max_length=16)] = {}
    """More Lustre file systems, by name: by purpose (scratch beside persistent), or by rack, where one does
    not take the EFA connections of all nodes. Each has a `mount_path` of its own, and the `groups` that mount
    it."""
    openzfs: OpenZfs | None = None
    """The file system for home directories."""
    accounting_database: AccountingDatabase | None = None
    """Slurm accounting; without one it is kept on the controller's own disk."""
    job_buckets: Many[JobBucket] = ()
    """Buckets that jobs on Slurm nodes reach directly. A data repository of `lustre` is the faster way to
    training data; this is for what does not go through a file system."""
