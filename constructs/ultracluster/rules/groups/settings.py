"""Rules on: node groups. Which settings belong to which orchestrator; further subjects stand in modules of
their own beside this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM, OrchestratorKind
from ultracluster.config.remedy import DROP, Remedy, anywhere, beside, drop, write
from ultracluster.rules.engine import Breach
from ultracluster.rules.groups.capacity import EC2
from ultracluster.rules.sets import GRP

_CHOSEN_BY_GROUP = frozenset[OrchestratorKind]({*HYPERPOD, "eks"})
_HYPERPOD_EKS = frozenset[OrchestratorKind]({"hyperpod-eks"})
_OWN_SLURM = frozenset[OrchestratorKind]({"parallelcluster", "pcs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    kinds: frozenset[OrchestratorKind]
    """Orchestrators that have it."""
    why: str
    note: str = ""
    """Beside removing it."""
    moves_to: Path = ()
    """Where its value belongs: a key of the group, or of the file."""


_SETTINGS: Mapping[str, _Setting] = {
    "min_count": _Setting(
        kinds=HYPERPOD,
        why="only HyperPod rolls a group back that does not reach a number of nodes",
        note="`count` nodes are kept whether or not they have work, and `max_count` is how many there may be",
    ),
    "max_count": _Setting(
        kinds=EC2,
        why="HyperPod keeps `count` nodes and adds none for a job",
        note="set count to what is wanted",
    ),
    "volume_gib": _Setting(
        kinds=HYPERPOD,
        why="the second volume at /opt/sagemaker is HyperPod's",
        note="the size of the root volume",
        moves_to=("root_volume_gib",),
    ),
    "root_volume_gib": _Setting(
        kinds=EC2,
        why="HyperPod's root volume is fixed at 100 GB",
        note="the size of the second volume",
        moves_to=("volume_gib",),
    ),
    "root_volume_throughput_mbps": _Setting(
        kinds=EC2,
        why="HyperPod's root volume is as fast as HyperPod makes it",
    ),
    "image_release": _Setting(
        kinds=HYPERPOD,
        why="releases of this form are those of HyperPod's image",
        note="`image` names an AMI",
    ),
    "deep_health_checks": _Setting(
        kinds=HYPERPOD,
        why="deep health checks are a service of HyperPod",
        note="run `ultracluster acceptance` on new nodes",
    ),
    "patching": _Setting(
        kinds=HYPERPOD,
        why="software updates on a schedule are a service of HyperPod",
        note="name a newer `image` when nodes are to be replaced",
    ),
    "efa_interface": _Setting(
        kinds=_CHOSEN_BY_GROUP,
        why="the kind of EFA interfaces is chosen for the whole cluster here",
        moves_to=("orchestrator", "efa_interface"),
    ),
    "placement_group": _Setting(
        kinds=EC2,
        why="HyperPod places its instances itself",
    ),
    "partition": _Setting(
        kinds=SLURM,
        why="partitions are Slurm's, and this is Kubernetes",
        note="`labels` say where pods may run",
    ),
    "slurm_settings": _Setting(
        kinds=_OWN_SLURM,
        why="HyperPod writes slurm.conf itself, and Kubernetes has none",
    ),
    "labels": _Setting(
        kinds=KUBERNETES,
        why="labels are Kubernetes', and this is Slurm",
        note="on ParallelCluster and PCS slurm_settings: {Features: ...} names nodes",
    ),
    "taints": _Setting(
        kinds=KUBERNETES,
        why="taints are Kubernetes', and this is Slurm",
        note="a partition of its own keeps others from these nodes",
    ),
    "instance_types": _Setting(
        kinds=_HYPERPOD_EKS,
        why="only HyperPod on EKS takes several types for one group",
        note="make a group for each type",
    ),
    "mig_profile": _Setting(
        kinds=KUBERNETES,
        why="only the GPU operator, which is Kubernetes', cuts the GPUs of a group",
    ),
    "gpu_time_slices": _Setting(
        kinds=frozenset({"eks"}),
        why="GPUs are handed to several pods by the device plugin of EKS nodes",
    ),
}


@GRP.rule(
    1,
    "error",
    "A setting of a node group is one that its orchestrator has",
    source="SageMaker API reference, ClusterInstanceGroupSpecification; aws-parallelcluster 3.16.1 schema; "
    "AWS PCS API reference, CreateComputeNodeGroup; EKS API reference, CreateNodegroup",
    date="2026-11-21",
)
def setting_of_another_orchestrator(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        kind = _kind(environment, group)
        for key in sorted(group.model_fields_set & _SETTINGS.keys()):
            setting = _SETTINGS[key]
            if kind in setting.kinds or _says_nothing(group, key):
                continue
            yield Breach(
                ("node_groups", name, key),
                f"`{key}` says nothing to {kind}: {setting.why}.",
                _moved(group, key, setting),
            )


@GRP.rule(
    2,
    "error",
    "A capacity's details are ones that its orchestrator has",
    source="aws-parallelcluster 3.16.1 schema; AWS PCS API reference, SpotOptions; EC2 User Guide, Create a "
    "Capacity Reservation in a cluster placement group",
    date="2026-11-21",
)
def detail_of_another_orchestrator(environment: Environment) -> Iterator[Breach]:
    kind = environment.orchestrator.kind
    for name, group in environment.node_groups.items():
        capacity = group.capacity
        if capacity.kind == "spot" and capacity.allocation and kind not in _OWN_SLURM:
            yield Breach(
                ("node_groups", name, "capacity", "allocation"),
                f"how Spot pools are picked cannot be told to {kind}.",
                drop(),
            )


@GRP.rule(
    3,
    "error",
    "max_count is not below count",
    source="EC2 Auto Scaling, AWS PCS and ParallelCluster alike: a maximum is at least the minimum",
    date="2026-11-21",
    kinds=EC2,
)
def greatest_below_count(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.max_count is not None and group.max_count < group.count:
            yield Breach(
                ("node_groups", name, "max_count"),
                f"{group.max_count} nodes at the most, and {group.count} always there.",
                write(group.count) | drop(),
            )


@GRP.rule(
    4,
    "error",
    "A resource group and a placement group name one reservation each",
    source="EC2 API reference, CapacityReservationTarget",
    date="2026-11-21",
)
def reservation_named_twice(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        capacity = group.capacity
        if capacity.kind == "reservation" and capacity.id and capacity.resource_group_arn:
            yield Breach(
                ("node_groups", name, "capacity", "resource_group_arn"),
                f"a reservation is targeted by id ({capacity.id}) or by resource group "
                f"({capacity.resource_group_arn}), not by both.",
                drop() | beside(id=DROP),
            )


def _kind(environment: Environment, group: NodeGroup) -> OrchestratorKind:
    """Who launches the group: EKS the system groups of HyperPod on EKS."""
    kind = environment.orchestrator.kind
    return "eks" if kind == "hyperpod-eks" and group.role == "system" else kind


def _says_nothing(group: NodeGroup, key: str) -> bool:
    """Whether the key is there and empty: `taints: []`."""
    return getattr(group, key) in (None, (), {})


def _moved(group: NodeGroup, key: str, setting: _Setting) -> Remedy:
    remedy = drop()
    if len(setting.moves_to) == 1:
        remedy &= beside(**{str(setting.moves_to[0]): getattr(group, key)})
    elif setting.moves_to:
        remedy &= anywhere({setting.moves_to: getattr(group, key)})
    return remedy.noting(setting.note)
