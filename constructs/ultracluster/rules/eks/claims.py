"""Rules on: Kubernetes on EKS. Devices that pods claim: ComputeDomains of UltraServers, EFA through DRA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ultracluster.catalog import InstanceType
from ultracluster.catalog.eks import kubernetes_releases
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import DROP, beside, drop, relative, write
from ultracluster.model import Cluster, Group
from ultracluster.model.devices import compute_domain_types, imex_groups
from ultracluster.rules.eks.groups import EKS_ONLY
from ultracluster.rules.eks.releases import minor
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS, HYPERPOD, KUBERNETES

DATE = "2026-11-23"
ULTRASERVERS = "EKS User Guide, Use P6e-GB200 UltraServers with Amazon EKS (ml-eks-nvidia-ultraserver)"
EFA = "EKS User Guide, Manage EFA devices on Amazon EKS (device-management-efa)"
NVIDIA = "EKS User Guide, Use the NVIDIA DRA driver or device plugin on Amazon EKS"
NVIDIA_CHART = "dra-driver-nvidia-gpu"
_IMAGE = "20251103"
"""Date of the first image with driver 580."""


@EKS.warning(80, f"{ULTRASERVERS}: DRA is a requirement to use them", DATE, kinds=EKS_ONLY)
def ultraservers_need_compute_domains(settings: Eks, cluster: Cluster) -> Breaches:
    """NVLink joins the nodes of UltraServers on EKS."""
    for name, group in imex_groups(cluster).items():
        if not settings.compute_domains:
            yield at("compute_domains").breach(
                f"nodes of `{name}` ({_names(group)}) are joined by NVLink only within a ComputeDomain, and "
                "NVIDIA's DRA driver, which makes them, is off: jobs would use EFA alone.",
                write(True).noting("or acknowledge that you install the driver yourself"),
            )
            return


@EKS.error(81, f"{ULTRASERVERS}: Considerations", DATE)
def kubernetes_for_ultraservers(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """UltraServers have Kubernetes 1.33 or later."""
    groups = imex_groups(cluster)
    if groups and minor(settings.kubernetes_version) < 33:
        yield at("kubernetes_version").breach(
            f"group `{next(iter(groups))}` is of UltraServers, which EKS supports from Kubernetes 1.33 on: "
            f"{settings.kubernetes_version} has no Dynamic Resource Allocation.",
            write(kubernetes_releases()[-1]),
        )


@EKS.error(82, f"{EFA}: Prerequisites", DATE, kinds=EKS_ONLY)
def kubernetes_for_efa_claims(settings: Eks) -> Breaches:
    """Pods claim EFA interfaces on Kubernetes 1.34 or later."""
    if settings.efa_devices == "dra" and minor(settings.kubernetes_version) < 34:
        yield at("kubernetes_version").breach(
            f"`efa_devices` is dra, and Kubernetes {settings.kubernetes_version} does not serve "
            "resource.k8s.io/v1, by which pods claim interfaces.",
            write(kubernetes_releases()[-1]).noting("or efa_devices: device-plugin"),
        )


@EKS.warning(
    83,
    "aws/eks-charts 5239609, stable/aws-dranet/README.md: Kubernetes 1.35+; the EKS User Guide: 1.34",
    DATE,
    kinds=EKS_ONLY,
)
def kubernetes_for_efa_chart(settings: Eks) -> Breaches:
    """The chart of the EFA DRA driver is for the Kubernetes release."""
    if settings.efa_devices == "dra" and minor(settings.kubernetes_version) == 34:
        yield at("kubernetes_version").breach(
            "AWS's guide installs the EFA DRA driver on 1.34, its chart asks for 1.35 or later (the two "
            "disagree).",
            write("1.35").noting("or acknowledge this once `kubectl get resourceslices` shows interfaces"),
        )


@EKS.error(84, f"{EFA}: Karpenter with static capacity only", DATE, kinds=EKS_ONLY)
def efa_claims_exclude_autoscaling(group: Group, settings: Eks) -> Breaches:
    """Nodes whose EFA interfaces are claimed do not come for waiting pods."""
    if settings.efa_devices == "dra" and group.for_pods and _has_efa(group):
        fixed: dict[YamlPath, Any] = {("count",): group.most_nodes, ("max_count",): DROP}
        yield at("count").breach(
            "Karpenter starts nodes of this group for waiting pods, and does not see their claims: no node "
            "would ever come. The EFA DRA driver is for nodes that are there.",
            relative(fixed, up=1).noting("a fixed pool, or efa_devices: device-plugin"),
        )


@EKS.warning(85, "this configuration: orchestrator.efa_devices", DATE, kinds=EKS_ONLY)
def efa_claims_need_efa(settings: Eks, cluster: Cluster) -> Breaches:
    """Pods claim EFA interfaces only where there are some."""
    groups = cluster.with_role("compute").values()
    known = all(None not in group.types for group in groups)
    if settings.efa_devices == "dra" and known and not any(map(_has_efa, groups)):
        yield at("efa_devices").breach(
            "no compute group has EFA: no driver is installed, and no pod claims one.", drop()
        )


@EKS.error(86, f"{ULTRASERVERS}: the driver's CDMM excludes MIG and vGPU", DATE)
def mig_excludes_ultraservers(group: Group, settings: Eks | HyperPodEks) -> Breaches:
    """GPUs of an UltraServer are not divided by MIG."""
    if group.settings.mig_key and group.launcher == settings.kind and _imex(group):
        yield at(group.settings.mig_key).breach(
            f"the driver of {_names(group)} in EKS's images has coherent memory (CDMM), which excludes MIG.",
            drop(),
        )


@EKS.warning(
    87, f"{ULTRASERVERS}: v20251103 or later is recommended, with NVIDIA driver 580", DATE, kinds=EKS_ONLY
)
def driver_for_ultraservers(settings: Eks, cluster: Cluster) -> Breaches:
    """The image of UltraServers has the driver for them."""
    release = settings.node_image_release
    if release and imex_groups(cluster) and (date := release.rpartition("-")[2]) < _IMAGE:
        yield at("node_image_release").breach(
            f"EKS's images have driver 580, which UltraServers are recommended to have, since {_IMAGE}; this "
            f"is one of {date}.",
            drop().noting("the default is newer"),
        )


@EKS.warning(88, f"{ULTRASERVERS}: GPU feature discovery sets nvidia.com/gpu.clique", DATE)
def nvlink_domain_labels(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """Nodes of UltraServers are labelled with their NVLink domain."""
    if settings.gpu_plugin == "none" and compute_domain_types(cluster):
        yield at("gpu_plugin").breach(
            "GPU feature discovery comes with the device plugin or the GPU operator: without it no node says "
            "by nvidia.com/gpu.clique which others NVLink reaches.",
            write("device-plugin").noting("or acknowledge that you install it yourself"),
        )


@EKS.error(89, f"{NVIDIA}: with both on one node two pods get the same GPU", DATE)
def one_gpu_driver(settings: Eks | HyperPodEks) -> Breaches:
    """One of NVIDIA's drivers hands out the GPUs."""
    asked = settings.chart_values.get(NVIDIA_CHART, {})
    gpus = _at(asked, "resources", "gpus", "enabled")
    if gpus is True and settings.gpu_plugin != "none":
        yield at("chart_values", NVIDIA_CHART, "resources").breach(
            f"these values let the DRA driver hand out GPUs, and gpu_plugin is {settings.gpu_plugin}, which "
            "does so, too: two pods would get the same GPU.",
            drop().noting("ComputeDomains need no GPUs of the driver"),
        )


