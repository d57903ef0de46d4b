"""Rules on: Kubernetes on EKS. GPUs that pods share: MIG and time-slicing."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog import InstanceType
from ultracluster.catalog.mig import fits_on_gpu, mig_profiles
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, write
from ultracluster.model import Group
from ultracluster.model.mig import gpu_layouts
from ultracluster.rules.eks.groups import EKS_ONLY
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

DATE = "2026-11-21"
MIG = "NVIDIA Multi-Instance GPU User Guide, Supported MIG Profiles; catalog/mig_profiles.json"
MIG_LABEL = "nvidia.com/mig.config"
PLUGIN = "NVIDIA/k8s-device-plugin 0.20, README, Shared Access to GPUs"
OPERATOR = "NVIDIA/gpu-operator, assets/state-mig-manager"


@EKS.warning(40, MIG, DATE)
def mig_by_label(group: Group) -> Breaches:
    """MIG is set with mig_profile, not with a label."""
    label = group.settings.labels.get(MIG_LABEL)
    if label and _judged(group):
        yield at("labels", MIG_LABEL).breach(
            f"the label `{label}` is not checked against the GPU; nodes whose GPUs lack the profile run no "
            "pods.",
            _profile_of_label(group, label),
        )


@EKS.error(41, MIG, DATE)
def mig_profile_exists(group: Group) -> Breaches:
    """The GPU supports the MIG profile."""
    key = group.settings.mig_key
    for kind in filter(None, group.types if _judged(group) and key else ()):
        profiles = mig_profiles(kind)
        asked = _profiles(group, kind) or ["all-balanced"]
        wrong = [one for one in asked if one not in profiles]
        if not wrong or not key:
            continue
        profile = wrong[0]
        what = kind.accelerator.name if kind.accelerator else "no accelerator"
        has = (
            f"its profiles are {', '.join(profiles)}"
            if profiles
            else "it cannot be divided into MIG instances"
        )
        near = _nearest_profile(profile, kind)
        yield at(key).breach(
            f"`{profile}` on {kind.name} ({what}): {has}.",
            write(near if key == "mig_profile" else _nearest_layout(group, kind)) if near else drop(),
        )


@EKS.error(
    42, f"{OPERATOR}; {PLUGIN}; SageMaker Developer Guide, Using GPU partitions in SageMaker HyperPod", DATE
)
def sharing_plugin(group: Group, settings: Eks | HyperPodEks) -> Breaches:
    """gpu_plugin supports the way in which GPUs are shared."""
    if not _judged(group):
        return
    plugin = settings.gpu_plugin
    if group.settings.mig_key and plugin != "gpu-operator":
        yield at(group.settings.mig_key).breach(
            f"gpu_plugin is {plugin}, and the MIG manager that divides GPUs is a part of the GPU operator.",
            anywhere({("orchestrator", "gpu_plugin"): "gpu-operator"}),
        )
    if group.settings.gpu_time_slices and plugin == "none":
        yield at("gpu_time_slices").breach(
            "gpu_plugin is none, and only the device plugin can give a GPU to several pods.",
            anywhere({("orchestrator", "gpu_plugin"): "device-plugin"}),
        )


@EKS.error(
    106,
    "NVIDIA Multi-Instance GPU User Guide, GPU instance placements; catalog/mig_profiles.json",
    "2026-11-28",
)
def mig_layout_fits(group: Group) -> Breaches:
    """The instances of a MIG layout fit on its GPU."""
    layout, kind = group.settings.mig_layout if _judged(group) else None, group.type
    if not layout or kind is None or not mig_profiles(kind):
        return
    if group.settings.mig_profile:
        yield at("mig_layout").breach("mig_profile cuts the same GPUs: one of the two.", drop())
        return
    layouts, gpus = gpu_layouts(group.settings, kind), kind.accelerator.count if kind.accelerator else 0
    if isinstance(layout, tuple) and len(layouts) != gpus:
        yield at("mig_layout").breach(
            f"{len(layouts)} entries, and {kind.name} has {gpus} GPUs: one for each, `{{}}` to stay whole.",
            write([dict(layouts[number % len(layouts)]) for number in range(gpus)]),
        )
    for number, one in enumerate(layouts):
        if one in layouts[:number] or not set(one) <= set(mig_profiles(kind)) or fits_on_gpu(kind, one):
            continue
        asked = ", ".join(f"{count} x {profile}" for profile, count in one.items())
        yield at(*("mig_layout", number) if isinstance(layout, tuple) else ("mig_layout",)).breach(
            f"{asked} have no place on one GPU of {kind.name}: each takes some of its 7 compute slices "
            "and 8 slices of memory, side by side.",
            write(_that_fits(kind, one)),
        )


@EKS.error(44, f"{PLUGIN}; Neuron documentation, Neuron device plugin", DATE, kinds=EKS_ONLY)
def shared_gpus(group: Group) -> Breaches:
    """Only NVIDIA GPUs of compute nodes are shared, by MIG or by time slices."""
    slices, mig = group.settings.gpu_time_slices, group.settings.mig_key
    if not slices and not mig:
        return
    if group.role != "compute":
        yield at(mig or "gpu_time_slices").breach(
            f"nodes of role {group.role} run no jobs, and no device plugin for them is installed.", drop()
        )
    elif slices and mig:
        yield at("gpu_time_slices").breach(
            "GPUs divided by MIG cannot be time-sliced as well: pods that share a MIG instance would lose "
            "the memory of their own that MIG gives them.",
            drop() | beside(**{mig: DROP}),
        )
    elif slices and group.type:
        accelerator = group.type.accelerator
        if accelerator is None or accelerator.manufacturer != "NVIDIA":
            what = f"{accelerator.name}, which is not NVIDIA's" if accelerator else "no accelerator"
            yield at("gpu_time_slices").breach(
                f"{group.type.name} has {what}: there is no GPU to share.", drop()
            )


@EKS.warning(
    45,
    f"{PLUGIN}: no isolation of memory or faults; NCCL needs each rank's GPU to itself",
    DATE,
    kinds=EKS_ONLY,
)
def time_slices_exclude_efa(group: Group) -> Breaches:
    """Nodes with EFA do not time-slice their GPUs."""
    if group.settings.gpu_time_slices and group.type and group.type.efa_interfaces != 0:
        yield at("gpu_time_slices").breach(
            f"{group.type.name} has EFA, and a job on several nodes is as slow as its slowest GPU: any other "
            "pod on a GPU may take its time and memory.",
            drop().noting("use a type without EFA for notebooks and small models"),
        )


def _profiles(group: Group, kind: InstanceType) -> list[str]:
    """Every profile that the group asks for, each once."""
    return list(dict.fromkeys(profile for layout in gpu_layouts(group.settings, kind) for profile in layout))


def _that_fits(kind: InstanceType, layout: Mapping[str, int]) -> dict[str, int]:
    """The layout with as many instances as have a place, the largest first."""
    found: dict[str, int] = {}
    for profile in sorted(layout, key=lambda one: (-int(one.partition("g")[0]), one)):
        for count in range(1, layout[profile] + 1):
            if fits_on_gpu(kind, found | {profile: count}):
                found[profile] = count
    return {profile: found[profile] for profile in layout if profile in found}


def _nearest_layout(group: Group, kind: InstanceType) -> object:
    """The same with profiles that the GPU has."""
    known, layout = mig_profiles(kind), group.settings.mig_layout

    def near(one: Mapping[str, int]) -> dict[str, int]:
        alike = {
            profile if profile in known else _nearest_profile(profile, kind): count
            for profile, count in one.items()
        }
        return _that_fits(kind, alike)

    return [near(one) for one in layout] if isinstance(layout, tuple) else near(dict(layout or {}))  # pyright: ignore


def _judged(group: Group) -> bool:
    """Not the system nodes of HyperPod, for which these fields are refused whatever they say."""
    return group.in_service or not group.traits.hyperpod


def _nearest_profile(profile: str, kind: InstanceType) -> str:
    """The GPU's profile with as many slices, else its first."""
    profiles = mig_profiles(kind)
    same = [other for other in profiles if other.partition(".")[0] == profile.partition(".")[0]]
    return next(iter(same or profiles), "")


def _profile_of_label(group: Group, label: str) -> Remedy:
    """The same division by the field that is checked; it requires the GPU operator."""
    profile = label.removeprefix("all-")
    if group.type is None or profile not in mig_profiles(group.type):
        return ask("fact", "mig_profile, with a profile into which all GPUs of a node are divided")
    return anywhere(
        {
            ("node_groups", group.name, "mig_profile"): profile,
            ("node_groups", group.name, "labels", MIG_LABEL): DROP,
            ("orchestrator", "gpu_plugin"): "gpu-operator",
        }
    )
