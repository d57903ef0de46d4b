"""Rules on: where file systems and disks are mounted on the nodes of a Slurm cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import assert_never

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.findings import YamlPath
from ultracluster.config.orchestrator import Eks, HyperPodEks, HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.remedy import write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HYPERPOD, MNT, SLURM
from ultracluster.rules.sources import PCLUSTER

DATE = "2026-11-21"
FSX_API = "SageMaker API reference, ClusterFsxLustreConfig and ClusterFsxOpenZfsConfig (MountPath)"


@MNT.error(
    1,
    f"{FSX_API}; {PCLUSTER}, DuplicateMountDirValidator (a warning there for local disks); "
    "mount(8): a mount hides what was mounted there before",
    DATE,
)
def mounts_differ(cluster: Cluster) -> Breaches:
    """File systems and disks are mounted in different places."""
    seen: dict[PurePosixPath, list[YamlPath]] = {}
    for path, place in _mounts(cluster).items():
        others = seen.setdefault(_normal(place), [])
        others.append(path)
        if any(_on_one_node(cluster, path, other) for other in others[:-1]):
            yield at(*path).breach(
                f"{place} is the mount of another file system already: one hides the other.",
                write(_free_place(cluster, path)),
            )


@MNT.error(
    2,
    "Filesystem Hierarchy Standard 3.0; SageMaker API reference, ClusterEbsVolumeConfig "
    "(/opt/sagemaker); awslabs/awsome-distributed-ai, hyperpod-mental-model.md; "
    f"{PCLUSTER}, SharedStorageMountDirValidator",
    DATE,
)
def mounts_spare_system(cluster: Cluster) -> Breaches:
    """No mount hides a directory of the system."""
    folders = _own_folders(cluster)
    for path, place in _mounts(cluster).items():
        if hidden := _hidden(_normal(place), folders):
            what = {**_SYSTEM, **folders.within}.get(hidden) or "part of the operating system"
            yield at(*path).breach(
                f"a mount at {place} would hide {hidden}, which holds {what}.",
                write(_free_place(cluster, path)),
            )


@MNT.error(
    3,
    "ParallelCluster User Guide, SharedStorage (MountDir); OverlappingMountDirValidator of 3.16.1 "
    "means to refuse it and compares names instead; Filesystem Hierarchy Standard 3.0",
    DATE,
    kinds=SLURM - HYPERPOD,
)
def mounts_not_nested(cluster: Cluster) -> Breaches:
    """No mount lies within another."""
    for path, place, outer in _nested(cluster):
        yield at(*path).breach(
            f"{place} lies within the mount {outer}: it is hidden on nodes that mount {outer} last, and "
            "hangs when that one does.",
            write(_free_place(cluster, path)),
        )


@MNT.warning(4, FSX_API, DATE, kinds=SLURM & HYPERPOD)
def mounts_in_unknown_order(cluster: Cluster) -> Breaches:
    """No file system is mounted inside another."""
    for path, place, outer in _nested(cluster):
        yield at(*path).breach(
            f"{place} lies within the mount {outer}; the order in which HyperPod mounts is not published, "
            "and in the wrong one it is hidden.",
            write(_free_place(cluster, path)),
        )


_SOFTWARE = "the software of the image"
_SYSTEM: dict[str, str] = {
    "/bin": "", "/boot": "", "/dev": "", "/etc": "", "/lib": "", "/lib64": "", "/proc": "",
    "/root": "", "/run": "", "/sbin": "", "/sys": "", "/usr": "",
    "/": _SOFTWARE,
    "/opt": _SOFTWARE,
    "/tmp": "the staging area of lifecycle scripts and of jobs",  # noqa: S108
    "/var": "logs and Slurm's spool",
    "/opt/amazon": "EFA, MPI and the NCCL plugin",
    "/opt/aws": "AWS's agents",
    "/opt/dlami": "the local NVMe disks",
    "/opt/slurm": "Slurm",
}  # fmt: skip
"""What all nodes have there; a mount on it, or within it, would hide that."""
_ITSELF_ONLY = ("/", "/opt")
"""What is mounted within these hides nothing."""


@dataclass(frozen=True, slots=True)
class _OwnFolders:
    """Folders that the nodes of one orchestrator have."""

    within: Mapping[str, str] = field(default_factory=dict[str, str])
    """A mount on them or within them would hide what the words say."""
    itself: tuple[str, ...] = ()
    """Only a mount on the folder itself is refused."""
    disks: tuple[YamlPath, str] | None = None
    """Where its scripts mount the local disks, by the place of the setting; None: where no rule minds."""


def _own_folders(cluster: Cluster) -> _OwnFolders:
    match cluster.settings:
        case HyperPodSlurm() | HyperPodEks():
            return _OwnFolders(
                {"/opt/ml": "HyperPod's own configuration", "/opt/sagemaker": "the second EBS volume"}
            )
        case ParallelCluster() as settings:
            return _OwnFolders(
                {"/opt/parallelcluster": "ParallelCluster's own configuration and Python"},
                parallelcluster().reserved_mount_paths,
                (("orchestrator", "nvme_mount_path"), settings.nvme_mount_path),
            )
        case Pcs() | Eks():
            return _OwnFolders()
        case _ as never:
            assert_never(never)


def _hidden(place: PurePosixPath, own: _OwnFolders) -> str:
    """What a mount there would hide; empty if nothing."""
    for folder in (*_SYSTEM, *own.within):
        if str(place) == folder or (folder not in _ITSELF_ONLY and place.is_relative_to(folder)):
            return folder
    return str(place) if str(place) in own.itself else ""


def _nested(cluster: Cluster) -> Iterator[tuple[YamlPath, str, str]]:
    """(where it stands, the inner mount, the outer one)."""
    mounts = _mounts(cluster)
    for path, place in mounts.items():
        for other, outer in mounts.items():
            if _normal(outer) in _normal(place).parents and _on_one_node(cluster, path, other):
                yield path, place, outer


def _on_one_node(cluster: Cluster, path: YamlPath, other: YamlPath) -> bool:
    """Whether some group has both mounts: Lustre file systems may be for different groups."""
    lustres = cluster.lustres
    one, two = lustres.get(_lustre_at(path)), lustres.get(_lustre_at(other))
    return not one or not two or any(one.mounted_by(name) and two.mounted_by(name) for name in cluster.groups)


def _lustre_at(path: YamlPath) -> str:
    return str(path[2]) if "further_lustre" in path else ".".join(map(str, path[:2]))


def _mounts(cluster: Cluster) -> Mapping[YamlPath, str]:
    """Where something is mounted, by its place in the file."""
    storage = cluster.environment.storage
    mounts: dict[YamlPath, str] = {
        ("storage", key, "mount_path"): system.mount_path
        for key, system in (("lustre", storage.lustre), ("openzfs", storage.openzfs))
        if system
    }
    for name, one in storage.further_lustre.items():
        mounts["storage", "further_lustre", name, "mount_path"] = one.mount_path
    disks = _own_folders(cluster).disks
    compute = cluster.with_role("compute").values()
    if disks and any(group.type and group.type.local_nvme_disks for group in compute):
        path, place = disks
        mounts[path] = place
    return mounts


def _normal(path: str) -> PurePosixPath:
    """Without `//`, `.` and `..`."""
    parts: list[str] = []
    for part in PurePosixPath(path).parts[1:]:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return PurePosixPath("/", *parts)


_USUAL = {
    "lustre": ("/fsx", "/lustre", "/data"),
    "openzfs": ("/home", "/shared", "/homes"),
    "orchestrator": ("/scratch", "/local", "/nvme"),
}
"""Where each is mounted by custom: what stands below `storage`, and the local disks."""


def _free_place(cluster: Cluster, path: YamlPath) -> str:
    taken = {_normal(place) for place in _mounts(cluster).values()}
    if "further_lustre" in path:
        named = f"/{path[2]}"
        return next(one for one in (named, f"/fsx-{path[2]}", f"{named}-data") if _normal(one) not in taken)
    usual = next(places for key, places in _USUAL.items() if key in path)
    return next(place for place in usual if _normal(place) not in taken)
