"""Rules on HyperPod on EKS: restricted instance groups, in which Amazon Nova models are customised."""

from __future__ import annotations

from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import RestrictedLustre
from ultracluster.config.remedy import DROP, anywhere, ask, drop, inside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import HYP, HYPERPOD, KUBERNETES

API = (
    "SageMaker API reference, ClusterRestrictedInstanceGroupSpecification; CloudFormation, "
    "AWS::SageMaker::Cluster ClusterRestrictedInstanceGroup"
)
NOVA = (
    "SageMaker Developer Guide, Creating a HyperPod EKS cluster with restricted instance group "
    "(nova-hp-cluster)"
)
TERRAFORM = (
    "awslabs/awsome-distributed-ai, 7.sagemaker-hyperpod-eks/terraform-modules/README.md, Creating a "
    "Restricted "
    "Instance Group (RIG) for Nova Model Customization"
)
DATE = "2026-11-23"
KINDS = HYPERPOD & KUBERNETES
REGION = "us-east-1"
_LACKING = (
    "instance_types",
    "efa_interface",
    "image",
    "image_release",
    "labels",
    "lifecycle_steps",
    "mig_layout",
    "mig_profile",
    "min_count",
    "patching",
    "taints",
)
"""Fields of a group that the API has for others only."""


@HYP.error(87, API, DATE, kinds=KINDS)
def restricted_group_settings(group: Group) -> Breaches:
    """Restricted groups use only what the API has for them."""
    if group.restricted is None or not group.in_service:
        return
    values = dict(group.settings)
    for key in _LACKING:
        if key in group.settings.model_fields_set and values[key] not in (None, (), {}):
            yield at(key).breach(f"the API has no such setting as `{key}` for a restricted group.", drop())
    if group.capacity.kind == "spot":
        yield at("capacity").breach(
            "the API has no Spot capacity for a restricted group.", write({"kind": "on-demand"})
        )


@HYP.error(88, f"{API}; {NOVA}", DATE, kinds=KINDS)
def restricted_group_lustre(group: Group, hyperpod: HyperPodEks) -> Breaches:
    """Each restricted group has a Lustre file system."""
    if group.restricted is None or not group.in_service:
        return
    own, shared = group.restricted.lustre, hyperpod.restricted_lustre
    place: YamlPath = ("restricted", "lustre")
    if own is None and shared is None:
        yield at("restricted").breach(
            "HyperPod asks for the size of the Lustre file system that it makes for the group.",
            inside(lustre={"capacity_gib": 4800, "throughput_mbps_per_tib": 250}),
        )
    elif own is not None and shared is not None:
        yield at(*place).breach(
            "the cluster has a Lustre file system that restricted groups share, and this group asks for "
            "its own.",
            drop() | anywhere({("orchestrator", "restricted_lustre"): DROP}),
        )


@HYP.error(
    89,
    f"FSx for Lustre User Guide, Persistent 2 (1200, 2400 or multiples of 2400 GiB); {TERRAFORM}",
    DATE,
    kinds=KINDS,
)
def restricted_lustre_size(lustre: RestrictedLustre) -> Breaches:
    """The Lustre file system of restricted groups has a size that FSx makes."""
    size = lustre.capacity_gib
    if size != 1200 and size % 2400:
        yield at("capacity_gib").breach(
            f"{size} GiB: FSx makes 1200 GiB, and multiples of 2400.",
            write(min(100_800, (size // 2400 + 1) * 2400)),
        )


@HYP.warning(90, "this configuration: orchestrator.restricted_lustre", DATE, kinds=KINDS)
def restricted_lustre_used(hyperpod: HyperPodEks, cluster: Cluster) -> Breaches:
    """`restricted_lustre` is used by a restricted group."""
    if hyperpod.restricted_lustre and not _restricted(cluster):
        yield at("restricted_lustre").breach("no group is `restricted`: nothing would use it.", drop())


@HYP.warning(
    91,
    f"{NOVA}: us-east-1 only; the page has since moved to the Nova guide, which names none",
    DATE,
    kinds=KINDS,
)
def restricted_group_region(cluster: Cluster) -> Breaches:
    """Restricted groups are in the Region that AWS documents."""
    if cluster.region != REGION and (names := _restricted(cluster)):
        yield at("region").breach(
            f"`{names[0]}` is restricted, and AWS documents restricted groups in {REGION} only.",
            moved_to(cluster, REGION),
        )


@HYP.warning(
    94,
    f"{TERRAFORM}: a combination is not supported there; the observability add-on's page speaks of both",
    DATE,
    kinds=KINDS,
)
def restricted_groups_separate(cluster: Cluster) -> Breaches:
    """A cluster has restricted groups or others, not both."""
    restricted = _restricted(cluster)
    for name, group in cluster.in_service.items() if restricted else ():
        if group.restricted is None:
            yield at("node_groups", name).breach(
                f"`{restricted[0]}` is restricted and this group is not: AWS's own templates do not "
                "combine them "
                "(its pages disagree).",
                drop().noting("and make another environment of it; or try it and acknowledge this"),
            )


@HYP.warning(
    95,
    "SageMaker Developer Guide, Creating a SageMaker HyperPod cluster (CLI): Nova needs a separate "
    "Helm "
    f"chart; {TERRAFORM}",
    DATE,
    kinds=KINDS,
    by_hand="kubectl get deployment,daemonset -A -l app.kubernetes.io/part-of=hyperpod",
)
def restricted_group_charts(cluster: Cluster) -> Breaches:
    """HyperPod's charts for restricted groups are installed."""
    if names := _restricted(cluster):
        yield at("node_groups", names[0], "restricted").breach(
            "AWS changes CoreDNS and the VPC CNI for restricted groups by a Helm chart and a script of its "
            "own, "
            "before the cluster is made; they are not part of this package.",
            ask("action", "deploy the control plane, run AWS's script (docs/wishes), deploy the rest"),
        )


@HYP.warning(96, f"{NOVA}: only the execution role gives rights", DATE, kinds=KINDS)
def restricted_group_buckets(group: Group) -> Breaches:
    """Jobs of a restricted group may read and write buckets."""
    restricted = group.restricted
    if restricted and group.in_service and not (restricted.reads and restricted.writes):
        lacking = " and ".join(key for key in ("reads", "writes") if not getattr(restricted, key))
        yield at("restricted").breach(
            f"without `{lacking}` its jobs reach no S3 bucket of yours: nothing but the execution role "
            "gives them "
            "rights.",
            ask("fact", "reads: [bucket of the data], writes: [bucket of the results]"),
        )


def _restricted(cluster: Cluster) -> list[str]:
    return [name for name, group in cluster.in_service.items() if group.restricted]
