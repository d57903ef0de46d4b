"""Rules on: where file systems and disks are mounted on the nodes of a Slurm cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.orchestrator import OrchestratorKind, ParallelCluster
from ultracluster.config.remedy import write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import MNT

DATE = "2026-11-21"
FSX_API = "SageMaker API reference, ClusterFsxLustreConfig and ClusterFsxOpenZfsConfig (MountPath)"
PACKAGE = "aws-parallelcluster 3.16.1"


@MNT.rule(
    1,
    "error",
    "File systems and disks are mounted in different places",
    source=f"{FSX_API}; {PACKAGE}, DuplicateMountDirValidator (a warning there for local disks)",
    date=DATE,
)
def mounts_differ(environment: Environment) -> Iterator[Breach]:
    seen: dict[PurePosixPath, str] = {}
    for path, place in _mounts(environment).items():
        first = seen.setdefault(_normal(place), place)
        if first is not place:
            yield Breach(
                path,
                f"{place} is the mount of another file system already: one hides the other.",
                write(_free_place(environment, path)),
            )


@MNT.rule(
    2,
    "error",
    "No mount hides a directory of the system",
    source="Filesystem Hierarchy Standard 3.0; SageMaker API reference, ClusterEbsVolumeConfig "
    "(/opt/sagemaker); awslabs/awsome-distributed-ai, hyperpod-mental-model.md; "
    f"{PACKAGE}, SharedStorageMountDirValidator",
    date=DATE,
)
def mounts_spare_system(environment: Environment) -> Iterator[Breach]:
    for path, place in _mounts(environment).items():
        if hidden := _hidden(_normal(place), environment.orchestrator.kind):
            what = _SYSTEM.get(hidden) or "part of the operating system"
            yield Breach(
                path,
                f"a mount at {place} would hide {hidden}, which holds {what}.",
                write(_free_place(environment, path)),
            )


@MNT.rule(
    3,
    "error",
    "No mount lies within another",
    source="ParallelCluster User Guide, SharedStorage (MountDir); OverlappingMountDirValidator of 3.16.1 "
    "means to refuse it and compares names instead; Filesystem Hierarchy Standard 3.0",
    date=DATE,
    kinds=frozenset({"parallelcluster", "pcs"}),
)
def mounts_not_nested(environment: Environment) -> Iterator[Breach]:
    for path, place, outer in _nested(environment):
        yield Breach(
            path,
            f"{place} lies within the mount {outer}: it is hidden on nodes that mount {outer} last, and "
            "hangs when that one does.",
            write(_free_place(environment, path)),
        )


@MNT.rule(
    4,
    "warning",
    "No file system is mounted inside another",
    source=FSX_API,
    date=DATE,
    kinds=frozenset({"hyperpod-slurm"}),
)
def mounts_in_unknown_order(environment: Environment) -> Iterator[Breach]:
    for path, place, outer in _nested(environment):
        yield Breach(
            path,
            f"{place} lies within the mount {outer}; the order in which HyperPod mounts is not published, "
            "and in the wrong one it is hidden.",
            write(_free_place(environment, path)),
        )


_SOFTWARE = "the software of the image"
_SYSTEM: Mapping[str, str] = {
    "/bin": "", "/boot": "", "/dev": "", "/etc": "", "/lib": "", "/lib64": "", "/proc": "",
    "/root": "", "/run": "", "/sbin": "", "/sys": "", "/usr": "",
    "/": _SOFTWARE,
    "/opt": _SOFTWARE,
    "/tmp": "the staging area of lifecycle scripts and of jobs",  # noqa: S108
    "/var": "logs and Slurm's spool",
    "/opt/amazon": "EFA, MPI and the NCCL plugin",
    "/opt/aws": "AWS's agents",
    "/opt/dlami": "the local NVMe disks",
    "/opt/ml": "HyperPod's own configuration",
    "/opt/parallelcluster": "ParallelCluster's own configuration and Python",
    "/opt/sagemaker": "the second EBS volume",
    "/opt/slurm": "Slurm",
}  # fmt: skip
"""What nodes have there; a mount on it, or within it, would hide that."""
_ALONE = ("/", "/opt")
"""Only the folder itself: what is mounted within it hides nothing."""
_OF: Mapping[str, OrchestratorKind] = {
    "/opt/ml": "hyperpod-slurm",
    "/opt/parallelcluster": "parallelcluster",
    "/opt/sagemaker": "hyperpod-slurm",
}
"""Whose nodes have it, where not all have."""


def _hidden(place: PurePosixPath, kind: OrchestratorKind) -> str:
    """What a mount there would hide; empty if nothing."""
    for one in _SYSTEM:
        if _OF.get(one, kind) == kind and (
            str(place) == one or (one not in _ALONE and place.is_relative_to(one))
        ):
            return one
    # ParallelCluster refuses some folders more, but not what is within them
    refused = parallelcluster().reserved_mount_paths if kind == "parallelcluster" else ()
    return str(place) if str(place) in refused else ""


def _nested(environment: Environment) -> Iterator[tuple[Path, str, str]]:
    """(where it stands, the inner mount, the outer one)."""
    mounts = _mounts(environment)
    for path, place in mounts.items():
        for outer in mounts.values():
            if _normal(outer) in _normal(place).parents:
                yield path, place, outer


def _mounts(environment: Environment) -> Mapping[Path, str]:
    """Where something is mounted, by its place in the file."""
    storage, orchestrator = environment.storage, environment.orchestrator
    mounts: dict[Path, str] = {
        ("storage", key, "mount_path"): system.mount_path
        for key, system in (("lustre", storage.lustre), ("openzfs", storage.openzfs))
        if system
    }
    if isinstance(orchestrator, ParallelCluster) and any(
        (known := instance_type_of(environment, group)) and known.local_nvme_disks
        for group in environment.groups("compute").values()
    ):
        mounts["orchestrator", "nvme_mount_path"] = orchestrator.nvme_mount_path
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


def _free_place(environment: Environment, path: Path) -> str:
    taken = {_normal(place) for place in _mounts(environment).values()}
    usual = next(places for key, places in _USUAL.items() if key in path)
    return next(place for place in usual if _normal(place) not in taken)
