"""Rules on: Kubernetes on EKS. GPUs that pods share: MIG and time-slicing."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType
from ultracluster.catalog.hyperpod_eks import mig_manager_knows, mig_profiles
from ultracluster.config import Environment
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.eks.groups import EKS_ALONE, settings
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod.groups import hyperpod_groups, typed_groups
from ultracluster.rules.sets import EKS

DATE = "2026-11-21"
MIG = "NVIDIA Multi-Instance GPU User Guide, Supported MIG Profiles; catalog/mig_profiles.json"
MIG_LABEL = "nvidia.com/mig.config"
PLUGIN = "NVIDIA/k8s-device-plugin 0.20, README, Shared Access to GPUs"
OPERATOR = "NVIDIA/gpu-operator, assets/state-mig-manager"
_FIELDS = ("mig_profile", "gpu_time_slices")


@EKS.rule(40, "warning", "MIG is asked for by mig_profile", source=MIG, date=DATE)
def mig_by_label(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if label := group.labels.get(MIG_LABEL):
            yield Breach(
                ("node_groups", name, "labels", MIG_LABEL),
                f"`{label}` is not checked against the GPU; nodes whose GPUs lack it take no pods.",
                _profile_of_label(environment, name, label),
            )


@EKS.rule(41, "error", "The GPU has the MIG profile", source=MIG, date=DATE)
def mig_profile_exists(environment: Environment) -> Iterator[Breach]:
    for path, group, known in typed_groups(environment):
        profiles = mig_profiles(known)
        if group.mig_profile is None or group.mig_profile in profiles:
            continue
        what = known.accelerator.name if known.accelerator else "no accelerator"
        has = f"its profiles are {', '.join(profiles)}" if profiles else "it cannot be cut into MIG instances"
        yield Breach(
            (*path[:2], "mig_profile"),
            f"`{group.mig_profile}` on {known.name} ({what}): {has}.",
            write(near) if (near := _nearest_profile(group.mig_profile, known)) else drop(),
        )


@EKS.rule(
    42,
    "error",
    "GPUs are shared by what can share them",
    source=f"{OPERATOR}; {PLUGIN}; SageMaker Developer Guide, Using GPU partitions in SageMaker HyperPod",
    date=DATE,
)
def sharing_needs(environment: Environment) -> Iterator[Breach]:
    plugin = settings(environment).gpu_plugin
    for name, group in hyperpod_groups(environment).items():
        if group.mig_profile and plugin != "gpu-operator":
            yield Breach(
                ("node_groups", name, "mig_profile"),
                f"gpu_plugin is {plugin}, and the MIG manager that cuts GPUs is a part of the GPU operator.",
                anywhere({("orchestrator", "gpu_plugin"): "gpu-operator"}),
            )
        if group.gpu_time_slices and plugin == "none":
            yield Breach(
                ("node_groups", name, "gpu_time_slices"),
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
def mig_manager_has_it(environment: Environment) -> Iterator[Breach]:
    for path, group, known in typed_groups(environment):
        if group.mig_profile in mig_profiles(known) and not mig_manager_knows(known):
            yield Breach(
                (*path[:2], "mig_profile"),
                f"no list of the operator that we know has profiles of {known.name}: "
                f"`all-{group.mig_profile}` would mean nothing to it.",
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
def sharing_where(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        asked = [field for field in _FIELDS if getattr(group, field)]
        if not asked:
            continue
        if group.role != "compute":
            yield Breach(
                ("node_groups", name, asked[0]),
                f"nodes of role {group.role} run no jobs, and no device plugin for them is installed.",
                drop(),
            )
        elif len(asked) > 1:
            yield Breach(
                ("node_groups", name, "gpu_time_slices"),
                "GPUs that MIG has cut are not sliced again: pods that share an instance of MIG would lose "
                "the memory of their own that it is for.",
                drop() | beside(mig_profile=DROP),
            )
        elif known and group.gpu_time_slices:
            accelerator = known.accelerator
            if accelerator is None or accelerator.manufacturer != "NVIDIA":
                what = f"{accelerator.name}, which is not NVIDIA's" if accelerator else "no accelerator"
                yield Breach(
                    ("node_groups", name, "gpu_time_slices"),
                    f"{known.name} has {what}: there is no GPU to take turns on.",
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
def slices_and_fabric(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if group.gpu_time_slices and known and known.efa_interfaces != 0:
            yield Breach(
                ("node_groups", name, "gpu_time_slices"),
                f"{known.name} has EFA, and a job over several nodes is as slow as its slowest turn: any pod "
                "beside it may take its time and its memory.",
                drop().noting("a type without EFA is for notebooks and small models"),
            )


def _nearest_profile(wanted: str, known: InstanceType) -> str:
    """The GPU's profile with as many slices, else its first."""
    profiles = mig_profiles(known)
    same = [one for one in profiles if one.partition(".")[0] == wanted.partition(".")[0]]
    return next(iter(same or profiles), "")


def _profile_of_label(environment: Environment, name: str, label: str) -> Remedy:
    """The same cut, asked for by the field that is checked; HyperPod and EKS need the GPU operator for it."""
    known = instance_type_of(environment, environment.node_groups[name])
    profile = label.removeprefix("all-")
    if known is None or profile not in mig_profiles(known):
        return ask("fact", "mig_profile, with a profile that all GPUs of a node are cut into")
    return anywhere(
        {
            ("node_groups", name, "mig_profile"): profile,
            ("node_groups", name, "labels", MIG_LABEL): DROP,
            ("orchestrator", "gpu_plugin"): "gpu-operator",
        }
    )
