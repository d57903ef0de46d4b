"""Rules on HyperPod on EKS: release, add-ons and autoscaling of the cluster."""

from __future__ import annotations

from collections import Counter

from ultracluster.catalog import Region
from ultracluster.catalog.hyperpod_eks import (
    health_agent_regions,
    hyperpod_addon_window,
    hyperpod_kubernetes_agreed,
    hyperpod_kubernetes_pages,
    hyperpod_kubernetes_window,
    tiered_checkpoints,
)
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.remedy import anywhere, ask, drop, rename, write
from ultracluster.model import Cluster, Group
from ultracluster.model.inference import BEFORE, S3_DRIVER
from ultracluster.model.observability import OBSERVABILITY_ADDON, uses_addon
from ultracluster.rules.eks.releases import minor
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HPE

IMAGES = "SageMaker Developer Guide, Amazon SageMaker HyperPod AMI support policy"
GOVERNANCE = "SageMaker Developer Guide, SageMaker HyperPod task governance"
KARPENTER = "SageMaker Developer Guide, Autoscaling on SageMaker HyperPod EKS; Create a NodeClass"
AGENT = "aws/sagemaker-hyperpod-cli 011ca92, charts/health-monitoring-agent/templates/_helpers.tpl"


@HPE.error(1, "SageMaker API reference, CreateCluster (ClusterName)")
def cluster_name(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """HyperPod accepts the cluster's name."""
    name = cluster.environment.cluster_name
    if name.endswith("-"):
        yield at("cluster_name").breach(
            f"`{name}` names the EKS and the HyperPod cluster, and HyperPod accepts no `-` at the end.",
            write(name.rstrip("-") or cluster.name),
        )


@HPE.error(2, IMAGES)
def kubernetes_with_images(hyperpod: HyperPodEks) -> Breaches:
    """HyperPod has images for the Kubernetes release."""
    wanted, (first, last) = hyperpod.kubernetes_version, hyperpod_kubernetes_window()
    if not minor(first) <= minor(wanted) <= minor(last):
        yield at("kubernetes_version").breach(
            f"HyperPod's images are for {first} to {last}: nodes would not join a control plane of {wanted}.",
            write(hyperpod_kubernetes_agreed()),
        )


@HPE.warning(
    120,
    "SageMaker Developer Guide, SageMaker HyperPod AMI releases for Amazon EKS; Getting started with "
    "Amazon EKS support in SageMaker HyperPod",
    "2026-11-27",
)
def kubernetes_on_all_pages(hyperpod: HyperPodEks) -> Breaches:
    """All of AWS's pages have the Kubernetes release for HyperPod."""
    wanted, agreed = hyperpod.kubernetes_version, hyperpod_kubernetes_agreed()
    if minor(agreed) < minor(wanted) <= minor(hyperpod_kubernetes_window()[1]):
        said = ", ".join(
            f"`{page}` ({date}) up to {newest}" for page, newest, date in hyperpod_kubernetes_pages()
        )
        yield at("kubernetes_version").breach(
            f"AWS's pages disagree on the releases that HyperPod supports: {said}. Where the older one is "
            f"right, nodes do not join a control plane of {wanted}, which cannot go back.",
            write(agreed).noting(
                "or acknowledge this once a node of HyperPod has joined such a control plane"
            ),
        )


@HPE.warning(
    3,
    "catalog/hyperpod_eks.json: a third party's record of the live API, 2026-10-04, which EKS settles",
    by_hand="aws eks describe-addon-versions --addon-name <name> "
    "--query 'addons[].addonVersions[].[addonVersion,compatibilities[].clusterVersion]'",
)
def kubernetes_of_addons(hyperpod: HyperPodEks, cluster: Cluster | None) -> Breaches:
    """HyperPod's add-ons support the Kubernetes release."""
    wanted = hyperpod.kubernetes_version
    for name, place in _addons(hyperpod, cluster).items():
        first, last = hyperpod_addon_window(name)
        early, late = minor(wanted) < minor(first), last and minor(wanted) > minor(last)
        if name in hyperpod.addon_versions or not (early or late):
            continue
        yield at(*place).breach(
            f"the pinned version of {name} is for Kubernetes {first} to {last or 'some later one'}, not for "
            f"{wanted}: EKS would refuse it.",
            anywhere({("orchestrator", "kubernetes_version"): first if early else last}).noting(
                "or addon_versions with one that fits"
            ),
        )


@HPE.warning(
    5,
    f"{AGENT}; aws/sagemaker-hyperpod-cli#359",
)
def agent_in_region(home: Region) -> Breaches:
    """The health-monitoring agent is available in the Region."""
    if home.name not in health_agent_regions():
        yield at().breach(
            f"no image of the agent is known in {home.name}: it would be pulled from us-east-1, "
            "which a closed network does not reach, and without it no faulty node is found.",
            ask("decision", f"region: one of {', '.join(health_agent_regions())}"),
        )


@HPE.warning(6, "this configuration: orchestrator.addon_versions")
def addon_versions_used(hyperpod: HyperPodEks, cluster: Cluster | None) -> Breaches:
    """`addon_versions` only names add-ons that are installed."""
    wanted = _addons(hyperpod, cluster)
    for name in hyperpod.addon_versions:
        if name not in wanted:
            yield at("addon_versions", name).breach(
                f"{name} is not installed: no setting asks for it.",
                drop().noting(f"these are installed: {', '.join(wanted) or 'none'}"),
            )


@HPE.error(61, KARPENTER)
def karpenter_groups(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """Karpenter has at least one group to scale."""
    if hyperpod.autoscaling and not any(group.for_pods for group in cluster.groups.values()):
        yield at("autoscaling").breach(
            "every compute group has a `count` above 0, and Karpenter starts from 0: it would first scale "
            "the groups that it manages down to 0.",
            ask("decision", "count: 0 in the groups that it is to scale"),
        )


@HPE.error(63, "Kubernetes documentation, Object Names and IDs: lower case only")
def karpenter_names(cluster: Cluster) -> Breaches:
    """Karpenter's pools have different names in lower case."""
    scaled = [name for name, group in cluster.groups.items() if group.for_pods]
    counts = Counter(name.lower() for name in scaled)
    for name in scaled:
        if counts[name.lower()] > 1:
            yield at("node_groups", name).breach(
                f"another group is also named `{name.lower()}` in lower case, in which Kubernetes writes the "
                "names of pools.",
                rename(f"{name}-2"),
            )


@HPE.warning(64, "SageMaker Developer Guide, Managed tiered checkpointing (20 to 100; the API says 0 to 100)")
def tiered_checkpoint_share(hyperpod: HyperPodEks) -> Breaches:
    """The memory for checkpoints is a share that the service accepts."""
    percent, least = hyperpod.tiered_checkpoints_percent, tiered_checkpoints()["percent"][0]
    if percent and percent < least:
        yield at("tiered_checkpoints_percent").breach(
            f"{percent} %: the guide requires at least {least}, the API nothing (the two disagree).",
            write(least),
        )


@HPE.warning(
    65,
    "EKS User Guide, ml-eks-nvidia-ultraserver; NVIDIA/aicr#668",
)
def ultraserver_compute_domain(group: Group, hyperpod: HyperPodEks) -> Breaches:
    """Nodes of an UltraServer can use NVLink between them."""
    kind = group.type
    if group.in_service and kind and kind.imex and not hyperpod.compute_domains:
        yield at("instance_type").breach(
            f"nodes of an UltraServer ({kind.name}) only use NVLink between them inside a ComputeDomain of "
            "NVIDIA's DRA driver, and `compute_domains` is off: without one nodes only have EFA.",
            anywhere({("orchestrator", "compute_domains"): True}).noting(
                "or install dra-driver-nvidia-gpu yourself, and acknowledge this"
            ),
        )


def _addons(hyperpod: HyperPodEks, cluster: Cluster | None) -> dict[str, YamlPath]:
    """The add-ons that are installed, and the key that asks for each."""
    wanted: dict[str, YamlPath] = {}
    for key, name, on in (
        ("task_governance", "amazon-sagemaker-hyperpod-taskgovernance", hyperpod.task_governance),
        ("training_operator", "amazon-sagemaker-hyperpod-training-operator", hyperpod.training_operator),
        ("observability", OBSERVABILITY_ADDON, hyperpod.observability),
        ("inference", "amazon-sagemaker-hyperpod-inference", hyperpod.inference),
        ("spaces", "amazon-sagemaker-spaces", hyperpod.spaces),
    ):
        if on:
            wanted[name] = (key,)
            if key in ("training_operator", "inference", "spaces"):
                wanted["cert-manager"] = (key,)
            if key == "inference":
                wanted |= dict.fromkeys(BEFORE, (key,))
    if hyperpod.mountpoint_s3:
        wanted[S3_DRIVER] = ("mountpoint_s3",)
    if cluster and uses_addon(cluster):
        wanted.setdefault(OBSERVABILITY_ADDON, ())
    return wanted
