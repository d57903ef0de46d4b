"""Rules on node groups: which settings belong to which orchestrator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.catalog import is_local_zone
from ultracluster.config.capacity import STAND_IN, Reservation
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import DROP, Remedy, anywhere, beside, drop, write
from ultracluster.model import Group, Traits
from ultracluster.model.parent_zone import ENTRANCES
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GRP, kinds_with
from ultracluster.rules.sources import PCLUSTER


def _hyperpod(group: Group) -> bool:
    return group.in_service


def _ec2(group: Group) -> bool:
    return not group.in_service


def _kubernetes(group: Group) -> bool:
    return group.traits.kubernetes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    has: Callable[[Group], bool]
    """Whether those who launch the group have it."""
    why: str
    note: str = ""
    """What to do besides removing it."""
    moves_to: YamlPath = ()
    """Where its value belongs: a key of the group, or of the file."""


_MIG = _Setting(
    has=lambda group: group.traits.kubernetes or group.traits.slurm_by_group,
    why="Slurm finds MIG instances by AutoDetect=nvml in gres.conf, which ParallelCluster and HyperPod write "
    "themselves",
    note="PCS, EKS and HyperPod on EKS have it",
)
SETTINGS: Mapping[str, _Setting] = {
    "min_count": _Setting(
        has=_hyperpod,
        why="only HyperPod rolls a group back that does not reach a number of nodes",
        note="`count` nodes are kept whether or not they have work; `max_count` limits how many there may be",
    ),
    "max_count": _Setting(
        has=_ec2,
        why="HyperPod keeps `count` nodes and adds none for a job",
        note="set `count` to the nodes that you need",
    ),
    "zone_id": _Setting(
        has=lambda group: group.in_service or (group.role in ENTRANCES and not group.by_karpenter),
        why="only HyperPod puts accelerators into another zone; elsewhere only head, login and system nodes "
        "are in one",
        note="make another environment, in that zone",
    ),
    "volume_gib": _Setting(
        has=_hyperpod,
        why="the second volume at /opt/sagemaker is HyperPod's",
        note="the size of the root volume",
        moves_to=("root_volume_gib",),
    ),
    "root_volume_gib": _Setting(
        has=_ec2,
        why="HyperPod's root volume is fixed at 100 GB",
        note="the size of the second volume",
        moves_to=("volume_gib",),
    ),
    "root_volume_throughput_mbps": _Setting(
        has=_ec2,
        why="HyperPod's root volume is as fast as HyperPod makes it",
    ),
    "root_volume_iops": _Setting(
        has=lambda group: _ec2(group) and not (group.traits.shares_all_mounts and group.role == "login"),
        why="neither HyperPod's volumes nor those of ParallelCluster's login pools have a type",
    ),
    "ena_express": _Setting(
        has=lambda group: group.from_template and not group.by_karpenter,
        why="no field of the service or of Karpenter turns ENA Express on; launch templates of ours are "
        "EKS's and PCS's",
    ),
    "image_release": _Setting(
        has=_hyperpod,
        why="only HyperPod's image has releases of this form",
        note="`image` names an AMI",
    ),
    "deep_health_checks": _Setting(
        has=_hyperpod,
        why="only HyperPod has deep health checks",
        note="run `ultracluster acceptance` on new nodes",
    ),
    "patching": _Setting(
        has=_hyperpod,
        why="only HyperPod updates software on a schedule",
        note="name a newer `image` to replace the nodes",
    ),
    "efa_interface": _Setting(
        has=lambda group: not group.traits.one_efa_interface,
        why="the kind of EFA interfaces is chosen for the whole cluster here",
        moves_to=("orchestrator", "efa_interface"),
    ),
    "placement_group": _Setting(
        has=_ec2,
        why="HyperPod places its instances itself",
    ),
    "partition": _Setting(
        has=lambda group: group.traits.slurm,
        why="only Slurm has partitions, and this is Kubernetes",
        note="`labels` say where pods may run",
    ),
    "slurm_settings": _Setting(
        has=lambda group: group.traits.slurm and not group.traits.hyperpod,
        why="HyperPod writes slurm.conf itself, and Kubernetes has none",
    ),
    "gres": _Setting(
        has=lambda group: group.traits.slurm_by_group,
        why="only PCS takes lines of gres.conf for a group",
        note="ParallelCluster and HyperPod write the lines of their GPUs themselves",
    ),
    "scaledown_seconds": _Setting(
        has=lambda group: group.traits.slurm_by_group,
        why="only PCS ends idle nodes of a group after a time of its own",
        note="ParallelCluster has orchestrator.scaledown_minutes for all groups",
    ),
    "labels": _Setting(
        has=_kubernetes,
        why="only Kubernetes has labels, and this is Slurm",
        note="on ParallelCluster and PCS slurm_settings: {Features: ...} names nodes",
    ),
    "taints": _Setting(
        has=_kubernetes,
        why="only Kubernetes has taints, and this is Slurm",
        note="a separate partition keeps other jobs off these nodes",
    ),
    "instance_types": _Setting(
        has=lambda group: group.traits.kubernetes and group.in_service,
        why="only HyperPod on EKS takes several types for one group",
        note="make a group for each type",
    ),
    "restricted": _Setting(
        has=lambda group: group.traits.kubernetes and group.in_service,
        why="only HyperPod on EKS has restricted instance groups",
        note="customise Nova models with SageMaker training jobs instead",
    ),
    "mig_profile": _MIG,
    "mig_layout": _MIG,
    "gpu_time_slices": _Setting(
        has=lambda group: group.traits.kubernetes and not group.in_service,
        why="only the device plugin of EKS nodes gives a GPU to several pods",
    ),
}


@GRP.error(
    1,
    f"SageMaker API reference, ClusterInstanceGroupSpecification; {PCLUSTER} schema; "
    "AWS PCS API reference, CreateComputeNodeGroup; EKS API reference, CreateNodegroup",
    "2026-11-21",
)
def setting_exists(group: Group) -> Breaches:
    """Node groups use only settings that the orchestrator has."""
    values = dict(group.settings)
    for key in sorted(group.settings.model_fields_set & SETTINGS.keys()):
        setting, value = SETTINGS[key], values[key]
        if not setting.has(group) and value not in (None, (), {}):  # `taints: []` asks for nothing
            yield at(key).breach(
                f"`{key}` has no effect on {group.launcher}: {setting.why}.", _moved(value, setting)
            )


@GRP.error(
    40,
    "SageMaker API reference, ClusterInstanceGroupSpecification (OverrideVpcConfig); of the others "
    "each launches into one subnet here",
    "2026-11-23",
    kinds=kinds_with(lambda traits: not traits.hyperpod),
)
def further_zones_used(network: Network, traits: Traits) -> Breaches:
    """Only HyperPod's groups, and head, login and system nodes of a Local Zone, are in further zones."""
    if network.further_zones and not is_local_zone(network.zone_id):
        yield at("further_zones").breach(
            "no group needs these zones: only HyperPod puts accelerators into another zone, and "
            f"{network.zone_id} is no Local Zone: all nodes of {traits.kind} share one subnet.",
            drop().noting("make another environment, in that zone"),
        )


