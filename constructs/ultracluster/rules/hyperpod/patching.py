"""Rules on HyperPod, with Slurm and on EKS: windows of software updates, pinned images, taints of the "
"service."""

from __future__ import annotations

import re

from ultracluster.config.nodes import AutomaticPatching, ScheduledPatching
from ultracluster.config.remedy import DROP, Remedy, beside, drop, inside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.hyperpod.groups import GROUP_API, HyperPod
from ultracluster.rules.sets import HYP

AMI_UPDATE = "SageMaker Developer Guide, Update your AMI version in your SageMaker HyperPod cluster"
DATE = "2026-11-23"
_IN_BATCHES = ("batch_percent", "rollback_alarms")


@HYP.warning(
    80,
    f"{AMI_UPDATE}: batches, with alarms that roll back, are for clusters on EKS",
    DATE,
    kinds=frozenset({"hyperpod-slurm"}),
)
def batches_only_on_eks(group: Group) -> Breaches:
    """Only HyperPod on EKS updates its nodes in batches."""
    patching = group.settings.patching
    for key in _IN_BATCHES if patching else ():
        if getattr(patching, key):
            yield at("patching", key).breach(
                f"`{key}` with Slurm: AWS documents batches, and alarms that roll them back, on EKS only. "
                "The whole "
                "group is updated at once, or the request is refused.",
                drop(),
            )


@HYP.warning(
    81, f"{AMI_UPDATE}; {GROUP_API} (ImageReleaseVersion, ScheduledUpdateConfig, AutoPatchConfig)", DATE
)
def pinned_image_excludes_patching(group: Group) -> Breaches:
    """A group with a pinned image is not patched by itself."""
    release, patching = group.settings.image_release, group.settings.patching
    if group.in_service and release and patching:
        yield at("patching").breach(
            f"patching moves the nodes past {release}, and CloudFormation does not notice: the file then "
            "names an "
            "image that no node runs, and a change of it wipes root volumes.",
            drop() | beside(image_release=DROP),
        )


@HYP.warning(82, f"{AMI_UPDATE}: updates whose schedules overlap might fail; leave time between them", DATE)
def patching_windows_differ(cluster: Cluster) -> Breaches:
    """No two groups are updated at the same time."""
    seen: dict[str, str] = {}
    taken = {
        one.settings.patching.schedule
        for one in cluster.in_service.values()
        if isinstance(one.settings.patching, ScheduledPatching)
    }
    for name, group in cluster.in_service.items():
        patching = group.settings.patching
        if not isinstance(patching, ScheduledPatching):
            continue
        other = seen.setdefault(patching.schedule, name)
        if other != name:
            yield at("node_groups", name, "patching", "schedule").breach(
                f"`{other}` is updated at the same time: AWS says that updates whose schedules overlap "
                "might fail.",
                write(_later(patching.schedule, taken)),
            )


@HYP.warning(
    83,
    "SageMaker API reference, ClusterAutoPatchConfig (DeploymentConfig: only with a rolling strategy)",
    DATE,
)
def batches_exclude_patching(patching: AutomaticPatching, hyperpod: HyperPod) -> Breaches:
    """Automatic patching has no settings of rolling updates."""
    for key in _IN_BATCHES:
        if getattr(patching, key) and hyperpod.kind == "hyperpod-eks":
            yield at(key).breach(
                f"`{key}` with `{patching.kind}`: the API counts it only with a rolling strategy, and "
                "nodes that are patched when they are idle are none, by our reading; a patch of one group "
                "would show it.",
                drop() | inside_schedule(),
            )


@HYP.warning(
    84,
    "SageMaker API reference, ImageId: with continuous provisioning a new group inherits the image "
    "of the "
    "oldest one",
    DATE,
)
def images_pinned_together(cluster: Cluster, hyperpod: HyperPod) -> Breaches:
    """With continuous provisioning all groups have a pinned image, or none has."""
    groups = {name: one for name, one in cluster.in_service.items() if one.restricted is None}
    pins = [one.settings.image_release for one in groups.values() if one.settings.image_release]
    if hyperpod.provisioning != "continuous" or not pins:
        return
    for name, group in groups.items():
        settings = group.settings
        if not settings.image_release and not settings.image and not settings.patching:
            yield at("node_groups", name).breach(
                f"other groups are pinned to a release of HyperPod's image ({pins[0]}), and this one gets "
                "that of the "
                "oldest group, or the newest: which one shows only in the account.",
                inside(image_release=pins[0]),
            )


@HYP.error(
    85,
    "SageMaker Developer Guide, Resilience-related Kubernetes labels by SageMaker HyperPod",
    DATE,
    kinds=frozenset({"hyperpod-eks"}),
)
def reserved_taints(group: Group) -> Breaches:
    """No taint has a name of HyperPod's own."""
    for index, taint in enumerate(group.settings.taints):
        prefix, _, last = taint.key.rpartition("/")
        if group.in_service and prefix == "sagemaker.amazonaws.com":
            yield at("taints", index, "key").breach(
                f"`{taint.key}` is HyperPod's: it sets it while a node is checked or replaced, and takes "
                "it away.",
                write(f"example.com/{last}"),
            )


def inside_schedule() -> Remedy:
    """Fixed times instead of idle nodes."""
    return beside(kind="scheduled", schedule="cron(0 3 ? * SUN *)")


def _later(schedule: str, taken: set[str]) -> str:
    """The same day, some hours later, at a time that no other group has."""
    found = re.fullmatch(r"cron\((\S+) (\S+) (.+)\)", schedule)
    if found is None or not found[2].isdigit():
        return "cron(0 3 ? * SUN *)"
    hours = [(int(found[2]) + step) % 24 for step in (6, 12, 18, 3, 9, 15, 21)]
    options = [f"cron({found[1]} {hour} {found[3]})" for hour in hours]
    return next((option for option in options if option not in taken), options[0])
