"""Rules on HyperPod, with Slurm and on EKS: groups, counts, capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.network import Network
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import HYP
from ultracluster.rules.sources import BOTOCORE, TRAINING_PLANS

CONTINUOUS = "SageMaker Developer Guide, Continuous provisioning for HyperPod clusters"
CREATING = "SageMaker Developer Guide, Creating a SageMaker HyperPod cluster"
GROUP_API = "SageMaker API reference, ClusterInstanceGroupSpecification"
PLANS = f"{TRAINING_PLANS} for HyperPod"


HyperPod = HyperPodSlurm | HyperPodEks
"""Settings of either orchestrator of HyperPod."""


def continuous(settings: HyperPod) -> Remedy:
    """Continuous provisioning, which takes no strategy."""
    changes: dict[YamlPath, Any] = {("orchestrator", "provisioning"): "continuous"}
    if isinstance(settings, HyperPodSlurm) and settings.slurm_config_strategy:
        changes["orchestrator", "slurm_config_strategy"] = DROP
    return anywhere(changes)


def typed(group: Group) -> Iterator[tuple[YamlPath, InstanceType]]:
    """The types of a group that are known, each with its place."""
    for number, kind in enumerate(group.types):
        if kind:
            yield ("instance_types", number - 1) if number else ("instance_type",), kind


@HYP.error(10, "SageMaker API, CreateCluster")
def group_limit(cluster: Cluster) -> Breaches:
    """HyperPod takes at most 100 node groups (the API's limit)."""
    if (count := len(cluster.groups)) > 100:
        yield at("node_groups").breach(
            f"{count} groups; the API takes 100.",
            ask("decision", "fewer groups: those of one type, partition and capacity can be one"),
        )


@HYP.warning(11, CREATING)
def group_limit_of_guide(cluster: Cluster) -> Breaches:
    """A HyperPod cluster has at most 20 node groups (the guide's limit)."""
    if 20 < (count := len(cluster.groups)) <= 100:
        yield at("node_groups").breach(
            f"{count} groups; the API takes 100, the guide says at most 20 (the two disagree).",
            ask("decision", "20 groups or fewer: those of one type, partition and capacity can be one"),
        )


@HYP.error(12, f"{GROUP_API} (MinInstanceCount)")
def min_count_within_count(group: Group) -> Breaches:
    """`min_count` is not above `count`."""
    least, count = group.settings.min_count, group.settings.count
    if group.in_service and least is not None and least > count:
        yield at("min_count").breach(
            f"at least {least} nodes, but `count` is {count}: HyperPod refuses a minimum above the count.",
            write(count),
        )


@HYP.error(13, CONTINUOUS)
def min_count_is_continuous(group: Group, hyperpod: HyperPod) -> Breaches:
    """`min_count` is only set with continuous provisioning."""
    classic = hyperpod.provisioning == "classic"
    if group.in_service and classic and group.settings.min_count is not None:
        yield at("min_count").breach(
            "HyperPod refuses MinInstanceCount with classic provisioning, which is always all or nothing.",
            drop() | continuous(hyperpod),
        )


@HYP.warning(14, f"{GROUP_API} (MinInstanceCount)")
def min_count_has_effect(group: Group, hyperpod: HyperPod) -> Breaches:
    """`min_count` has an effect."""
    if group.in_service and group.settings.min_count == 0:
        count = group.settings.count
        yield at("min_count").breach(
            "a minimum of 0 is what continuous provisioning does without this setting.",
            drop() | write(count) if count and hyperpod.provisioning == "continuous" else drop(),
        )


@HYP.error(
    20,
    f"{CREATING}; {GROUP_API} (it has no such field)",
    by_hand="aws ec2 describe-capacity-reservations --query "
    "'CapacityReservations[].[CapacityReservationId,InstanceType,AvailabilityZoneId]'",
)
def reservation_unsupported(group: Group, network: Network) -> Breaches:
    """No HyperPod group uses an EC2 capacity reservation."""
    capacity = group.capacity
    if group.in_service and capacity.kind == "reservation":
        yield at("capacity").breach(
            f"HyperPod's instances run in an account of AWS and take no reservation "
            f"({capacity.id or 'open'}). One that your account team has onboarded is "
            "matched only by account and zone id, without being named; in another zone you pay "
            "for both.",
            write({"kind": "on-demand"}).noting(
                f"and a reservation that your account team onboarded in {network.zone_id}; "
                f"or {{kind: training-plan, arn: ...}}"
            ),
        )


@HYP.error(21, f"{CREATING}; {GROUP_API} (it has no such field)")
def capacity_block_unsupported(group: Group) -> Breaches:
    """No HyperPod group uses an EC2 Capacity Block."""
    capacity = group.capacity
    if group.in_service and capacity.kind == "capacity-block":
        yield at("capacity").breach(
            f"HyperPod's instances run in an account of AWS, where the block {capacity.id} cannot be used. "
            "What a block is to EC2, a SageMaker training plan is to HyperPod.",
            ask("fact", "{kind: training-plan, arn: ...} with a plan whose target is hyperpod-cluster"),
        )


@HYP.error(22, CONTINUOUS)
def spot_is_continuous(group: Group, hyperpod: HyperPod) -> Breaches:
    """Spot is only used with continuous provisioning."""
    if group.in_service and group.capacity.kind == "spot" and hyperpod.provisioning == "classic":
        yield at("capacity").breach(
            "HyperPod refuses Spot capacity with classic provisioning.",
            continuous(hyperpod) | write({"kind": "on-demand"}),
        )


@HYP.warning(
    24,
    "EC2 API reference, DescribeInstanceTypes (SupportedUsageClasses)",
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].SupportedUsageClasses'",
)
def spot_is_sold(group: Group) -> Breaches:
    """Spot is only used for types that EC2 sells as Spot."""
    if not group.in_service or group.capacity.kind != "spot":
        return
    for _, kind in typed(group):
        if kind.spot is False:
            yield at("capacity").breach(
                f"EC2 does not list {kind.name} for Spot: the group would wait forever.",
                ask("fact", "{kind: training-plan, arn: ...}")
                if kind.training_plan
                else write({"kind": "on-demand"}),
            )


@HYP.error(25, PLANS)
def plan_for_compute(group: Group) -> Breaches:
    """Only HyperPod's compute groups use training plans."""
    if group.capacity.kind == "training-plan" and group.role != "compute":
        yield at("capacity").breach(
            f"a training plan on a {group.role} group: plans hold accelerated instances for "
            "compute, and take their instances back when they end.",
            write({"kind": "on-demand"}),
        )


@HYP.warning(
    26,
    f"SageMaker API reference, SearchTrainingPlanOfferings (InstanceType; {BOTOCORE})",
    by_hand="aws sagemaker search-training-plan-offerings --instance-type ml.<type> "
    "--instance-count <n> --duration-hours 24 --target-resources hyperpod-cluster",
)
def plan_type(group: Group) -> Breaches:
    """AWS sells training plans for the instance type."""
    kind = group.type
    if group.role != "compute" or group.capacity.kind != "training-plan" or kind is None or kind.declared:
        return
    if not kind.training_plan:
        sold = [one.name for one in instance_types().values() if one.training_plan]
        yield at("instance_type").breach(
            f"AWS sells no training plan for {kind.name}, only for {', '.join(sold)}.",
            beside(capacity={"kind": "on-demand"}),
        )
