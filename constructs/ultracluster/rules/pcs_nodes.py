"""Rules on: AWS PCS. Instance types, images and capacity of node groups."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import ultraservers
from ultracluster.compute.capacity import (
    Decision,
    decide,
    fabric_of,
    placement_for,
)
from ultracluster.compute.network_cards import network_card_plan, takes_combined_efa
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.slurm import Partition
from ultracluster.rules.engine import Breach
from ultracluster.rules.pcs_groups import API, GROUP_API, GUIDE, RULES, asked, partitions
from ultracluster.rules.types import instance_type_of

CAPACITY = f"{GUIDE}, Amazon EC2 capacity in AWS PCS; compute/capacity.json names the source of each decision"
BLOCKS = f"{GUIDE}, Using Amazon EC2 Capacity Blocks for ML with AWS PCS"
ULTRASERVERS = f"{GUIDE}, UltraServers in AWS PCS"


@RULES.rule(20, "error", "PCS can launch the capacity", source=CAPACITY, date="2026-11-21")
def capacity_refused(environment: Environment) -> Iterator[Breach]:
    yield from _capacity(environment, "error")


@RULES.rule(21, "warning", "The capacity is sold for the type", source=CAPACITY, date="2026-11-21")
def capacity_unsold(environment: Environment) -> Iterator[Breach]:
    yield from _capacity(environment, "warning")


def _capacity(environment: Environment, severity: str) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        decision = _decision(environment, group)
        if decision and decision.severity == severity:
            yield Breach(("node_groups", name, "capacity"), decision.reason, decision.instead)


def _decision(environment: Environment, group: NodeGroup) -> Decision | None:
    known, capacity = instance_type_of(environment, group), group.capacity
    if known is None or group.role not in ("login", "compute"):
        return None
    if capacity.kind == "reservation" and capacity.id and capacity.resource_group_arn:
        return None  # GRP004 speaks
    if capacity.kind == "reservation" and capacity.placement_group:
        kind = "reservation-group"
    else:
        kind = placement_for(capacity, instance_type=known, orchestrator="pcs").kind
    # a login node runs no job over the fabric: it is launched into no group
    placement = kind if group.role == "compute" or kind == "reservation-group" else "none"
    return decide(capacity, orchestrator="pcs", placement=placement, instance_type=known)


@RULES.rule(22, "error", "An UltraServer group fits into one UltraServer", source=f"{ULTRASERVERS}; {BLOCKS}")
def ultraserver_size(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None or fabric_of(known) != "ultraserver":
            continue
        most = max(ultraservers()[one].instances for one in known.ultraserver)
        if group.greatest > most:
            yield Breach(
                ("node_groups", name, "max_count" if group.max_count else "count"),
                f"{group.greatest} nodes: a group takes one Capacity Block, and the largest UltraServer of "
                f"{known.name} has {most}.",
                f"{most}, and a group for each further UltraServer's block",
            )


@RULES.rule(23, "error", "UltraServers have a partition to themselves, with whole nodes", source=ULTRASERVERS)
def ultraserver_partition(environment: Environment) -> Iterator[Breach]:
    settings = asked(environment).partitions
    for partition, groups in partitions(environment).items():
        ultra = [name for name, group in groups.items() if _is_ultra(environment, group)]
        if not ultra:
            continue
        for name in groups:
            if name not in ultra:
                yield Breach(
                    ("node_groups", name, "partition"),
                    f"partition `{partition}` has the UltraServer of `{ultra[0]}`: PCS writes Slurm's block "
                    "topology for queues of UltraServers alone.",
                    f"partition: {name}",
                )
        if not settings.get(partition, Partition()).exclusive:
            yield Breach(
                ("orchestrator", "partitions", partition, "exclusive"),
                f"partition `{partition}` has UltraServers, whose jobs take whole nodes (`--exclusive`).",
                "exclusive: true",
            )


@RULES.rule(24, "error", "UltraServer groups of a partition differ by powers of two", source=ULTRASERVERS)
def ultraserver_ratio(environment: Environment) -> Iterator[Breach]:
    for groups in partitions(environment).values():
        ultra = {name: group.greatest for name, group in groups.items() if _is_ultra(environment, group)}
        least = min((count for count in ultra.values() if count), default=0)
        for name, count in ultra.items():
            ratio, rest = divmod(count, least) if least else (1, 0)
            if count and (rest or ratio & (ratio - 1)):
                yield Breach(
                    ("node_groups", name, "count"),
                    f"{count} nodes beside a group of {least}: the sizes of Slurm's blocks are one size "
                    "times powers of two.",
                    f"{least * 2 ** (count // least).bit_length() // 2}",
                )


def _is_ultra(environment: Environment, group: NodeGroup) -> bool:
    known = instance_type_of(environment, group)
    return known is not None and fabric_of(known) == "ultraserver"


@RULES.rule(
    25,
    "error",
    "The network cards of the type are known",
    source="EC2 User Guide, Maximize network bandwidth on instances with multiple network cards",
    by_hand="aws ec2 describe-instance-types --instance-types <type> --query 'InstanceTypes[].NetworkInfo'",
)
def cards_known(environment: Environment) -> Iterator[Breach]:
    kind = asked(environment).efa_interface
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None:
            continue
        try:
            network_card_plan(known, efa=kind if takes_combined_efa(known) else "efa-only")
        except ValueError as error:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"the launch template names each network interface of a node, and that fails: {error}.",
                "a type of the catalogue, or HyperPod, which lays interfaces out itself",
            )


@RULES.rule(
    26,
    "warning",
    "EFA interfaces are of the kind that PCS's guide shows",
    source=f"{GUIDE}, Create or update an EC2 launch template; awslabs/awsome-distributed-ai, "
    "architectures/aws-pcs",
)
def efa_only_unverified(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known is None or known.efa_interfaces == 0:
            continue
        if not takes_combined_efa(known):
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"the EFA cards of {known.name} take `efa-only` alone, and AWS's guide for PCS shows `efa` "
                "alone: whether PCS accepts the other is not known.",
                "try one node first, and acknowledge this",
            )
        elif asked(environment).efa_interface == "efa-only":
            yield Breach(
                ("orchestrator", "efa_interface"),
                "AWS's guide for PCS shows `efa` alone, and AWS's own templates say that it must be that: "
                "whether PCS accepts `efa-only` is not known.",
                "efa, or try one node first and acknowledge this",
            )
            return


@RULES.rule(
    27,
    "error",
    "An image is used on one processor architecture",
    source="EC2 User Guide, Amazon Machine Images: an image is for one architecture",
    by_hand="aws ec2 describe-images --image-ids <ami> --query 'Images[].Architecture'",
)
def image_architecture(environment: Environment) -> Iterator[Breach]:
    first: dict[str, tuple[str, str]] = {}
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if not group.image or not known or not known.architecture:
            continue
        other, architecture = first.setdefault(group.image, (name, known.architecture))
        if architecture != known.architecture:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} is the image of `{other}` ({architecture}), too, and {known.name} is "
                f"{known.architecture}: one of the two cannot start.",
                f"an image made for {known.architecture}",
            )


@RULES.rule(
    28,
    "error",
    "The type has that many threads per core",
    source="EC2 User Guide, CPU cores and threads per CPU core per instance type",
    by_hand="aws ec2 describe-instance-types --instance-types <type> "
    "--query 'InstanceTypes[].VCpuInfo.ValidThreadsPerCore'",
)
def threads(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if not group.threads_per_core or not known or group.threads_per_core in known.threads_per_core:
            continue
        allowed = " or ".join(map(str, known.threads_per_core))
        yield Breach(
            ("node_groups", name, "threads_per_core"),
            f"{group.threads_per_core} threads per core on {known.name}, "
            + (f"which takes {allowed}." if allowed else "whose numbers are unknown or cannot be set."),
            f"{allowed}, or remove threads_per_core" if allowed else "remove threads_per_core",
        )


@RULES.rule(
    29,
    "warning",
    "Login nodes are not Spot",
    source="EC2 User Guide, Spot Instance interruptions",
)
def spot_login(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("login").items():
        if group.capacity.kind == "spot":
            yield Breach(
                ("node_groups", name, "capacity"),
                "AWS takes Spot instances back at two minutes' notice: people are thrown out.",
                "{kind: on-demand}",
            )


@RULES.rule(
    30,
    "warning",
    "Spot pools are not picked by price alone",
    source="EC2 User Guide, Use allocation strategies to determine how EC2 Fleet fulfills Spot capacity; "
    f"{API}, SpotOptions",
)
def spot_allocation(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.capacity.kind == "spot" and group.capacity.allocation == "lowest-price":
            yield Breach(
                ("node_groups", name, "capacity", "allocation"),
                "the cheapest pools are the ones that are interrupted most, and one node that goes ends a "
                "job on all.",
                "price-capacity-optimized",
            )


@RULES.rule(
    31,
    "warning",
    "A group on a Capacity Block keeps its nodes",
    source=f"{BLOCKS}; {GROUP_API} (scalingConfiguration)",
)
def block_is_elastic(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if group.capacity.kind == "capacity-block" and group.count < group.greatest:
            yield Breach(
                ("node_groups", name, "count"),
                f"{group.count} to {group.greatest} nodes from a block that is paid for as a whole: idle "
                "nodes end, and the next job waits for them to come back.",
                str(group.greatest),
            )


@RULES.rule(
    32,
    "warning",
    "Login and compute nodes have one processor architecture",
    source="EC2 User Guide, Amazon Machine Images: an image is for one architecture",
)
def one_architecture(environment: Environment) -> Iterator[Breach]:
    compute = {
        known.architecture: name
        for name, group in environment.groups("compute").items()
        if (known := instance_type_of(environment, group)) and known.architecture
    }
    for name, group in environment.groups("login").items():
        known = instance_type_of(environment, group)
        if known and compute and known.architecture and known.architecture not in compute:
            other, where = next(iter(compute.items()))
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} is {known.architecture}, and `{where}` is {other}: programs and images made "
                "on one do not run on the other.",
                "m7g.2xlarge" if other == "arm64" else "m7i.2xlarge",
            )
