"""Rules that HyperPod has with Slurm and on EKS alike: groups, counts, capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import ask, beside, drop, write
from ultracluster.model.types import every_type_of, instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import continuous
from ultracluster.rules.sets import HYP

CONTINUOUS = "SageMaker Developer Guide, Continuous provisioning for HyperPod clusters"
CREATING = "SageMaker Developer Guide, Creating a SageMaker HyperPod cluster"
GROUP_API = "SageMaker API reference, ClusterInstanceGroupSpecification"
PLANS = "SageMaker Developer Guide, Reserve training plans for HyperPod"


def provisioning(environment: Environment) -> Literal["continuous", "classic"]:
    """How HyperPod makes the nodes of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, HyperPodSlurm | HyperPodEks)
    return environment.orchestrator.provisioning


def hyperpod_groups(environment: Environment) -> dict[str, NodeGroup]:
    """The groups that HyperPod makes: on EKS all but those of system nodes, which EKS manages."""
    kubernetes = environment.orchestrator.kind == "hyperpod-eks"
    return {
        name: group
        for name, group in environment.node_groups.items()
        if not (kubernetes and group.role == "system")
    }


def typed_groups(environment: Environment) -> Iterator[tuple[Path, NodeGroup, InstanceType]]:
    """HyperPod's groups once for each of their types that is known, and where the type stands."""
    for name, group in hyperpod_groups(environment).items():
        for number, known in enumerate(every_type_of(environment, group)):
            place: Path = ("instance_types", number - 1) if number else ("instance_type",)
            if known:
                yield ("node_groups", name, *place), group, known


@HYP.rule(10, "error", "There are at most 100 groups", source="SageMaker API, CreateCluster")
def group_limit(environment: Environment) -> Iterator[Breach]:
    if (count := len(environment.node_groups)) > 100:
        yield Breach(
            ("node_groups",),
            f"{count} groups; the API takes 100.",
            ask("decision", "fewer groups: those of one type, partition and capacity can be one"),
        )


@HYP.rule(11, "warning", "There are at most 20 groups", source=CREATING)
def group_limit_of_guide(environment: Environment) -> Iterator[Breach]:
    if 20 < (count := len(environment.node_groups)) <= 100:
        yield Breach(
            ("node_groups",),
            f"{count} groups; the API takes 100, the guide says 20 at most (the two disagree).",
            ask("decision", "20 groups or fewer: those of one type, partition and capacity can be one"),
        )


@HYP.rule(12, "error", "min_count is not above count", source=f"{GROUP_API} (MinInstanceCount)")
def min_count_within_count(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.min_count is not None and group.min_count > group.count:
            yield Breach(
                ("node_groups", name, "min_count"),
                f"{group.min_count} nodes at least, and {group.count} wanted: HyperPod refuses "
                "a minimum above the count.",
                write(group.count),
            )


@HYP.rule(13, "error", "min_count goes with continuous provisioning", source=CONTINUOUS)
def min_count_is_continuous(environment: Environment) -> Iterator[Breach]:
    if provisioning(environment) == "continuous":
        return
    for name, group in hyperpod_groups(environment).items():
        if group.min_count is not None:
            yield Breach(
                ("node_groups", name, "min_count"),
                "HyperPod refuses MinInstanceCount with classic provisioning, which is all or "
                "nothing anyway.",
                drop() | continuous(environment),
            )


@HYP.rule(14, "warning", "min_count says something", source=f"{GROUP_API} (MinInstanceCount)")
def min_count_is_positive(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.min_count == 0:
            yield Breach(
                ("node_groups", name, "min_count"),
                "0 nodes at least is what continuous provisioning does without it.",
                drop() | write(group.count)
                if group.count and provisioning(environment) == "continuous"
                else drop(),
            )


@HYP.rule(
    20,
    "error",
    "Capacity is not an EC2 reservation",
    source=f"{CREATING}; {GROUP_API} (it has no such field)",
    by_hand="aws ec2 describe-capacity-reservations --query "
    "'CapacityReservations[].[CapacityReservationId,InstanceType,AvailabilityZoneId]'",
)
def no_reservation(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.capacity.kind == "reservation":
            yield Breach(
                ("node_groups", name, "capacity"),
                f"HyperPod's instances run in an account of AWS and take no reservation "
                f"({group.capacity.id or 'open'}). One that your account team has onboarded is "
                "matched by account and zone id alone, without being named; in another zone you "
                "pay for both.",
                write({"kind": "on-demand"}).noting(
                    f"and a reservation that your account team onboarded in {environment.network.zone_id}; "
                    f"or {{kind: training-plan, arn: ...}}"
                ),
            )


@HYP.rule(
    21,
    "error",
    "Capacity is not an EC2 Capacity Block",
    source=f"{CREATING}; {GROUP_API} (it has no such field)",
)
def no_capacity_block(environment: Environment) -> Iterator[Breach]:
    for name, group in hyperpod_groups(environment).items():
        if group.capacity.kind == "capacity-block":
            yield Breach(
                ("node_groups", name, "capacity"),
                "HyperPod's instances run in an account of AWS, where the block "
                f"{group.capacity.id} cannot be used. What a block is to EC2, a SageMaker "
                "training plan is to HyperPod.",
                ask("fact", "{kind: training-plan, arn: ...} with a plan whose target is hyperpod-cluster"),
            )


@HYP.rule(22, "error", "Spot goes with continuous provisioning", source=CONTINUOUS)
def spot_is_continuous(environment: Environment) -> Iterator[Breach]:
    if provisioning(environment) == "continuous":
        return
    for name, group in hyperpod_groups(environment).items():
        if group.capacity.kind == "spot":
            yield Breach(
                ("node_groups", name, "capacity"),
                "HyperPod refuses Spot capacity with classic provisioning.",
                continuous(environment) | write({"kind": "on-demand"}),
            )


@HYP.rule(
    24,
    "warning",
    "Spot is for types that EC2 sells as Spot",
    source="EC2 API reference, DescribeInstanceTypes (SupportedUsageClasses)",
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].SupportedUsageClasses'",
)
def spot_is_sold(environment: Environment) -> Iterator[Breach]:
    for path, group, known in typed_groups(environment):
        if group.capacity.kind == "spot" and known.spot is False:
            yield Breach(
                (*path[:2], "capacity"),
                f"EC2 does not list {known.name} for Spot: the group would wait for ever.",
                ask("fact", "{kind: training-plan, arn: ...}")
                if known.training_plan
                else write({"kind": "on-demand"}),
            )


@HYP.rule(25, "error", "Training plans are for compute groups", source=PLANS)
def plan_for_compute(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "training-plan" and group.role != "compute":
            yield Breach(
                ("node_groups", name, "capacity"),
                f"a training plan on a {group.role} group: plans hold accelerated instances for "
                "compute, and take their instances back when they end.",
                write({"kind": "on-demand"}),
            )


@HYP.rule(
    26,
    "warning",
    "Training plans are sold for the type",
    source="SageMaker API reference, SearchTrainingPlanOfferings (InstanceType; botocore 1.44.5)",
    by_hand="aws sagemaker search-training-plan-offerings --instance-type ml.<type> "
    "--instance-count <n> --duration-hours 24 --target-resources hyperpod-cluster",
)
def plan_type(environment: Environment) -> Iterator[Breach]:
    sold = [known.name for known in instance_types().values() if known.training_plan]
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if group.capacity.kind != "training-plan" or known is None or known.declared:
            continue
        if not known.training_plan:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"no training plan is sold for {known.name}; plans are for {', '.join(sold)}.",
                beside(capacity={"kind": "on-demand"}),
            )
