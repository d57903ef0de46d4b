"""Rules on: HyperPod with Slurm. The cluster: configuration, lifecycle, mounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod import CONTINUOUS, adopt
from ultracluster.rules.hyperpod_slurm_groups import asked
from ultracluster.rules.hyperpod_slurm_types import RULES
from ultracluster.rules.hyperpod_types import COMMON

__all__ = ["RULES"]

STRATEGY = "SageMaker Developer Guide, Migrating to API-driven Slurm configuration"
LIFECYCLE = "SageMaker Developer Guide, Customize SageMaker HyperPod clusters with lifecycle scripts"
FSX_API = "SageMaker API reference, ClusterFsxLustreConfig and ClusterFsxOpenZfsConfig (MountPath)"


@RULES.rule(60, "error", "Continuous provisioning has no slurm_config_strategy", source=CONTINUOUS)
def strategy_with_continuous(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    strategy = orchestrator.slurm_config_strategy
    if orchestrator.provisioning == "continuous" and strategy:
        yield Breach(
            ("orchestrator", "slurm_config_strategy"),
            f"`{strategy}` with continuous provisioning: HyperPod refuses any strategy there, "
            "because it always merges.",
            "remove slurm_config_strategy",
        )


@RULES.rule(61, "error", "Classic provisioning has a slurm_config_strategy", source=STRATEGY)
def strategy_with_classic(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.provisioning == "classic" and not orchestrator.slurm_config_strategy:
        yield Breach(
            ("orchestrator", "slurm_config_strategy"),
            "without a strategy HyperPod takes a default on which AWS's own pages disagree "
            "(managed, merge); managed rolls updates back when a partition was edited by hand.",
            "slurm_config_strategy: merge, which keeps hand edits and leaves the way to "
            "continuous provisioning open",
        )


@RULES.rule(
    62,
    "error",
    "An accounting database goes with continuous provisioning",
    source="SageMaker API reference, ClusterOrchestratorSlurmConfig (AccountingDatabase)",
)
def accounting_is_continuous(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if database and asked(environment).provisioning == "classic":
        yield Breach(
            ("storage", "accounting_database"),
            f"an accounting database ({database.kind}) with classic provisioning: HyperPod takes "
            "one with continuous provisioning only.",
            "orchestrator.provisioning: continuous, or remove accounting_database",
        )


@RULES.rule(
    63,
    "warning",
    "A cluster name is used once with one accounting database",
    source="aws-samples/sample-physical-ai-scaffolding-kit#17",
    by_hand="sacctmgr list cluster",
)
def name_used_once(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if database and database.kind == "existing":
        name = environment.cluster_name
        yield Breach(
            ("storage", "accounting_database"),
            f"if a cluster `{name}` has written to {database.endpoint} before, Slurm's controller "
            "ends again and again with a cluster id mismatch: each creation has a new id.",
            f"orchestrator.cluster_name: {name}-2 when it was there before; else acknowledge this",
        )


@RULES.rule(
    64,
    "warning",
    "Lifecycle scripts run after the image's own set-up",
    source=f"{LIFECYCLE}; CloudFormation, AWS::SageMaker::Cluster LifeCycleConfig",
)
def lifecycle_on_create(environment: Environment) -> Iterator[Breach]:
    if asked(environment).lifecycle == "on-create":
        mounts = " and no file system mounted" if _mounts(environment) else ""
        yield Breach(
            ("orchestrator", "lifecycle"),
            "`on-create` runs our scripts instead of the image's set-up: Slurm is not configured "
            f"or started{mounts} unless the scripts do it. One page of AWS says that topology and "
            "mounts are still done: unproven.",
            "on-init-complete",
        )


@RULES.rule(65, "warning", "Lifecycle scripts run", source=LIFECYCLE)
def lifecycle_none(environment: Environment) -> Iterator[Breach]:
    if asked(environment).lifecycle != "none":
        return
    missing = [f"software release {environment.software.release} is not installed or verified"]
    if getattr(environment.storage.lustre, "efa", False):
        missing.append("the Lustre client is not set up for EFA by us and may stay on TCP")
    yield Breach(
        ("orchestrator", "lifecycle"),
        f"with `none` the nodes are what the image makes of them: {'; '.join(missing)}. It needs "
        "an image of January 2026 or later.",
        "on-init-complete",
    )


@RULES.rule(70, "error", "File systems are mounted in different places", source=FSX_API)
def mounts_differ(environment: Environment) -> Iterator[Breach]:
    lustre, openzfs = environment.storage.lustre, environment.storage.openzfs
    if lustre and openzfs and _normal(lustre.mount_path) == _normal(openzfs.mount_path):
        other = "/home" if _normal(lustre.mount_path) != PurePosixPath("/home") else "/shared"
        yield Breach(
            ("storage", "openzfs", "mount_path"),
            f"Lustre and OpenZFS are both mounted at {openzfs.mount_path}: one hides the other.",
            other,
        )


@RULES.rule(71, "warning", "No file system is mounted inside another", source=FSX_API)
def mounts_not_nested(environment: Environment) -> Iterator[Breach]:
    mounts = _mounts(environment)
    for path, place in mounts:
        for _, other in mounts:
            if _normal(other) in _normal(place).parents:
                yield Breach(
                    path,
                    f"{place} lies within the mount {other}; the order in which HyperPod mounts is "
                    "not published, and in the wrong one it is hidden.",
                    f"/{_normal(place).name}",
                )


_SYSTEM = {
    "/bin": "", "/boot": "", "/dev": "", "/etc": "", "/lib": "", "/lib64": "", "/proc": "",
    "/root": "", "/run": "", "/sbin": "", "/sys": "", "/usr": "",
    "/tmp": "the staging area of lifecycle scripts and of jobs",  # noqa: S108
    "/var": "logs and Slurm's spool",
    "/opt/amazon": "EFA, MPI and the NCCL plugin",
    "/opt/aws": "AWS's agents",
    "/opt/dlami": "the local NVMe disks",
    "/opt/ml": "HyperPod's own configuration",
    "/opt/sagemaker": "the second EBS volume",
    "/opt/slurm": "Slurm",
}  # fmt: skip
"""What the image has there; a mount on it, or within it, would hide that."""


@RULES.rule(
    72,
    "error",
    "No file system hides a directory of the system",
    source="Filesystem Hierarchy Standard 3.0; SageMaker API reference, ClusterEbsVolumeConfig "
    "(/opt/sagemaker); awslabs/awsome-distributed-ai, hyperpod-mental-model.md",
)
def mounts_spare_system(environment: Environment) -> Iterator[Breach]:
    for path, place in _mounts(environment):
        normal = _normal(place)
        if str(normal) in ("/", "/opt"):
            hidden, what = str(normal), "the software of the image"
        else:
            hidden = next((one for one in _SYSTEM if normal.is_relative_to(one)), "")
            what = _SYSTEM.get(hidden, "") or "part of the operating system"
        if hidden:
            yield Breach(
                path,
                f"a mount at {place} would hide {hidden}, which holds {what}.",
                "/fsx" if path[1] == "lustre" else "/home",
            )


def _mounts(environment: Environment) -> list[tuple[Path, str]]:
    storage = environment.storage
    return [
        (("storage", key, "mount_path"), system.mount_path)
        for key, system in (("lustre", storage.lustre), ("openzfs", storage.openzfs))
        if system
    ]


def _normal(path: str) -> PurePosixPath:
    """Without `//`, `.` and `..`."""
    parts: list[str] = []
    for part in PurePosixPath(path).parts[1:]:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return PurePosixPath("/", *parts)


adopt(RULES, COMMON)
