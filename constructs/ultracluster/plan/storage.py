"""File systems in figures, what ties them to S3, and where Slurm's accounting is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.storage import FIRST_LUSTRE, ExistingLustre
from ultracluster.model import Cluster
from ultracluster.model.checkpoints import lustre_speed
from ultracluster.model.job_access import job_access_roles


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemPlan:
    """A file system, made here or elsewhere."""

    kind: str
    """`Lustre` or `OpenZFS`."""
    deployment: str
    mount_path: str
    id: str = ""
    """Of one that exists."""
    capacity_gib: int | None = None
    """None: unknown, or elastic."""
    read_mbps: float | None = None
    write_mbps: float | None = None
    """MB/s that it takes for as long as it lasts."""
    fabric: str = "TCP"
    """`EFA` or `TCP`."""
    name: str = ""
    """Of one of `storage.further_lustre`."""
    groups: tuple[str, ...] = ()
    """Node groups that mount it; empty: all."""

    def __str__(self) -> str:
        on = f", on {', '.join(self.groups)} only" if self.groups else ""
        if self.id:
            return f"{self.id} (existing) at {self.mount_path}{on}"
        size = f"{self.capacity_gib:,} GiB" if self.capacity_gib else "elastic"
        if self.kind != "Lustre":
            return f"{size} {self.kind}, {self.read_mbps:,.0f} MB/s at {self.mount_path}"
        speed = f"{self.read_mbps:,.0f} MB/s"
        if self.write_mbps != self.read_mbps:
            speed += f" ({self.write_mbps:,.0f} writing)"
        return f"{size}, {speed} over {self.fabric} at {self.mount_path} ({self.deployment}){on}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryPlan:
    """A folder of a Lustre file system that is tied to S3."""

    folder: str
    bucket: str
    """Empty: the environment's own, which is made."""
    prefix: str
    import_events: tuple[str, ...]
    export_events: tuple[str, ...]
    file_system: str = ""
    """Name in `storage.further_lustre`; empty: the first."""


def lustre_plan(cluster: Cluster) -> FileSystemPlan | None:
    """The first Lustre file system; None without."""
    return _lustre("", cluster.lustre) if cluster.lustre else None


def further_lustre_plans(cluster: Cluster) -> tuple[FileSystemPlan, ...]:
    """Those of `storage.further_lustre`."""
    return tuple(_lustre(name, lustre) for name, lustre in cluster.lustres.items() if name != FIRST_LUSTRE)


def _lustre(name: str, lustre: LustreFacts) -> FileSystemPlan:
    fabric = "EFA" if lustre.efa else "TCP"
    settings, speed = lustre.settings, lustre_speed(lustre)
    return FileSystemPlan(
        kind="Lustre",
        deployment=settings.deployment,
        mount_path=lustre.mount_path,
        id=settings.id if isinstance(settings, ExistingLustre) else "",
        capacity_gib=lustre.capacity_gib,
        read_mbps=speed.read_mbps if speed else None,
        write_mbps=speed.write_mbps if speed else None,
        fabric=fabric,
        name=name,
        groups=lustre.groups,
    )


def home_plan(cluster: Cluster) -> FileSystemPlan | None:
    """The OpenZFS file system with the home directories; None without."""
    home = cluster.environment.storage.openzfs
    if home is None:
        return None
    if home.deployment == "existing":
        return FileSystemPlan(
            kind="OpenZFS", deployment="existing", mount_path=home.mount_path, id=home.id
        )  # fmt: skip
    return FileSystemPlan(
        kind="OpenZFS",
        deployment=home.deployment,
        mount_path=home.mount_path,
        capacity_gib=home.capacity_gib,
        read_mbps=home.throughput_mbps,
        write_mbps=home.throughput_mbps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBucketPlan:
    """A bucket that users' jobs reach by a role of their own."""

    bucket: str
    prefix: str
    """Empty: the whole bucket."""
    write: bool

    def __str__(self) -> str:
        does = "read and write" if self.write else "read"
        return f"{does} {'/'.join(part for part in (f's3://{self.bucket}', self.prefix) if part)}"


def job_bucket_plans(cluster: Cluster) -> tuple[JobBucketPlan, ...]:
    """What jobs reach in S3 besides file systems; nothing where no node hands out the role."""
    asked = cluster.environment.storage.job_buckets if job_access_roles(cluster) else ()
    return tuple(
        JobBucketPlan(bucket=one.bucket, prefix=(one.prefix or "").rstrip("/"), write=one.write)
        for one in asked
    )


def repository_plans(cluster: Cluster) -> tuple[RepositoryPlan, ...]:
    """Every folder that is tied to S3."""
    return tuple(
        RepositoryPlan(
            folder=folder,
            bucket=link.bucket or "",
            prefix=link.prefix or "",
            import_events=tuple(link.import_events),
            export_events=tuple(link.export_events),
            file_system="" if name == FIRST_LUSTRE else name,
        )
        for name, links in cluster.environment.all_data_repositories.items()
        for folder, link in links.items()
    )


def accounting_place(cluster: Cluster) -> str:
    """Where Slurm's accounting is kept; empty without Slurm."""
    settings = cluster.settings
    match settings:
        case Eks() | HyperPodEks():
            return ""
        case Pcs():
            return "kept by PCS" if settings.accounting.mode == "standard" else "none"
        case HyperPodSlurm():
            usual = "on the controller's disk"
        case ParallelCluster():
            usual = "none"
        case _ as never:
            assert_never(never)
    database = cluster.environment.storage.accounting_database
    if database is None:
        return usual
    if database.kind == "existing":
        return database.endpoint
    return f"RDS for MySQL, db.{database.instance_class}{', two zones' if database.multi_az else ''}"
