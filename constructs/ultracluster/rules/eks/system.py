"""Rules on: Kubernetes on EKS. Whether the pods of add-ons and charts may run on the system nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ultracluster.catalog.eks import addon_version, charts
from ultracluster.catalog.hyperpod_eks import addon_order, hyperpod_addon_tolerations
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import Taint
from ultracluster.config.remedy import drop, write
from ultracluster.model import Cluster
from ultracluster.model.inference import S3_DRIVER, S3_DRIVER_FLOOR
from ultracluster.model.observability import OBSERVABILITY_ADDON, uses_addon
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS

DATE = "2026-11-22"
TAINTS = "Kubernetes documentation, Taints and Tolerations"


@EKS.error(18, f"{TAINTS}; catalog/charts.json: where each chart has them", DATE)
def chart_tolerations(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """Tolerations in chart_values let the chart's pods run on system nodes.

    Ours tolerate every taint of the system groups; a list in `chart_values` takes their place.
    """
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
            yield at("chart_values", name, *key.split(".")).breach(
                f"the chart's pods cannot run on any system group: `{first}` has {_words(tainted[first])}, "
                "which this list does not tolerate. They would wait forever.",
                drop().noting("the default list tolerates it"),
            )


@EKS.warning(
    19,
    f"{TAINTS}; the schemas of HyperPod's add-ons are not published",
    DATE,
    by_hand="aws eks describe-addon-configuration --addon-name <name> --addon-version <version> "
    "--query configurationSchema",
    kinds=frozenset({"hyperpod-eks"}),
)
def system_taints_of_addons(cluster: Cluster, settings: HyperPodEks) -> Breaches:
    """At least one system group has no taints that add-ons cannot tolerate."""
    tainted = _hard_taints(cluster)
    names = [name for name in _addons(cluster, settings) if hyperpod_addon_tolerations(name) is None]
    if not tainted or not names:
        return
    first = next(iter(tainted))
    yield at("node_groups", first, "taints").breach(
        f"every system group has taints, and AWS does not publish how pods of {', '.join(names)} can "
        f"tolerate {_words(tainted[first])}: unless they run on HyperPod's nodes, they wait forever.",
        drop().noting("or add a system group without taints"),
    )


@EKS.warning(
    122,
    f"{TAINTS}; aws/containers-roadmap#2676 (open): the add-on has no key for tolerations of its controller",
    "2026-11-28",
    by_hand="aws eks describe-addon-configuration --addon-name aws-mountpoint-s3-csi-driver --addon-version "
    "<version> --query configurationSchema",
)
def system_taints_of_mountpoint(cluster: Cluster, settings: Eks | HyperPodEks) -> Breaches:
    """At least one system group has no taints that Mountpoint's controller cannot tolerate."""
    tainted = _hard_taints(cluster)
    if settings.mountpoint_s3 and tainted:
        first = next(iter(tainted))
        yield at("node_groups", first, "taints").breach(
            "every system group has taints, and the add-on that mounts `mountpoint_s3` has no setting by "
            f"which its controller tolerates {_words(tainted[first])}: without it nothing is mounted.",
            drop().noting("or add a system group without taints"),
        )


@EKS.error(123, "awslabs/mountpoint-s3-csi-driver, CHANGELOG.md (v2.0.0: EKS Pod Identity)", "2026-11-28")
def driver_takes_pod_identity(settings: HyperPodEks) -> Breaches:
    """The driver of mountpoint_s3 takes a role by Pod Identity."""
    written = dict(settings.addon_versions).get(S3_DRIVER)
    if settings.mountpoint_s3 and written and addon_order(written) < addon_order(S3_DRIVER_FLOOR):
        yield at("addon_versions", S3_DRIVER).breach(
            f"{written} takes no role by Pod Identity, by which `mountpoint_s3` is reached: "
            f"{S3_DRIVER_FLOOR} is the first that does.",
            drop() | write(addon_version(S3_DRIVER, settings.kubernetes_version)),
        )


@EKS.error(
    124, "awslabs/mountpoint-s3-csi-driver, docs/CONFIGURATION.md (Driver-Level Credentials)", "2026-11-28"
)
def bucket_driver_role(settings: HyperPodEks) -> Breaches:
    """The one driver that mounts buckets has one role."""
    wanted = settings.inference
    if settings.mountpoint_s3 and wanted and wanted.model_reader_role_arn:
        yield at("inference", "model_reader_role_arn").breach(
            "one driver mounts models and the volumes of `mountpoint_s3`, by the role that is made for "
            "these: this one would have no effect.",
            drop().noting("and name the buckets of models in model_buckets"),
        )


def _addons(cluster: Cluster, settings: HyperPodEks) -> list[str]:
    """Add-ons of HyperPod that are switched on and have pods."""
    switched_on: dict[str, object] = {
        "amazon-sagemaker-hyperpod-taskgovernance": settings.task_governance,
        "amazon-sagemaker-hyperpod-training-operator": settings.training_operator,
        OBSERVABILITY_ADDON: uses_addon(cluster),
        "amazon-sagemaker-hyperpod-inference": settings.inference,
        "amazon-sagemaker-spaces": settings.spaces,
    }
    return [name for name, value in switched_on.items() if value]


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
        toleration.get("effect") in (None, "", taint.effect)
        and (
            (toleration.get("operator") == "Exists" and toleration.get("key") in (None, "", taint.key))
            or (toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value)
        )
        for toleration in tolerations
    )


def _at(values: Mapping[str, Any], key: str) -> Any:
    found: Any = values
    for part in key.split("."):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    return found


def _words(taints: Sequence[Taint]) -> str:
    values = [f"{taint.key}={taint.value}" if taint.value else taint.key for taint in taints]
    return ", ".join(f"{value}:{taint.effect}" for value, taint in zip(values, taints, strict=True))
