"""What a cluster is given: file systems to mount and a database for its accounting."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.model.mounts import LustreMount, OpenZfsMount

__all__ = ["Accounting", "LustreMount", "OpenZfsMount"]


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
