"""Rules on HyperPod on EKS: resilient training, its operator, and tiered checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from ultracluster.catalog.hyperpod_eks import governance_floor, training_operator_floor
from ultracluster.config.base import s3_place
from ultracluster.config.kubernetes import HyperPodAddon, HyperPodEks
from ultracluster.config.remedy import DROP, beside, drop, either, write
from ultracluster.model import Cluster, Group
from ultracluster.model.checkpoint_memory import checkpoints_percent, memory_for_pods_gib
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HPE

_GUIDE = "SageMaker Developer Guide, "
INSTALL = f"{_GUIDE}Installing the training operator"
CHECKPOINTLESS = f"{_GUIDE}Checkpointless training in Amazon SageMaker HyperPod"
ELASTIC = f"{_GUIDE}Using elastic training in Amazon SageMaker HyperPod"
TIERED = f"{_GUIDE}HyperPod managed tiered checkpointing"
_DATE = "2026-11-23"
OPERATOR: HyperPodAddon = "amazon-sagemaker-hyperpod-training-operator"
GOVERNANCE: HyperPodAddon = "amazon-sagemaker-hyperpod-taskgovernance"
HUGE_PAGES_GIB = 5
"""What EFA's installer reserves of a node, in whole GiB (5128 pages of 2 MiB)."""


@HPE.error(70, f"{CHECKPOINTLESS}; Using elastic training (prerequisites)", _DATE)
def resilience_needs_operator(hyperpod: HyperPodEks) -> Breaches:
    """Resilient training has HyperPod's training operator."""
    if hyperpod.resilience and not hyperpod.training_operator:
        yield at("resilience").breach(
            f"{_and(hyperpod.resilience)} training is jobs of HyperPod's training operator, which is off.",
            either(beside(training_operator=True), drop()),
        )


@HPE.error(71, f"{INSTALL} (both kinds require the add-on on version 1.2.0 or above)", _DATE)
def operator_version(hyperpod: HyperPodEks) -> Breaches:
    """The training operator knows the kinds of resilient training."""
    version = hyperpod.addon_versions.get(OPERATOR)
    for kind in hyperpod.resilience:
        floor = training_operator_floor(kind)
        if version and _numbers(version) < _numbers(floor):
            yield at("addon_versions", OPERATOR).breach(
                f"{kind} training requires {floor} of the operator or newer, and this is {version}.",
                drop().noting("jobs of the older version go on"),
            )


@HPE.warning(72, f"{ELASTIC} (Use elastic training with other HyperPod features)", _DATE)
def elastic_excludes_tiered_checkpoints(hyperpod: HyperPodEks) -> Breaches:
    """Elastic jobs have their checkpoints in a file system or in S3."""
    if "elastic" in hyperpod.resilience and hyperpod.tiered_checkpoints_percent:
        gone = ["tiered_checkpoints_percent", *(["checkpoint_tier"] if hyperpod.checkpoint_tier else [])]
        yield at("resilience").breach(
            "elastic training does not support managed tiered checkpoints: its jobs lose "
            f"{hyperpod.tiered_checkpoints_percent} % of each node's memory and have nothing of it.",
            either(
                beside(**dict.fromkeys(gone, DROP)),
                write([kind for kind in hyperpod.resilience if kind != "elastic"]),
            ).noting("or acknowledge that other jobs use the memory"),
        )


@HPE.warning(73, f"{ELASTIC} (Use elastic training with other HyperPod features)", _DATE)
def elastic_excludes_spot(group: Group, hyperpod: HyperPodEks) -> Breaches:
    """Elastic jobs have nodes that are not Spot."""
    if "elastic" in hyperpod.resilience and group.in_service and group.capacity.kind == "spot":
        yield at("capacity").breach(
            "elastic training does not support Spot: `ultracluster job` refuses elastic jobs on this group.",
            write({"kind": "on-demand"}).noting("or acknowledge that other jobs use the group"),
        )


@HPE.error(74, f"{INSTALL} (Task governance: v1.3.0-eksbuild.1 or higher)", _DATE)
def governance_version(hyperpod: HyperPodEks) -> Breaches:
    """Task governance knows the training operator's jobs."""
    version, floor = hyperpod.addon_versions.get(GOVERNANCE), governance_floor()
    if not (version and hyperpod.task_governance and hyperpod.training_operator):
        return
    if _numbers(version) < _numbers(floor):
        yield at("addon_versions", GOVERNANCE).breach(
            f"beside the training operator {floor} or newer is required, and this is {version}.", drop()
        )


@HPE.warning(75, f"{INSTALL} (Task governance; Kueue)", _DATE)
def resilience_needs_kueue(hyperpod: HyperPodEks) -> Breaches:
    """Resilient jobs wait in a queue that knows them."""
    if hyperpod.resilience and hyperpod.scheduler in ("volcano", "kai"):
        yield at("scheduler").breach(
            f"the training operator asks Kueue for its pods, spares and new nodes, not {hyperpod.scheduler}: "
            "its jobs would start past the queues.",
            write("kueue"),
        )


