"""Rules on HyperPod, with Slurm and on EKS: windows of software updates, pinned images, taints of the "
"service."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ultracluster.config.nodes import AutomaticPatching, ScheduledPatching
from ultracluster.config.remedy import DROP, Remedy, beside, drop, inside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breach
from ultracluster.rules.hyperpod.groups import GROUP_API, HyperPod
from ultracluster.rules.sets import HYP

AMI_UPDATE = "SageMaker Developer Guide, Update your AMI version in your SageMaker HyperPod cluster"
DATE = "2026-11-23"
_IN_BATCHES = ("batch_percent", "rollback_alarms")


@HYP.rule(
    80,
    "warning",
    "Only HyperPod on EKS updates its nodes in batches",
    source=f"{AMI_UPDATE}: batches, with alarms that roll back, are for clusters on EKS",
    date=DATE,
    kinds=frozenset({"hyperpod-slurm"}),
)
def batches_with_slurm(group: Group) -> Iterator[Breach]:
    patching = group.settings.patching
    for key in _IN_BATCHES if patching else ():
        if getattr(patching, key):
            yield Breach(
                ("patching", key),
                f"`{key}` with Slurm: AWS documents batches, and alarms that roll them back, on EKS only. "
                "The whole "
                "group is updated at once, or the request is refused.",
                drop(),
            )


@HYP.rule(
    81,
    "warning",
    "A group with a pinned image is not patched by itself",
    source=f"{AMI_UPDATE}; {GROUP_API} (ImageReleaseVersion, ScheduledUpdateConfig, AutoPatchConfig)",
    date=DATE,
)
def pinned_and_patched(group: Group) -> Iterator[Breach]:
    release, patching = group.settings.image_release, group.settings.patching
    if group.in_service and release and patching:
        yield Breach(
            ("patching",),
            f"patching moves the nodes past {release}, and CloudFormation does not notice: the file then "
            "names an "
            "image that no node runs, and a change of it wipes root volumes.",
            drop() | beside(image_release=DROP),
        )


@HYP.rule(
    82,
    "warning",
    "No two groups are updated at the same time",
    source=f"{AMI_UPDATE}: updates whose schedules overlap might fail; leave time between them",
    date=DATE,
)
def windows_apart(cluster: Cluster) -> Iterator[Breach]:
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
            yield Breach(
                ("node_groups", name, "patching", "schedule"),
                f"`{other}` is updated at the same time: AWS says that updates whose schedules overlap "
                "might fail.",
                write(_later(patching.schedule, taken)),
            )


@HYP.rule(
    83,
    "warning",
    "Automatic patching has no settings of rolling updates",
    source="SageMaker API reference, ClusterAutoPatchConfig (DeploymentConfig: only with a rolling strategy)",
    date=DATE,
)
def batches_when_idle(patching: AutomaticPatching, hyperpod: HyperPod) -> Iterator[Breach]:
    for key in _IN_BATCHES:
        if getattr(patching, key) and hyperpod.kind == "hyperpod-eks":
            yield Breach(
                (key,),
                f"`{key}` with `{patching.kind}`: the API counts it only with a rolling strategy, and "
                "nodes that are patched when they are idle are none, by our reading; a patch of one group "
                "would show it.",
                drop() | inside_schedule(),
            )


@HYP.rule(
    84,
    "warning",
    "With continuous provisioning all groups have a pinned image, or none has",
    source="SageMaker API reference, ImageId: with continuous provisioning a new group inherits the image "
    "of the "
    "oldest one",
    date=DATE,
)
def pinned_together(cluster: Cluster, hyperpod: HyperPod) -> Iterator[Breach]:
    groups = {name: one for name, one in cluster.in_service.items() if one.restricted is None}
    pins = [one.settings.image_release for one in groups.values() if one.settings.image_release]
    if hyperpod.provisioning != "continuous" or not pins:
        return
    for name, group in groups.items():
        settings = group.settings
        if not settings.image_release and not settings.image and not settings.patching:
            yield Breach(
                ("node_groups", name),
                f"other groups are pinned to a release of HyperPod's image ({pins[0]}), and this one gets "
                "that of the "
                "oldest group, or the newest: which one shows only in the account.",
                inside(image_release=pins[0]),
            )


@HYP.rule(
    85,
    "error",
    "No taint has a name of HyperPod's own",
    source="SageMaker Developer Guide, Resilience-related Kubernetes labels by SageMaker HyperPod",
    date=DATE,
    kinds=frozenset({"hyperpod-eks"}),
)
def own_taints(group: Group) -> Iterator[Breach]:
    for index, taint in enumerate(group.settings.taints):
        prefix, _, last = taint.key.rpartition("/")
        if group.in_service and prefix == "sagemaker.amazonaws.com":
            yield Breach(
                ("taints", index, "key"),
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
    return next((one for one in options if one not in taken), options[0])


__all__ = ["AMI_UPDATE"]