@EKS.warning(
    90,
    "kubernetes-sigs/kueue v0.19.2, pkg/features/kube_features.go: since 0.18 jobs with claims that "
    "are mapped to no resource are refused; AWS does not say which Kueue the add-on has",
    DATE,
    kinds=HYPERPOD & KUBERNETES,
    by_hand="kubectl get deployment -n kueue-system -o jsonpath='{..image}'",
)
def task_governance_with_claims(settings: HyperPodEks, cluster: Cluster) -> Breaches:
    """Task governance admits jobs that claim devices."""
    if settings.task_governance and compute_domain_types(cluster):
        yield at("task_governance").breach(
            "jobs on UltraServers claim the channel of a ComputeDomain, and a Kueue of 0.18 or later refuses "
            "jobs with claims unless it is configured for them, which the add-on's is not from here.",
            beside(compute_domains=False).noting("or acknowledge this once a job was admitted"),
        )


def _has_efa(group: Group) -> bool:
    return any(_efa(known) for known in group.known_types)


def _efa(known: InstanceType) -> bool:
    return known.least_efa_interfaces > 0


def _imex(group: Group) -> bool:
    return any(known.imex for known in group.known_types)


def _names(group: Group) -> str:
    return ", ".join(known.name for known in group.known_types if known.imex)


def _at(values: Mapping[str, Any], *keys: str) -> Any:
    found: Any = values
    for key in keys:
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    return found
