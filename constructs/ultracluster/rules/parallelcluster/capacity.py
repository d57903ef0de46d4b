"""Rules on: ParallelCluster. What nodes are launched from: reservations, blocks, on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, whole, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breach
from ultracluster.rules.parallelcluster.groups import DATE, PACKAGE
from ultracluster.rules.parallelcluster.types import family_of
from ultracluster.rules.sets import PCL


@PCL.rule(
    22,
    "error",
    "Controller and login nodes are on demand",
    source=f"{PACKAGE}, schema (HeadNode and LoginNodes have no CapacityType)",
    date=DATE,
)
def head_capacity(group: Group) -> Iterator[Breach]:
    if group.role in ("controller", "login") and group.capacity.kind != "on-demand":
        yield Breach(
            ("capacity",),
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
def block_counts(group: Group) -> Iterator[Breach]:
    if group.role != "compute" or not isinstance(group.capacity, CapacityBlock):
        return
    count, most = group.settings.count, group.settings.max_count
    if count == 0:
        yield Breach(
            ("count",),
            "0 nodes always there, of a Capacity Block: ParallelCluster wants MinCount above 0, as the "
            "block is paid for anyway.",
            write(group.most_nodes or 1),
        )
    elif most not in (None, count):
        yield Breach(
            ("max_count",),
            f"{count} to {most} nodes from a Capacity Block: ParallelCluster wants MinCount and MaxCount "
            "equal.",
            drop() & beside(count=most),
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
def one_type_of_a_reservation(cluster: Cluster) -> Iterator[Breach]:
    for reservation, groups in _reserved(cluster).items():
        (first, leader), *others = groups.items()
        kind = leader.settings.instance_type
        for name, group in others:
            own = group.settings.instance_type
            if own != kind:
                yield Breach(
                    ("node_groups", name, "capacity", "id"),
                    f"{reservation} is the reservation of `{first}` ({kind}), too, and `{name}` is {own}: a "
                    "reservation is for one type.",
                    whole({"kind": "on-demand"}).noting(f"or a reservation of {own}"),
                )


@PCL.rule(
    25,
    "error",
    "An UltraServer's block has room for the nodes",
    source=f"{PACKAGE}, UltraserverCapacityBlockSizeValidator and CapacityReservationSizeValidator",
    date=DATE,
)
def block_too_small(cluster: Cluster) -> Iterator[Breach]:
    for _, block, groups, sizes, nodes in _ultraserver_blocks(cluster):
        if nodes > max(sizes):
            yield Breach(
                ("node_groups", groups[-1].name, "count"),
                f"{nodes} nodes from {block}: blocks of this type have {_either(sizes)} instances.",
                _counted(groups[-1], max(sizes) - nodes).noting("more blocks for more"),
            )


@PCL.rule(
    26,
    "warning",
    "An UltraServer's block is used as a whole",
    source=f"{PACKAGE}, UltraserverCapacityBlockSizeValidator",
    date=DATE,
)
def block_half_used(cluster: Cluster) -> Iterator[Breach]:
    for kind, block, groups, sizes, nodes in _ultraserver_blocks(cluster):
        if 0 < nodes < max(sizes) and nodes not in sizes:
            size = next(size for size in sorted(sizes) if size >= nodes)
            yield Breach(
                ("node_groups", groups[-1].name, "count"),
                f"{nodes} nodes from {block}: blocks of {kind} have {_either(sizes)} instances, so "
                f"{size - nodes} that you pay for would do nothing.",
                _counted(groups[-1], size - nodes),
            )


def _reserved(cluster: Cluster) -> Mapping[str, dict[str, Group]]:
    """Compute groups by the id of their reservation or block."""
    found: dict[str, dict[str, Group]] = {}
    for name, group in cluster.with_role("compute").items():
        number = group.capacity.id if isinstance(group.capacity, Reservation | CapacityBlock) else None
        if number:
            found.setdefault(number, {})[name] = group
    return found


def _ultraserver_blocks(
    cluster: Cluster,
) -> Iterator[tuple[str, str, list[Group], tuple[int, ...], int]]:
    """(type, block, groups, sizes of such blocks, nodes in all) of each block with fixed sizes."""
    for block, groups in _reserved(cluster).items():
        leader = next(iter(groups.values()))
        family = family_of(leader)
        if family and family.block_sizes:
            nodes = sum(group.most_nodes for group in groups.values())
            yield leader.settings.instance_type, block, list(groups.values()), family.block_sizes, nodes


def _either(sizes: tuple[int, ...]) -> str:
    return " or ".join(map(str, sizes))


def _counted(group: Group, more: int) -> Remedy:
    """The group with so many nodes more, or less where that leaves any; a block's group is of one size."""
    nodes = group.most_nodes + more
    if nodes < 1:
        return ask("decision", f"{-more} nodes fewer in all")
    return write(nodes) & beside(max_count=DROP) if group.settings.max_count else write(nodes)