@HPE.warning(76, f"{CHECKPOINTLESS} (tutorials, prerequisites: FSx or NFS)", _DATE)
def resilience_needs_shared_storage(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Resilient jobs have storage that all nodes share."""
    storage = cluster.environment.storage
    if hyperpod.resilience and not (storage.lustre or storage.openzfs):
        yield at("resilience").breach(
            "there is no shared file system: after the loss of several nodes at once a job starts from a "
            "checkpoint that every node must find.",
            drop().noting("or storage.lustre or storage.openzfs"),
        )


@HPE.error(
    77,
    f"{CHECKPOINTLESS}; aws/sagemaker-hyperpod-checkpointless-training 08c4ff6, README (CUDA, NeMo)",
    _DATE,
)
def checkpointless_needs_gpus(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Checkpointless jobs have NVIDIA GPUs."""
    if "checkpointless" not in hyperpod.resilience:
        return
    makers = {
        one.type.accelerator.manufacturer if one.type.accelerator else ""
        for one in cluster.with_role("compute").values()
        if one.type
    }
    if makers and "NVIDIA" not in makers:
        yield at("resilience").breach(
            "checkpointless training is built on CUDA, NCCL and NVIDIA NeMo, and no group has NVIDIA GPUs.",
            write([kind for kind in hyperpod.resilience if kind != "checkpointless"]),
        )


@HPE.warning(78, f"{TIERED} (replicates data across adjacent compute nodes)", _DATE)
def checkpoint_copies_need_nodes(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Tiered checkpoints have a second node for their copies."""
    nodes = sum(group.most_nodes for group in cluster.with_role("compute").values())
    if hyperpod.tiered_checkpoints_percent and nodes == 1 and not hyperpod.checkpoint_tier:
        yield at("tiered_checkpoints_percent").breach(
            "checkpoints in memory are copied to neighbours, and there is one node: its loss takes them all.",
            drop().noting("or checkpoint_tier, or a second node"),
        )


@HPE.error(79, f"{_GUIDE}Set up managed tiered checkpointing (Step 1)", _DATE)
def checkpoint_tier_needs_memory(hyperpod: HyperPodEks) -> Breaches:
    """Checkpoints that S3 keeps are in memory first."""
    if hyperpod.checkpoint_tier and not hyperpod.tiered_checkpoints_percent:
        yield at("checkpoint_tier").breach(
            "`checkpoint_tier` is where tiered checkpoints go from memory, and no memory is given to them.",
            either(beside(tiered_checkpoints_percent=20), drop()),
        )


@HPE.error(80, f"{_GUIDE}Security considerations for managed tiered checkpointing", _DATE)
def checkpoint_tier_of_root_files(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Nobody writes checkpoints where nodes take what they run as root."""
    tier, environment = hyperpod.checkpoint_tier, cluster.environment
    if tier is None:
        return
    kept: dict[str, tuple[str, str]] = {}
    if environment.storage.scripts_bucket:
        name = environment.storage.scripts_bucket.name
        kept["the lifecycle scripts, which nodes run as root"] = (name, environment.cluster_name)
    if environment.software.mirror:
        kept["the mirrored software, which nodes install as root"] = s3_place(environment.software.mirror)
    if environment.storage.log_bucket:
        kept["access logs"] = (environment.storage.log_bucket.name, "")
    for what, (bucket, folder) in kept.items():
        if tier.bucket == bucket and _overlap(tier.prefix.rstrip("/"), folder):
            yield at("checkpoint_tier").breach(
                f"s3://{bucket}{'/' if folder else ''}{folder} holds {what}: every job could change it.",
                drop().noting("or name a folder apart from it"),
            )


@HPE.warning(
    81, f"{_GUIDE}Set up managed tiered checkpointing (sufficient CPU memory); this file: arithmetic", _DATE
)
def checkpoint_memory_fits(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Tiered checkpoints leave memory to the jobs."""
    percent = checkpoints_percent(cluster)
    for name, group in cluster.with_role("compute").items() if percent else ():
        if not (group.type and group.type.memory_gib):
            continue
        left = memory_for_pods_gib(group.type, percent)
        if left <= HUGE_PAGES_GIB:
            yield at("tiered_checkpoints_percent").breach(
                f"{percent} % leaves {left} GiB of a node of {name} to everything else, and EFA alone "
                f"reserves {HUGE_PAGES_GIB} GiB: no job would start.",
                write(20),
            )


@HPE.warning(82, f"{_GUIDE}Using the HyperPod training operator (the latest HyperPod AMI release)", _DATE)
def resilience_needs_newest_image(group: Group, hyperpod: HyperPodEks) -> Breaches:
    """Resilient jobs run on the newest image."""
    if hyperpod.resilience and group.in_service and group.settings.image_release:
        yield at("image_release").breach(
            "the training operator requires HyperPod's newest image, and this group stays on "
            f"{group.settings.image_release}.",
            drop().noting("or acknowledge that it is the newest one"),
        )


@HPE.warning(83, f"{ELASTIC} (Auto-scaling: without a quota the cluster grows as far as jobs ask)", _DATE)
def elastic_limit_per_namespace(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Elastic jobs that Karpenter starts nodes for have a limit in each namespace."""
    governed = hyperpod.task_governance and bool(cluster.environment.teams)
    if "elastic" in hyperpod.resilience and hyperpod.autoscaling and governed:
        yield at("autoscaling").breach(
            "elastic jobs ask for more and more nodes, and HyperPod makes the namespaces of teams after the "
            "deploy, without quotas.",
            beside(task_governance=DROP, scheduler=DROP).noting(
                "or apply `ultracluster export team-namespaces` once the namespaces are there, and "
                "acknowledge this"
            ),
        )


def _overlap(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return not short or long == short or long.startswith(f"{short}/")


def _numbers(version: str) -> tuple[int, ...]:
    """`v1.3.0-eksbuild.1` as 1, 3, 0."""
    return tuple(int(part) for part in version.removeprefix("v").partition("-")[0].split("."))


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)