@GRP.error(
    2,
    f"{PCLUSTER} schema; AWS PCS API reference, SpotOptions; EC2 User Guide, Create a "
    "Capacity Reservation in a cluster placement group",
    "2026-11-21",
)
def capacity_field_exists(group: Group) -> Breaches:
    """Capacities use only fields that the orchestrator has."""
    capacity = group.capacity
    if capacity.kind == "spot" and capacity.allocation and not group.traits.spot_allocation:
        yield at("capacity", "allocation").breach(
            f"`allocation` has no effect on {group.launcher}: it cannot be told how to pick Spot pools.",
            drop(),
        )


@GRP.error(
    3,
    "EC2 Auto Scaling API reference, CreateAutoScalingGroup; AWS PCS API reference, "
    f"ScalingConfiguration; {PCLUSTER} schema: a maximum is at least the minimum",
    "2026-11-21",
)
def max_nodes_below_count(group: Group) -> Breaches:
    """`max_count` is not below `count`."""
    count, most = group.settings.count, group.settings.max_count
    if not group.in_service and most is not None and most < count:
        yield at("max_count").breach(f"`max_count` is {most}, but `count` is {count}.", write(count) | drop())


@GRP.error(
    4,
    "EC2 API reference, CapacityReservationTarget; EC2 User Guide, Interruptible Capacity Reservations",
    "2026-11-23",
)
def reservation_named_once(capacity: Reservation) -> Breaches:
    """A reservation is named in one way, an interruptible one by its id."""
    if capacity.id and capacity.resource_group_arn:
        yield at("resource_group_arn").breach(
            f"a reservation is targeted by id ({capacity.id}) or by resource group "
            f"({capacity.resource_group_arn}), not by both.",
            drop() | beside(id=DROP),
        )
    elif capacity.interruptible and capacity.resource_group_arn:
        yield at("resource_group_arn").breach(
            "interruptible reservations cannot be members of a resource group: name the reservation itself.",
            drop() & beside(id=STAND_IN).noting("with the id of your reservation"),
        )
    elif capacity.interruptible and not capacity.id:
        yield at("interruptible").breach(
            "interruptible reservations are targeted ones: no instance is launched into one that does not "
            "name its id.",
            beside(id=STAND_IN).noting("with the id of your reservation") | drop(),
        )


def _moved(value: Any, setting: _Setting) -> Remedy:
    remedy = drop()
    if len(setting.moves_to) == 1:
        remedy &= beside(**{str(setting.moves_to[0]): value})
    elif setting.moves_to:
        remedy &= anywhere({setting.moves_to: value})
    return remedy.noting(setting.note)
