"""Rules on: Kubernetes on EKS. GPUs that pods share: MIG and time-slicing."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType
from ultracluster.catalog.hyperpod_eks import mig_manager_knows, mig_profiles
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, write
from ultracluster.model import Group
from ultracluster.rules.eks.groups import EKS_ALONE
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

DATE = "2026-11-21"
MIG = "NVIDIA Multi-Instance GPU User Guide, Supported MIG Profiles; catalog/mig_profiles.json"
MIG_LABEL = "nvidia.com/mig.config"
PLUGIN = "NVIDIA/k8s-device-plugin 0.20, README, Shared Access to GPUs"
OPERATOR = "NVIDIA/gpu-operator, assets/state-mig-manager"


@EKS.rule(40, "warning", "MIG is asked for by mig_profile", source=MIG, date=DATE)
def mig_by_label(group: Group) -> Iterator[Breach]:
    label = group.settings.labels.get(MIG_LABEL)
    if label and _judged(group):
        yield Breach(
            ("labels", MIG_LABEL),
            f"`{label}` is not checked against the GPU; nodes whose GPUs lack it take no pods.",
            _profile_of_label(group, label),
        )


@EKS.rule(41, "error", "The GPU has the MIG profile", source=MIG, date=DATE)
def mig_profile_exists(group: Group) -> Iterator[Breach]:
    profile = group.settings.mig_profile if _judged(group) else None
    for kind in filter(None, group.types):
        profiles = mig_profiles(kind)
        if profile is None or profile in profiles:
            continue
        what = kind.accelerator.name if kind.accelerator else "no accelerator"
        has = f"its profiles are {', '.join(profiles)}" if profiles else "it cannot be cut into MIG instances"
        yield Breach(
            ("mig_profile",),
            f"`{profile}` on {kind.name} ({what}): {has}.",
            write(near) if (near := _nearest_profile(profile, kind)) else drop(),
        )


@EKS.rule(
    42,
    "error",
    "GPUs are shared by what can share them",
    source=f"{OPERATOR}; {PLUGIN}; SageMaker Developer Guide, Using GPU partitions in SageMaker HyperPod",
    date=DATE,
)
def sharing_needs(group: Group, settings: Eks | HyperPodEks) -> Iterator[Breach]:
    if not _judged(group):
        return
    plugin = settings.gpu_plugin
    if group.settings.mig_profile and plugin != "gpu-operator":
        yield Breach(
            ("mig_profile",),
            f"gpu_plugin is {plugin}, and the MIG manager that cuts GPUs is a part of the GPU operator.",
            anywhere({("orchestrator", "gpu_plugin"): "gpu-operator"}),
        )
    if group.settings.gpu_time_slices and plugin == "none":
        yield Breach(
            ("gpu_time_slices",),
            "gpu_plugin is none, and it is the device plugin that hands a GPU to several pods.",
            anywhere({("orchestrator", "gpu_plugin"): "device-plugin"}),
        )


@EKS.rule(
    43,
    "warning",
    "The GPU operator's MIG manager knows the profile",
    source=OPERATOR,
    date=DATE,
)
def mig_manager_has_it(group: Group) -> Iterator[Breach]:
    profile = group.settings.mig_profile if _judged(group) else None
    for kind in filter(None, group.types):
        if profile in mig_profiles(kind) and not mig_manager_knows(kind):
            yield Breach(
                ("mig_profile",),
                f"no list of the operator that we know has profiles of {kind.name}: `all-{profile}` would "
                "mean nothing to it.",
                ask(
                    "fact",
                    "chart_values: {gpu-operator: {migManager: {config: ...}}} with a list of your own",
                ),
            )


@EKS.rule(
    44,
    "error",
    "NVIDIA GPUs of compute nodes are shared, and in one way",
    source=f"{PLUGIN}; Neuron documentation, Neuron device plugin",
    date=DATE,
    kinds=EKS_ALONE,
)
def sharing_where(group: Group) -> Iterator[Breach]:
    slices, profile = group.settings.gpu_time_slices, group.settings.mig_profile
    if not slices and not profile:
        return
    if group.role != "compute":
        yield Breach(
            ("mig_profile" if profile else "gpu_time_slices",),
            f"nodes of role {group.role} run no jobs, and no device plugin for them is installed.",
            drop(),
        )
    elif slices and profile:
        yield Breach(
            ("gpu_time_slices",),
            "GPUs that MIG has cut are not sliced again: pods that share an instance of MIG would lose "
            "the memory of their own that it is for.",
            drop() | beside(mig_profile=DROP),
        )
    elif slices and group.type:
        accelerator = group.type.accelerator
        if accelerator is None or accelerator.manufacturer != "NVIDIA":
            what = f"{accelerator.name}, which is not NVIDIA's" if accelerator else "no accelerator"
            yield Breach(
                ("gpu_time_slices",),
                f"{group.type.name} has {what}: there is no GPU to take turns on.",
                drop(),
            )


@EKS.rule(
    45,
    "warning",
    "Nodes that train together have whole GPUs",
    source=f"{PLUGIN}: no isolation of memory or faults; NCCL needs each rank's GPU to itself",
    date=DATE,
    kinds=EKS_ALONE,
)
def slices_and_fabric(group: Group) -> Iterator[Breach]:
    if group.settings.gpu_time_slices and group.type and group.type.efa_interfaces != 0:
        yield Breach(
            ("gpu_time_slices",),
            f"{group.type.name} has EFA, and a job over several nodes is as slow as its slowest turn: any "
            "pod beside it may take its time and its memory.",
            drop().noting("a type without EFA is for notebooks and small models"),
        )


def _judged(group: Group) -> bool:
    """Not the system nodes of HyperPod, for which these fields are refused whatever they say."""
    return group.in_service or not group.traits.hyperpod


def _nearest_profile(wanted: str, kind: InstanceType) -> str:
    """The GPU's profile with as many slices, else its first."""
    profiles = mig_profiles(kind)
    same = [profile for profile in profiles if profile.partition(".")[0] == wanted.partition(".")[0]]
    return next(iter(same or profiles), "")


def _profile_of_label(group: Group, label: str) -> Remedy:
    """The same cut, asked for by the field that is checked; HyperPod and EKS need the GPU operator for it."""
    profile = label.removeprefix("all-")
    if group.type is None or profile not in mig_profiles(group.type):
        return ask("fact", "mig_profile, with a profile that all GPUs of a node are cut into")
    return anywhere(
        {
            ("node_groups", group.name, "mig_profile"): profile,
            ("node_groups", group.name, "labels", MIG_LABEL): DROP,
            ("orchestrator", "gpu_plugin"): "gpu-operator",
        }
    )
