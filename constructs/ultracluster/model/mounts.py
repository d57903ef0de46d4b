"""What a cluster is given: file systems, as `cluster.json` tells of them, and an accounting database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

OPENZFS_ROOT = "/fsx"
"""Where FSx for OpenZFS has the root volume of a file system."""

SLURMDBD_USER = "slurmdbd"
"""slurmdbd's user in an accounting database that is made here; it has rights on its own schema only."""

Mount = Mapping[str, str | bool]
Mounts = Mapping[str, Mapping[str, Any]]
"""The key `mounts` of `cluster.json`, by kind of file system: `lustre`, `openzfs`, and by name below
`further_lustre`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreMount:
    """A Lustre file system that nodes mount."""

    dns_name: str
    mount_name: str
    path: str = "/fsx"
    efa: bool = False
    """It was created with EFA: nodes that can, reach it so."""
    gds: bool = False
    """Nodes that can, read it straight into accelerator memory (GPUDirect Storage); only with EFA."""
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


def told(
    lustre: LustreMount | None,
    open_zfs: OpenZfsMount | None = None,
    further_lustre: Mapping[str, LustreMount] | None = None,
) -> Mounts:
    """The key `mounts` of `cluster.json`; values may be CDK tokens."""
    mounts: dict[str, dict[str, Any]] = {}
    if lustre:
        mounts["lustre"] = dict(_told(lustre))
    if open_zfs:
        mounts["openzfs"] = {
            "path": open_zfs.path,
            "dns_name": open_zfs.dns_name,
            "volume_path": OPENZFS_ROOT,
        }
    if further_lustre:
        mounts["further_lustre"] = {name: _told(mount) for name, mount in further_lustre.items()}
    return mounts


def _told(lustre: LustreMount) -> Mount:
    return {
        "path": lustre.path,
        "dns_name": lustre.dns_name,
        "mount_name": lustre.mount_name,
        "efa": lustre.efa,
    }


def as_arguments(mounts: Mounts) -> list[str]:
    """The same as pcs_node.sh takes it: the checksum of its folder is older than the names in it."""
    words: list[str] = []
    for kind, values in mounts.items():
        if kind == "further_lustre":
            for name, mount in cast("Mapping[str, Mount]", values).items():
                words += ["--further-lustre", name, *_words(mount)]
        else:
            words += [f"--{kind}", *_words(values)]
    return words


def _words(mount: Mount) -> list[str]:
    return [value if isinstance(value, str) else "yes" if value else "no" for value in mount.values()]
