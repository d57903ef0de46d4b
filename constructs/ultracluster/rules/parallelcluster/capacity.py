"""Rules on: ParallelCluster. What nodes are launched from: reservations, blocks, on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ultracluster.config import Environment
from ultracluster.config.capacity import CapacityBlock, Reservation
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import LINUX, RED_HAT, billed_platform
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.parallelcluster.types import family_of
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER


@PCL.error(22, f"{PCLUSTER}, schema (HeadNode and LoginNodes have no CapacityType)", DATE)
def head_capacity(group: Group) -> Breaches:
    """Controller and login nodes are on-demand instances."""
    if group.role in ("controller", "login") and group.capacity.kind != "on-demand":
        yield at("capacity").breach(
            f"{group.capacity.kind} for a {group.role} group: ParallelCluster launches these nodes on "
            "demand and has no field for anything else.",
            write({"kind": "on-demand"}).noting("which uses a matching open reservation without being told"),
        )


@PCL.warning(
    100,
    "EC2 User Guide, Concepts for Capacity Reservations (attributes); Capacity Blocks for ML, "
    "Supported platforms",
    "2026-11-28",
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <id> "
    "--query 'CapacityReservations[].[InstancePlatform,Tenancy]'",
)
def reserved_platform(group: Group, environment: Environment) -> Breaches:
    """A reservation for nodes with Red Hat's system has its platform."""
    bought = group.capacity
    if (
        isinstance(bought, CapacityBlock | Reservation)
        and billed_platform(environment, group.settings) == RED_HAT
    ):
        yield at("capacity").breach(
            f"nodes with `os: {getattr(environment.orchestrator, 'os', '')}` are billed as {RED_HAT} and "
            f"match a reservation of that platform only; the default of a purchase is {LINUX}, and a block "
            "cannot be cancelled.",
            ask(
                "fact",
                "acknowledge this where the reservation was made so (`ultracluster preflight` reads it)",
            ),
        )


@PCL.error(23, f"{PCLUSTER}, ComputeResourceSizeValidator", DATE)
def block_counts(group: Group) -> Breaches:
    """A group from a Capacity Block has a fixed number of nodes."""
    if group.role != "compute" or not isinstance(group.capacity, CapacityBlock):
        return
    count, most = group.settings.count, group.settings.max_count
    if count == 0:
        yield at("count").breach(
            "count is 0 for a Capacity Block: ParallelCluster requires a MinCount above 0, as the block is "
            "paid for in any case.",
            write(group.most_nodes or 1),
        )
    elif most not in (None, count):
        yield at("max_count").breach(
            f"{count} to {most} nodes from a Capacity Block: ParallelCluster requires MinCount and MaxCount "
            "to be equal.",
            drop() & beside(count=most),
        )


@PCL.error(
    25, f"{PCLUSTER}, UltraserverCapacityBlockSizeValidator and CapacityReservationSizeValidator", DATE
)
def block_size(cluster: Cluster) -> Breaches:
    """A Capacity Block of UltraServers has enough instances for the nodes."""
    for _, block, groups, sizes, nodes in _ultraserver_blocks(cluster):
        if nodes > max(sizes):
            yield at("node_groups", groups[-1].name, "count").breach(
                f"{nodes} nodes use {block}, and blocks of this type have {_either(sizes)} instances.",
                _counted(groups[-1], max(sizes) - nodes).noting("more blocks for more"),
            )


@PCL.warning(26, f"{PCLUSTER}, UltraserverCapacityBlockSizeValidator", DATE)
def block_used_completely(cluster: Cluster) -> Breaches:
    """A Capacity Block of UltraServers is used completely."""
    for kind, block, groups, sizes, nodes in _ultraserver_blocks(cluster):
        if 0 < nodes < max(sizes) and nodes not in sizes:
            size = next(size for size in sorted(sizes) if size >= nodes)
            yield at("node_groups", groups[-1].name, "count").breach(
                f"{nodes} nodes use {block}, and blocks of {kind} have {_either(sizes)} instances: you would "
                f"pay for {size - nodes} that no group uses.",
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
        return ask("decision", f"remove {-more} nodes in total")
    return write(nodes) & beside(max_count=DROP) if group.settings.max_count else write(nodes)
