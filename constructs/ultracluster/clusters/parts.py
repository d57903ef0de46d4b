"""What a cluster is given: file systems to mount and a database for its accounting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreMount:
    """A Lustre file system that every node mounts."""

    dns_name: str
    mount_name: str
    path: str = "/fsx"
    efa: bool = False
    """It was created with EFA: nodes that can, reach it so."""
    file_system_id: str = ""
    """`fs-...`; ParallelCluster and Kubernetes ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenZfsMount:
    """An OpenZFS file system that every node mounts."""

    dns_name: str
    path: str = "/home"
    volume_id: str = ""
    """`fsvol-...` of its root volume; ParallelCluster asks for it."""
    file_system_id: str = ""
    """`fs-...`; Kubernetes asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """A MySQL-compatible database for slurmdbd."""

    endpoint: str
    secret_arn: str
    """Secret with `username` and `password`."""
    port: int = 3306
    database_name: str = "slurm_acct_db"
    secret_key_arn: str | None = None
    username: str = "slurm"
    """The secret's `username`; ParallelCluster asks for it."""
