"""Rules on: HyperPod with Slurm. Node groups: roles, partitions, counts, capacity."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import instance_types, nearest_instance_types
from ultracluster.config import Environment
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.rules.engine import Breach, RuleSet
from ultracluster.rules.types import instance_type_of

RULES = RuleSet("HPS", "HyperPod with Slurm", kinds=frozenset({"hyperpod-slurm"}))

GETTING_STARTED = "SageMaker Developer Guide, Getting started with SageMaker HyperPod using the AWS CLI"
CONTINUOUS = "SageMaker Developer Guide, Continuous provisioning for HyperPod clusters with Slurm"
CREATING = "SageMaker Developer Guide, Creating a SageMaker HyperPod cluster"
GROUP_API = "SageMaker API reference, ClusterInstanceGroupSpecification"
PLANS = "SageMaker Developer Guide, Reserve training plans for HyperPod"


def asked(environment: Environment) -> HyperPodSlurm:
    """The orchestrator of an environment that these rules are run on."""
    assert isinstance(environment.orchestrator, HyperPodSlurm)
    return environment.orchestrator


@RULES.rule(1, "error", "There is exactly one controller group", source=GETTING_STARTED)
def one_controller_group(environment: Environment) -> Iterator[Breach]:
    first, *others = environment.groups("controller") or [""]
    if not first:
        yield Breach(
            ("node_groups",),
            "no group has the role `controller`; HyperPod refuses a Slurm cluster without one.",
            "controller: {role: controller, instance_type: m5.4xlarge, count: 1}",
        )
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is the controller group already; HyperPod refuses a second one. Several "
            "controllers exist only with the legacy provisioning file, not with the API's Slurm "
            "configuration.",
            "role: login or compute, or remove the group; storage.accounting_database keeps the "
            "accounting off the controller",
        )


@RULES.rule(
    2,
    "error",
    "The controller group has one node",
    source="SageMaker Developer Guide, Setting up multiple controller nodes for a HyperPod cluster",
)
def one_controller_node(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("controller").items():
        if group.count != 1:
            why = (
                "several controllers exist only with the legacy provisioning file, not with the "
                "API's Slurm configuration"
                if group.count
                else "the other nodes fetch their Slurm configuration from it and never come up"
            )
            yield Breach(
                ("node_groups", name, "count"),
                f"{group.count} controllers: {why}.",
                "1",
            )


@RULES.rule(3, "error", "There is at most one login group", source=GETTING_STARTED)
def one_login_group(environment: Environment) -> Iterator[Breach]:
    logins = environment.groups("login")
    first, *others = logins or [""]
    nodes = sum(group.count for group in logins.values())
    for name in others:
        yield Breach(
            ("node_groups", name, "role"),
            f"`{first}` is the login group already; HyperPod refuses a second one.",
            f"count: {nodes} in `{first}`, and remove `{name}`",
        )


@RULES.rule(4, "error", "No group has the role `system`", source=f"{GROUP_API} (SlurmConfig)")
def no_system_group(environment: Environment) -> Iterator[Breach]:
    for name in environment.groups("system"):
        yield Breach(
            ("node_groups", name, "role"),
            "`system` is for Kubernetes add-ons; on Slurm a group is controller, login or compute.",
            "role: login" if not environment.groups("login") else "role: compute, or remove it",
        )


@RULES.rule(5, "error", "A compute group has a partition", source=GETTING_STARTED)
def compute_has_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition is None:
            yield Breach(
                ("node_groups", name, "partition"),
                "a compute group without a partition: HyperPod wants exactly one for each.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(6, "error", "Only compute groups have a partition", source=GETTING_STARTED)
def others_have_no_partition(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.role in ("controller", "login") and group.partition is not None:
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` on a {group.role} group: HyperPod takes partitions on "
                "compute groups only.",
                "remove partition",
            )


@RULES.rule(
    7,
    "warning",
    "No partition is called `dev`",
    source=f"{GETTING_STARTED}; awslabs/awsome-distributed-ai, hyperpod-mental-model.md",
    by_hand="scontrol show partition dev",
)
def partition_dev(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition == "dev":
            yield Breach(
                ("node_groups", name, "partition"),
                "HyperPod puts every compute node, and login nodes with them, into a default "
                "partition `dev` of its own: this group would not have the partition to itself.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(
    8,
    "error",
    "No partition is called DEFAULT",
    source="Slurm documentation, slurm.conf (PartitionName)",
)
def partition_default(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.partition and group.partition.upper() == "DEFAULT":
            yield Breach(
                ("node_groups", name, "partition"),
                f"`{group.partition}` is not a partition to slurm.conf: a line with "
                "PartitionName=DEFAULT sets the defaults of the lines after it.",
                f"partition: {_own_partition(name)}",
            )


@RULES.rule(10, "error", "There are at most 100 groups", source="SageMaker API, CreateCluster")
def group_limit(environment: Environment) -> Iterator[Breach]:
    if (count := len(environment.node_groups)) > 100:
        yield Breach(
            ("node_groups",),
            f"{count} groups; the API takes 100.",
            "fewer groups: those of one type, partition and capacity can be one",
        )


@RULES.rule(11, "warning", "There are at most 20 groups", source=CREATING)
def group_limit_of_guide(environment: Environment) -> Iterator[Breach]:
    if 20 < (count := len(environment.node_groups)) <= 100:
        yield Breach(
            ("node_groups",),
            f"{count} groups; the API takes 100, the guide says 20 at most (the two disagree).",
            "20 groups or fewer: those of one type, partition and capacity can be one",
        )


@RULES.rule(12, "error", "min_count is not above count", source=f"{GROUP_API} (MinInstanceCount)")
def min_count_within_count(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.min_count is not None and group.min_count > group.count:
            yield Breach(
                ("node_groups", name, "min_count"),
                f"{group.min_count} nodes at least, and {group.count} wanted: HyperPod refuses "
                "a minimum above the count.",
                str(group.count),
            )


@RULES.rule(13, "error", "min_count goes with continuous provisioning", source=CONTINUOUS)
def min_count_is_continuous(environment: Environment) -> Iterator[Breach]:
    if asked(environment).provisioning == "continuous":
        return
    for name, group in environment.node_groups.items():
        if group.min_count is not None:
            yield Breach(
                ("node_groups", name, "min_count"),
                "HyperPod refuses MinInstanceCount with classic provisioning, which is all or "
                "nothing anyway.",
                "remove min_count, or orchestrator.provisioning: continuous",
            )


@RULES.rule(14, "warning", "min_count says something", source=f"{GROUP_API} (MinInstanceCount)")
def min_count_is_positive(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.min_count == 0:
            yield Breach(
                ("node_groups", name, "min_count"),
                "0 nodes at least is what continuous provisioning does without it.",
                f"{group.count}, which is all or nothing, or remove min_count"
                if group.count
                else "remove min_count",
            )


@RULES.rule(15, "warning", "The cluster has compute nodes", source=f"{GROUP_API} (InstanceCount)")
def some_compute_nodes(environment: Environment) -> Iterator[Breach]:
    compute = environment.groups("compute")
    if not any(group.count for group in compute.values()):
        name = next(iter(compute), None)
        yield Breach(
            ("node_groups", name, "count") if name else ("node_groups",),
            "no compute group has a node: the cluster comes up and cannot run a job.",
            "count: 1 or more" if name else "a group with role: compute, a partition and a count",
        )


@RULES.rule(
    20,
    "error",
    "Capacity is not an EC2 reservation",
    source=f"{CREATING}; {GROUP_API} (it has no such field)",
    by_hand="aws ec2 describe-capacity-reservations --query "
    "'CapacityReservations[].[CapacityReservationId,InstanceType,AvailabilityZoneId]'",
)
def no_reservation(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "reservation":
            yield Breach(
                ("node_groups", name, "capacity"),
                f"HyperPod's instances run in an account of AWS and take no reservation "
                f"({group.capacity.id or 'open'}). One that your account team has onboarded is "
                "matched by account and zone id alone, without being named; in another zone you "
                "pay for both.",
                "{kind: training-plan, arn: ...}; or {kind: on-demand} with a reservation that "
                f"the account team has onboarded in {environment.network.zone_id}",
            )


@RULES.rule(
    21,
    "error",
    "Capacity is not an EC2 Capacity Block",
    source=f"{CREATING}; {GROUP_API} (it has no such field)",
)
def no_capacity_block(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "capacity-block":
            yield Breach(
                ("node_groups", name, "capacity"),
                "HyperPod's instances run in an account of AWS, where the block "
                f"{group.capacity.id} cannot be used. What a block is to EC2, a SageMaker "
                "training plan is to HyperPod.",
                "{kind: training-plan, arn: ...} with a plan whose target is hyperpod-cluster",
            )


@RULES.rule(22, "error", "Spot goes with continuous provisioning", source=CONTINUOUS)
def spot_is_continuous(environment: Environment) -> Iterator[Breach]:
    if asked(environment).provisioning == "continuous":
        return
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot":
            yield Breach(
                ("node_groups", name, "capacity"),
                "HyperPod refuses Spot capacity with classic provisioning.",
                "orchestrator.provisioning: continuous, or capacity: {kind: on-demand}",
            )


@RULES.rule(
    23,
    "warning",
    "Controller and login nodes are not Spot",
    source="SageMaker Developer Guide, Spot instances in Amazon SageMaker HyperPod",
)
def spot_for_compute(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot" and group.role in ("controller", "login"):
            lost = "the queue stops" if group.role == "controller" else "people are thrown out"
            yield Breach(
                ("node_groups", name, "capacity"),
                f"AWS takes Spot instances back at two minutes' notice: without the {group.role} {lost}.",
                "{kind: on-demand}",
            )


@RULES.rule(
    24,
    "warning",
    "Spot is for types that EC2 sells as Spot",
    source="EC2 API reference, DescribeInstanceTypes (SupportedUsageClasses)",
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].SupportedUsageClasses'",
)
def spot_is_sold(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if group.capacity.kind == "spot" and known and known.spot is False:
            yield Breach(
                ("node_groups", name, "capacity"),
                f"EC2 does not list {known.name} for Spot: the group would wait for ever.",
                "{kind: training-plan, arn: ...}" if known.training_plan else "{kind: on-demand}",
            )


@RULES.rule(25, "error", "Training plans are for compute groups", source=PLANS)
def plan_for_compute(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "training-plan" and group.role in ("controller", "login"):
            yield Breach(
                ("node_groups", name, "capacity"),
                f"a training plan on a {group.role} group: plans hold accelerated instances for "
                "compute, and take their instances back when they end.",
                "{kind: on-demand}",
            )


@RULES.rule(
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
            near = nearest_instance_types(known.name, candidates=sold, count=1)
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"no training plan is sold for {known.name}; plans are for {', '.join(sold)}.",
                f"{near[0]}, or capacity: {{kind: on-demand}}" if near else "capacity: {kind: on-demand}",
            )


def _own_partition(name: str) -> str:
    """The group's name as the name of its partition, unless that means something else."""
    return name if name.lower() not in ("dev", "default") else "train"
