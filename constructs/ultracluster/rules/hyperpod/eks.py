"""Rules on HyperPod on EKS: release, add-ons and autoscaling of the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

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
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import HPE

IMAGES = "SageMaker Developer Guide, Amazon SageMaker HyperPod AMI support policy"
GOVERNANCE = "SageMaker Developer Guide, SageMaker HyperPod task governance"
KARPENTER = "SageMaker Developer Guide, Autoscaling on SageMaker HyperPod EKS; Create a NodeClass"
AGENT = "aws/sagemaker-hyperpod-cli 011ca92, charts/health-monitoring-agent/templates/_helpers.tpl"


@HPE.rule(
    1,
    "error",
    "HyperPod accepts the cluster's name",
    source="SageMaker API reference, CreateCluster (ClusterName)",
)
def name_for_both(hyperpod: HyperPodEks, cluster: Cluster) -> Iterator[Breach]:
    name = cluster.environment.cluster_name
    if name.endswith("-"):
        yield Breach(
            ("cluster_name",),
            f"`{name}` names the EKS and the HyperPod cluster, and HyperPod accepts no `-` at the end.",
            write(name.rstrip("-") or cluster.name),
        )


@HPE.rule(2, "error", "HyperPod has images for the Kubernetes release", source=IMAGES)
def release_of_images(hyperpod: HyperPodEks) -> Iterator[Breach]:
    wanted, (first, last) = hyperpod.kubernetes_version, hyperpod_kubernetes_window()
    if not _minor(first) <= _minor(wanted) <= _minor(last):
        yield Breach(
            ("kubernetes_version",),
            f"HyperPod's images are for {first} to {last}: nodes would not join a control plane of {wanted}.",
            write(hyperpod_kubernetes_agreed()),
        )


@HPE.rule(
    120,
    "warning",
    "All of AWS's pages have the Kubernetes release for HyperPod",
    source="SageMaker Developer Guide, SageMaker HyperPod AMI releases for Amazon EKS; Getting started with "
    "Amazon EKS support in SageMaker HyperPod",
    date="2026-11-27",
)
def release_of_every_page(hyperpod: HyperPodEks) -> Iterator[Breach]:
    wanted, agreed = hyperpod.kubernetes_version, hyperpod_kubernetes_agreed()
    if _minor(agreed) < _minor(wanted) <= _minor(hyperpod_kubernetes_window()[1]):
        said = ", ".join(
            f"`{page}` ({date}) up to {newest}" for page, newest, date in hyperpod_kubernetes_pages()
        )
        yield Breach(
            ("kubernetes_version",),
            f"AWS's pages disagree on the releases that HyperPod supports: {said}. Where the older one is "
            f"right, nodes do not join a control plane of {wanted}, which cannot go back.",
            write(agreed).noting(
                "or acknowledge this once a node of HyperPod has joined such a control plane"
            ),
        )


@HPE.rule(
    3,
    "warning",
    "HyperPod's add-ons support the Kubernetes release",
    source="catalog/hyperpod_eks.json: a third party's record of the live API, 2026-10-04, which EKS settles",
    by_hand="aws eks describe-addon-versions --addon-name <name> "
    "--query 'addons[].addonVersions[].[addonVersion,compatibilities[].clusterVersion]'",
)
def release_of_addons(hyperpod: HyperPodEks, cluster: Cluster | None) -> Iterator[Breach]:
    wanted = hyperpod.kubernetes_version
    for name, place in _addons(hyperpod, cluster).items():
        first, last = hyperpod_addon_window(name)
        early, late = _minor(wanted) < _minor(first), last and _minor(wanted) > _minor(last)
        if name in hyperpod.addon_versions or not (early or late):
            continue
        yield Breach(
            place,
            f"the pinned version of {name} is for Kubernetes {first} to {last or 'some later one'}, not for "
            f"{wanted}: EKS would refuse it.",
            anywhere({("orchestrator", "kubernetes_version"): first if early else last}).noting(
                "or addon_versions with one that fits"
            ),
        )


@HPE.rule(
    5,
    "warning",
    "The health-monitoring agent is available in the Region",
    source=f"{AGENT}; aws/sagemaker-hyperpod-cli#359",
)
def agent_in_region(home: Region) -> Iterator[Breach]:
    if home.name not in health_agent_regions():
        yield Breach(
            (),
            f"no image of the agent is known in {home.name}: it would be pulled from us-east-1, "
            "which a closed network does not reach, and without it no faulty node is found.",
            ask("decision", f"region: one of {', '.join(health_agent_regions())}"),
        )


@HPE.rule(
    6,
    "warning",
    "`addon_versions` only names add-ons that are installed",
    source="this configuration: orchestrator.addon_versions",
)
def version_of_nothing(hyperpod: HyperPodEks, cluster: Cluster | None) -> Iterator[Breach]:
    wanted = _addons(hyperpod, cluster)
    for name in hyperpod.addon_versions:
        if name not in wanted:
            yield Breach(
                ("addon_versions", name),
                f"{name} is not installed: no setting asks for it.",
                drop().noting(f"these are installed: {', '.join(wanted) or 'none'}"),
            )


@HPE.rule(61, "error", "Karpenter has at least one group to scale", source=KARPENTER)
def karpenter_groups(hyperpod: HyperPodEks, cluster: Cluster) -> Iterator[Breach]:
    if hyperpod.autoscaling and not any(group.for_pods for group in cluster.groups.values()):
        yield Breach(
            ("autoscaling",),
            "every compute group has a `count` above 0, and Karpenter starts from 0: it would first scale "
            "the groups that it manages down to 0.",
            ask("decision", "count: 0 in the groups that it is to scale"),
        )


@HPE.rule(
    63,
    "error",
    "Karpenter's pools have different names in lower case",
    source="Kubernetes documentation, Object Names and IDs: lower case only",
)
def karpenter_names(cluster: Cluster) -> Iterator[Breach]:
    scaled = [name for name, group in cluster.groups.items() if group.for_pods]
    counts = Counter(name.lower() for name in scaled)
    for name in scaled:
        if counts[name.lower()] > 1:
            yield Breach(
                ("node_groups", name),
                f"another group is also named `{name.lower()}` in lower case, in which Kubernetes writes the "
                "names of pools.",
                rename(f"{name}-2"),
            )


@HPE.rule(
    64,
    "warning",
    "The memory for checkpoints is a share that the service accepts",
    source="SageMaker Developer Guide, Managed tiered checkpointing (20 to 100; the API says 0 to 100)",
)
def tiered_share(hyperpod: HyperPodEks) -> Iterator[Breach]:
    percent, least = hyperpod.tiered_checkpoints_percent, tiered_checkpoints()["percent"][0]
    if percent and percent < least:
        yield Breach(
            ("tiered_checkpoints_percent",),
            f"{percent} %: the guide requires at least {least}, the API nothing (the two disagree).",
            write(least),
        )


@HPE.rule(
    65,
    "warning",
    "Nodes of an UltraServer can use NVLink between them",
    source="EKS User Guide, ml-eks-nvidia-ultraserver; NVIDIA/aicr#668",
)
def ultraserver_domain(group: Group, hyperpod: HyperPodEks) -> Iterator[Breach]:
    kind = group.type
    if group.in_service and kind and kind.imex and not hyperpod.compute_domains:
        yield Breach(
            ("instance_type",),
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


def _minor(release: str) -> int:
    return int(release.partition(".")[2])
