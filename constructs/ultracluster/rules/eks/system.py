"""Rules on: Kubernetes on EKS. Whether the pods of add-ons and charts may run on the system nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ultracluster.catalog.eks import charts
from ultracluster.catalog.hyperpod_eks import hyperpod_addon_tolerations
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import Taint
from ultracluster.config.remedy import drop
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import EKS

DATE = "2026-11-22"
TAINTS = "Kubernetes documentation, Taints and Tolerations"


@EKS.rule(
    18,
    "error",
    "Tolerations of your own let a chart's pods onto system nodes",
    source=f"{TAINTS}; catalog/charts.json: where each chart has them",
    date=DATE,
)
def tolerations_that_shut_out(settings: Eks | HyperPodEks, cluster: Cluster) -> Iterator[Breach]:
    """Ours tolerate every taint of the system groups; a list in `chart_values` takes their place."""
    tainted = _hard_taints(cluster)
    for name, values in settings.chart_values.items():
        for key in charts().get(name, {}).get("tolerations", ()):
            given = _at(values, key)
            if not isinstance(given, list) or not tainted:
                continue
            tolerations = cast("list[Mapping[str, Any]]", given)
            if any(all(_tolerated(taint, tolerations) for taint in taints) for taints in tainted.values()):
                continue
            first = next(iter(tainted))
            yield Breach(
                ("chart_values", name, *key.split(".")),
                f"no system group is left for the chart's pods: `{first}` has {_words(tainted[first])}, "
                "which this list does not tolerate. They would wait for ever.",
                drop().noting("ours tolerates it"),
            )


@EKS.rule(
    19,
    "warning",
    "A system group has no taints where add-ons cannot be told to tolerate them",
    source=f"{TAINTS}; the schemas of HyperPod's add-ons are not published",
    date=DATE,
    by_hand="aws eks describe-addon-configuration --addon-name <name> --addon-version <version> "
    "--query configurationSchema",
    kinds=frozenset({"hyperpod-eks"}),
)
def addons_without_tolerations(cluster: Cluster, settings: HyperPodEks) -> Iterator[Breach]:
    tainted = _hard_taints(cluster)
    names = [name for name in _addons(settings) if hyperpod_addon_tolerations(name) is None]
    if not tainted or not names:
        return
    first = next(iter(tainted))
    yield Breach(
        ("node_groups", first, "taints"),
        f"every system group has taints, and how pods of {', '.join(names)} are let tolerate "
        f"{_words(tainted[first])} is not published: unless they run on HyperPod's nodes, they wait for "
        "ever.",
        drop().noting("or one system group more, without taints"),
    )


def _addons(settings: HyperPodEks) -> list[str]:
    """Add-ons of HyperPod that are asked for and have pods."""
    asked_for = {
        "amazon-sagemaker-hyperpod-taskgovernance": settings.task_governance,
        "amazon-sagemaker-hyperpod-training-operator": settings.training_operator,
        "amazon-sagemaker-hyperpod-observability": settings.observability,
        "amazon-sagemaker-hyperpod-inference": settings.inference,
    }
    return [name for name, value in asked_for.items() if value]


def _hard_taints(cluster: Cluster) -> dict[str, list[Taint]]:
    """System groups with the taints that keep pods out; empty as soon as one group keeps none out."""
    found = {
        name: [taint for taint in group.settings.taints if taint.effect != "PreferNoSchedule"]
        for name, group in cluster.with_role("system").items()
        if group.most_nodes
    }
    return found if found and all(found.values()) else {}


def _tolerated(taint: Taint, tolerations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the tolerations is of the taint, as Kubernetes compares them."""
    return any(
        one.get("effect") in (None, "", taint.effect)
        and (
            (one.get("operator") == "Exists" and one.get("key") in (None, "", taint.key))
            or (one.get("key") == taint.key and (one.get("value") or "") == taint.value)
        )
        for one in tolerations
    )


def _at(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for part in key.split("."):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    return found


def _words(taints: Sequence[Taint]) -> str:
    values = [f"{one.key}={one.value}" if one.value else one.key for one in taints]
    return ", ".join(f"{value}:{one.effect}" for value, one in zip(values, taints, strict=True))
