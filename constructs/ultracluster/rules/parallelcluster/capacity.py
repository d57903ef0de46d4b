"""Rules on: ParallelCluster. Reservations, blocks and what instance types ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.parallelcluster import Family, parallelcluster, version
from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, drop, whole, write
from ultracluster.model.types import alike, instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.parallelcluster.groups import DATE, PACKAGE, asked
from ultracluster.rules.sets import PCL


@PCL.rule(
    22,
    "error",
    "Controller and login nodes are on demand",
    source=f"{PACKAGE}, schema (HeadNode and LoginNodes have no CapacityType)",
    date=DATE,
)
def head_capacity(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.role in ("controller", "login") and group.capacity.kind != "on-demand":
            yield Breach(
                ("node_groups", name, "capacity"),
                f"{group.capacity.kind} for a {group.role} group: ParallelCluster launches these nodes on "
                "demand and has no field for anything else.",
                write({"kind": "on-demand"}).noting("which uses an open reservation by itself"),
            )


@PCL.rule(
    23,
    "error",
    "A group from a Capacity Block is all there, always",
    source=f"{PACKAGE}, ComputeResourceSizeValidator",
    date=DATE,
)
def block_counts(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.groups("compute").items():
        if not isinstance(group.capacity, CapacityBlock):
            continue
        if group.count == 0:
            yield Breach(
                ("node_groups", name, "count"),
                "0 nodes always there, of a Capacity Block: ParallelCluster wants MinCount above 0, as the "
                "block is paid for anyway.",
                write(group.greatest or 1),
            )
        elif group.max_count not in (None, group.count):
            yield Breach(
                ("node_groups", name, "max_count"),
                f"{group.count} to {group.max_count} nodes from a Capacity Block: ParallelCluster wants "
                "MinCount and MaxCount equal.",
                drop() & beside(count=group.max_count),
            )


@PCL.rule(
    24,
    "error",
    "A reservation is used for one type",
    source=f"{PACKAGE}, CapacityReservationValidator",
    date=DATE,
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[InstanceType,AvailabilityZoneId,InstancePlatform]'",
)
def one_type_of_a_reservation(environment: Environment) -> Iterator[Breach]:
    for reservation, groups in _reserved(environment).items():
        (first, leader), *others = groups.items()
        for name, group in others:
            if group.instance_type != leader.instance_type:
                yield Breach(
                    ("node_groups", name, "capacity", "id"),
                    f"{reservation} is the reservation of `{first}` ({leader.instance_type}), too, and "
                    f"`{name}` is {group.instance_type}: a reservation is for one type.",
                    whole({"kind": "on-demand"}).noting(f"or a reservation of {group.instance_type}"),
                )


@PCL.rule(
    25,
    "error",
    "An UltraServer's block has room for the nodes",
    source=f"{PACKAGE}, UltraserverCapacityBlockSizeValidator and CapacityReservationSizeValidator",
    date=DATE,
)
def block_too_small(environment: Environment) -> Iterator[Breach]:
    for _, block, groups, sizes, nodes in _ultraserver_blocks(environment):
        if nodes > max(sizes):
            yield Breach(
                ("node_groups", groups[-1], "count"),
                f"{nodes} nodes from {block}: blocks of this type have {_either(sizes)} instances.",
                _counted(environment, groups[-1], max(sizes) - nodes).noting("more blocks for more"),
            )


@PCL.rule(
    26,
    "warning",
    "An UltraServer's block is used as a whole",
    source=f"{PACKAGE}, UltraserverCapacityBlockSizeValidator",
    date=DATE,
)
def block_half_used(environment: Environment) -> Iterator[Breach]:
    for kind, block, groups, sizes, nodes in _ultraserver_blocks(environment):
        if 0 < nodes < max(sizes) and nodes not in sizes:
            size = next(size for size in sorted(sizes) if size >= nodes)
            yield Breach(
                ("node_groups", groups[-1], "count"),
                f"{nodes} nodes from {block}: blocks of {kind} have {_either(sizes)} instances, so "
                f"{size - nodes} that you pay for would do nothing.",
                _counted(environment, groups[-1], size - nodes),
            )


@PCL.rule(
    30,
    "error",
    "The type runs the operating system",
    source=f"{PACKAGE}, InstanceTypeOSCompatibleValidator",
    date=DATE,
)
def type_and_system(environment: Environment) -> Iterator[Breach]:
    system = asked(environment).os
    for name, group in environment.node_groups.items():
        family = _family(group)
        if family and family.systems and system not in family.systems:
            yield Breach(
                ("orchestrator", "os"),
                f"{system}, and `{name}` is {group.instance_type}, for which ParallelCluster takes "
                f"{', '.join(family.systems)}.",
                write("ubuntu2404" if "ubuntu2404" in family.systems else family.systems[0]),
            )


@PCL.rule(
    31,
    "error",
    "The release knows the type",
    source="release notes of ParallelCluster 3.14.0 and 3.15.0; aws/aws-parallelcluster#7143",
    date=DATE,
)
def type_and_release(environment: Environment) -> Iterator[Breach]:
    release = asked(environment).version
    for name, group in environment.node_groups.items():
        family = _family(group)
        if family and version(release) < version(family.since):
            yield Breach(
                ("orchestrator", "version"),
                f"{release}, and `{name}` is {group.instance_type}, which ParallelCluster launches from "
                f"{family.since} on ({family.source}).",
                write(parallelcluster().judged_versions[-1]),
            )


@PCL.rule(
    32,
    "error",
    "All nodes have one processor architecture",
    source=f"{PACKAGE}, InstanceArchitectureCompatibilityValidator; its official images are chosen by the "
    "head node's architecture",
    date=DATE,
)
def one_architecture(environment: Environment) -> Iterator[Breach]:
    compute = [*environment.groups("compute").items()]
    known = [(name, kind) for name, group in compute if (kind := instance_type_of(environment, group))]
    if not known:
        return
    leader, model = known[0]
    for name, group in environment.node_groups.items():
        kind = instance_type_of(environment, group)
        if kind and kind.architecture and model.architecture and kind.architecture != model.architecture:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{kind.name} is {kind.architecture}, and `{leader}` ({model.name}) is "
                f"{model.architecture}: head, login and compute nodes of a cluster have one architecture.",
                alike(kind, model.architecture, group.role),
            )


@PCL.rule(
    33,
    "error",
    "The head node has memory for the nodes",
    source=f"{PACKAGE}, HeadNodeMemorySizeValidator",
    date=DATE,
)
def head_memory(environment: Environment) -> Iterator[Breach]:
    nodes = sum(group.greatest for group in environment.groups("compute").values())
    needed = parallelcluster().head_memory_gb(nodes)
    for name, group in environment.groups("controller").items():
        known = instance_type_of(environment, group)
        if known and known.memory_gib and known.memory_gib < needed:
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} has {known.memory_gib:g} GB, and the head node of {nodes} nodes needs "
                f"{needed:.1f}.",
                _with_memory(known, needed),
            )


@PCL.rule(
    34,
    "warning",
    "No node is of a size that is too small for the operating system",
    source=f"{PACKAGE}, InstanceTypeOSCompatibleValidator",
    date=DATE,
)
def too_small(environment: Environment) -> Iterator[Breach]:
    small = parallelcluster().small_sizes
    if asked(environment).os not in small["systems"]:
        return
    for name, group in environment.node_groups.items():
        if any(size in group.instance_type for size in small["names"]):
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{group.instance_type} with {asked(environment).os}: ParallelCluster asks for 1.7 GB of "
                "memory or more.",
                write("m7g.xlarge" if _arm(environment, group) else "m5.xlarge"),
            )


@PCL.rule(
    36,
    "error",
    "Where ParallelCluster has no image, every group names one",
    source=f"{PACKAGE}, OsCustomAmiValidator",
    date=DATE,
)
def image_needed(environment: Environment) -> Iterator[Breach]:
    system = asked(environment).os
    if system not in parallelcluster().systems_without_image:
        return
    for name, group in environment.node_groups.items():
        if not group.image:
            yield Breach(
                ("node_groups", name, "image"),
                f"ParallelCluster publishes no image of {system}.",
                anywhere({("orchestrator", "os"): "ubuntu2404"}).noting(
                    "or image: ami-... from `pcluster build-image`"
                ),
            )


@PCL.rule(
    37,
    "warning",
    "An image is one that ParallelCluster built",
    source=f"{PACKAGE}, CustomAmiTagValidator and AmiOsCompatibleValidator",
    date=DATE,
    by_hand="aws ec2 describe-images --image-ids <ami> --query 'Images[].[Tags,Architecture]'",
)
def image_of_the_release(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    for name, group in environment.node_groups.items():
        if group.image:
            yield Breach(
                ("node_groups", name, "image"),
                f"{group.image} must come from `pcluster build-image` of {orchestrator.version} with "
                f"{orchestrator.os}: ParallelCluster refuses images of other releases by their tags, and "
                "nodes from images without its software never come up.",
                drop().noting("ParallelCluster's own image is then used; or look and acknowledge this"),
            )


@PCL.rule(
    39,
    "error",
    "A root volume is as large as the image's",
    source=f"{PACKAGE}, RootVolumeSizeValidator; release notes of 3.16.2",
    date=DATE,
)
def root_volume(environment: Environment) -> Iterator[Breach]:
    release = asked(environment).version
    least = parallelcluster().root_volume_gib(release)
    for name, group in environment.node_groups.items():
        if group.role != "login" and group.root_volume_gib < least:
            yield Breach(
                ("node_groups", name, "root_volume_gib"),
                f"{group.root_volume_gib} GiB; ParallelCluster's images of {release} have {least}.",
                write(least),
            )


def _family(group: NodeGroup) -> Family | None:
    return parallelcluster().families.get(group.instance_type.partition(".")[0])


def _reserved(environment: Environment) -> Mapping[str, dict[str, NodeGroup]]:
    """Compute groups by the id of their reservation or block."""
    found: dict[str, dict[str, NodeGroup]] = {}
    for name, group in environment.groups("compute").items():
        number = group.capacity.id if isinstance(group.capacity, Reservation | CapacityBlock) else None
        if number:
            found.setdefault(number, {})[name] = group
    return found


def _ultraserver_blocks(
    environment: Environment,
) -> Iterator[tuple[str, str, list[str], tuple[int, ...], int]]:
    """(type, block, groups, sizes of such blocks, nodes in all) of each block with fixed sizes."""
    for block, groups in _reserved(environment).items():
        leader = next(iter(groups.values()))
        family = _family(leader)
        if family and family.block_sizes:
            nodes = sum(group.greatest for group in groups.values())
            yield leader.instance_type, block, list(groups), family.block_sizes, nodes


def _either(sizes: tuple[int, ...]) -> str:
    return " or ".join(map(str, sizes))


def _counted(environment: Environment, name: str, more: int) -> Remedy:
    """The group with so many nodes more, or less where that leaves any; a block's group is of one size."""
    group = environment.node_groups[name]
    if group.greatest + more < 1:
        return ask("decision", f"{-more} nodes fewer in all")
    other = beside(max_count=DROP) if group.max_count else None
    return write(group.greatest + more) & other if other else write(group.greatest + more)


def _arm(environment: Environment, group: NodeGroup) -> bool:
    known = instance_type_of(environment, group)
    return bool(known and known.architecture == "arm64")


def _with_memory(known: InstanceType, needed: float) -> Remedy:
    """The smallest general type of the architecture with that memory."""
    family = "m7g." if known.architecture == "arm64" else "m5."
    fits = [
        one
        for one in instance_types().values()
        if one.name.startswith(family) and one.memory_gib and one.memory_gib >= needed
    ]
    least = min(fits, key=lambda one: (one.memory_gib, one.name), default=None)
    return write(least.name) if least else ask("decision", "fewer nodes, or a type with more memory")
