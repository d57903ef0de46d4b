"""Rules on: Kubernetes on EKS. Trainium: Neuron's device plugin and its scheduler extension."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ultracluster.catalog.eks import NEURON, charts, kube_scheduler_tag
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import YamlPath, anywhere, ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.model.team_shares import scheduler_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

DATE = "2026-11-23"
EXTENSION = "Neuron documentation, Neuron scheduler extension (aws-neuron-sdk of 2026-08-21)"
ULTRASERVERS = "Neuron documentation, How to schedule MPI jobs to run on Neuron UltraServer on EKS"
SKEW = "Kubernetes documentation, Version Skew Policy: kube-scheduler"
_TAG: YamlPath = ("scheduler", "customScheduler", "image", "tag")
_PLUGIN: YamlPath = ("devicePlugin", "image", "tag")


@EKS.error(100, EXTENSION, DATE)
def neuron_scheduler_needs_devices(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """Neuron's scheduler extension is installed only where there are Neuron devices."""
    types = [kind for group in cluster.with_role("compute").values() for kind in group.types]
    if settings.neuron_scheduler and all(
        kind is not None and not _is_neuron(kind.accelerator) for kind in types
    ):
        yield at("neuron_scheduler").breach(
            "no compute group has Trainium or Inferentia: Neuron's chart, which brings the extension, is not "
            "installed.",
            drop(),
        )


@EKS.warning(101, f"{EXTENSION}: pods name its scheduler", DATE)
def neuron_scheduler_reached(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """Jobs reach Neuron's scheduler extension."""
    scheduler = scheduler_of(cluster)
    if settings.neuron_scheduler and scheduler in ("volcano", "kai"):
        yield at("neuron_scheduler").breach(
            f"pods of {scheduler} name its own scheduler and never reach Neuron's: devices that they get are "
            "not known to the extension, and may not be joined.",
            anywhere({("orchestrator", "scheduler"): "kueue"}) | drop(),
        )


@EKS.error(102, SKEW, DATE)
def neuron_scheduler_skew(settings: Eks | HyperPodEks) -> Breaches:
    """The second scheduler fits the release of the control plane."""
    given = _value(settings, _TAG)
    found = re.match(r"v1\.(\d+)\.", str(given or ""))
    if not settings.neuron_scheduler or found is None:
        return
    minor, control_plane = int(found[1]), int(settings.kubernetes_version.partition(".")[2])
    if not control_plane - 1 <= minor <= control_plane:
        known = kube_scheduler_tag(settings.kubernetes_version)
        yield at("chart_values", NEURON, *_TAG).breach(
            f"{given} with a control plane of {settings.kubernetes_version}: Kubernetes supports a scheduler "
            "of the same minor release, or of the one below.",
            write(known) if known else ask("fact", f"a tag of v{settings.kubernetes_version}"),
        )


@EKS.error(103, f"{ULTRASERVERS} (aws-neuron-sdk of 2026-08-21)", DATE)
def neuron_plugin_for_ultraservers(group: Group, settings: Eks | HyperPodEks) -> Breaches:
    """The device plugin tells which nodes are of one UltraServer."""
    kind = group.type
    given, floor = _value(settings, _PLUGIN), charts()[NEURON]["device_plugin_for_ultraservers"]
    if not kind or not kind.ultraserver or not _is_neuron(kind.accelerator) or not given:
        return
    if _numbers(str(given)) < _numbers(floor):
        yield at("instance_type").breach(
            f"chart_values has Neuron's device plugin {given}, and nodes of UltraServers ({kind.name}) get "
            f"their labels from {floor} on: pods of a job would be spread over UltraServers.",
            anywhere({("orchestrator", "chart_values", NEURON, *_PLUGIN): charts()[NEURON]["device_plugin"]}),
        )


@EKS.warning(104, SKEW, DATE)
def neuron_scheduler_image(settings: Eks | HyperPodEks) -> Breaches:
    """An image of the second scheduler is known for the release."""
    known = kube_scheduler_tag(settings.kubernetes_version)
    if settings.neuron_scheduler and known is None and not _value(settings, _TAG):
        yield at("neuron_scheduler").breach(
            f"for Kubernetes {settings.kubernetes_version} no image of the second scheduler is known, and "
            "the chart's own is of an older release, which Kubernetes does not support beside it.",
            ask("fact", f"chart_values: {{{NEURON}: {{{': {'.join(map(str, _TAG))}: v1...}}}}}}}}"),
        )


def _is_neuron(accelerator: object) -> bool:
    return getattr(accelerator, "manufacturer", "") == "AWS"


def _value(settings: Eks | HyperPodEks, path: YamlPath) -> Any:
    """A value of the environment's own for Neuron's chart."""
    found: Any = settings.chart_values.get(NEURON, {})
    for part in path:
        found = cast("Mapping[str, Any]", found).get(str(part)) if isinstance(found, Mapping) else None
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
