"""Rules on: ParallelCluster. Node groups: names, numbers, what a partition has in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ultracluster.catalog.parallelcluster import parallelcluster, version
from ultracluster.config.capacity import Spot
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.remedy import anywhere, ask, rename, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

DATE = "2026-11-21"


@PCL.error(5, f"{PCLUSTER}, schema (SlurmQueues is required)", DATE)
def compute_group_exists(cluster: Cluster) -> Breaches:
    """There is at least one compute group."""
    if not cluster.with_role("compute"):
        yield at("node_groups").breach(
            "no group has the role `compute`: ParallelCluster requires at least one queue.",
            ask("decision", "add a group with role: compute"),
        )


@PCL.error(6, f"{PCLUSTER}, schema (MaxCount)", DATE)
def compute_group_size(group: Group) -> Breaches:
    """A compute group may have at least one node."""
    if group.role == "compute" and group.most_nodes == 0:
        yield at("max_count").breach(
            "no node runs and none may be added: ParallelCluster requires a MaxCount of 1 or more.",
            write(1).noting("which costs nothing while no job needs the node; or remove the group"),
        )


@PCL.error(10, f"{PCLUSTER}, NameValidator", DATE)
def group_names(group: Group, cluster: Cluster | None) -> Breaches:
    """ParallelCluster accepts the names of login and compute groups."""
    if group.role not in ("login", "compute"):
        return
    if problem := parallelcluster().names_problem(group.name):
        what = "a login pool" if group.role == "login" else "a compute resource"
        yield at().breach(
            f"`{group.name}` cannot be the name of {what}: {problem}.",
            rename(_legal(group.name, taken=cluster.groups if cluster else {})),
        )


@PCL.error(11, f"{PCLUSTER}, NameValidator", DATE)
def partition_names(group: Group, cluster: Cluster | None) -> Breaches:
    """ParallelCluster accepts the names of partitions."""
    name = group.settings.partition if group.role == "compute" else None
    if name and (problem := parallelcluster().names_problem(name)):
        yield at("partition").breach(
            f"`{name}` cannot be the name of a queue: {problem}.",
            write(_legal(name, taken=cluster.partitions if cluster else {})),
        )


@PCL.error(12, f"{PCLUSTER}, MaxCountValidator", DATE)
def queue_limit(cluster: Cluster) -> Breaches:
    """ParallelCluster takes at most 50 partitions."""
    limit = parallelcluster().counts["queues"]
    if (count := len(cluster.partitions)) > limit:
        yield at("node_groups").breach(
            f"there are {count} partitions; ParallelCluster takes {limit} queues.",
            ask(
                "decision",
                f"use {limit} partitions or fewer: groups that share one are different nodes of one queue",
            ),
        )


@PCL.warning(
    99,
    "GitHub aws/aws-parallelcluster#7519",
    "2026-11-28",
)
def queues_update_in_time(cluster: Cluster, settings: ParallelCluster) -> Breaches:
    """A cluster should have few enough queues that an update finishes in time."""
    many, count = parallelcluster().many_queues, len(cluster.partitions)
    fixed = many.fixed_in and version(settings.version) >= version(many.fixed_in)
    if many.least <= count <= parallelcluster().counts["queues"] and not fixed:
        yield at("node_groups").breach(
            f"there are {count} partitions. In each update the head node has {many.seconds} seconds to fetch "
            "the files of all queues together, and an update that takes longer is rolled back "
            "(reported for 3.15.0, not known to be fixed).",
            ask(
                "decision",
                f"use fewer than {many.least} partitions (groups of one partition are one queue), or "
                "acknowledge it after an update of this size has passed",
            ),
        )


@PCL.error(13, f"{PCLUSTER}, MaxCountValidator", DATE)
def compute_limit(cluster: Cluster) -> Breaches:
    """ParallelCluster takes at most 50 compute groups."""
    limit = parallelcluster().counts["compute_resources"]
    if (count := len(cluster.with_role("compute"))) > limit:
        yield at("node_groups").breach(
            f"there are {count} compute groups; ParallelCluster takes {limit} compute resources in all "
            "queues.",
            ask("decision", f"use {limit} groups or fewer: merge those of one type, partition and capacity"),
        )


@PCL.error(14, f"{PCLUSTER}, MaxCountValidator", DATE)
def login_limit(cluster: Cluster) -> Breaches:
    """ParallelCluster takes at most 10 login groups."""
    limit = parallelcluster().counts["login_pools"]
    if (count := len(cluster.with_role("login"))) > limit:
        yield at("node_groups").breach(
            f"there are {count} login groups; ParallelCluster takes {limit} pools.",
            ask("decision", f"use {limit} groups or fewer, with more nodes each"),
        )


def _purchase(group: Group) -> str:
    # reservations are launched as on-demand instances
    return "on-demand" if group.capacity.kind == "reservation" else group.capacity.kind


_SHARED: Mapping[str, tuple[str, Callable[[Group], object]]] = {
    "capacity": ("CapacityType", _purchase),
    "capacity.allocation": (
        "AllocationStrategy",
        lambda group: group.capacity.allocation if isinstance(group.capacity, Spot) else None,
    ),
    "image": ("Image", lambda group: group.settings.image),
    "root_volume_gib": ("ComputeSettings", lambda group: group.settings.root_volume_gib),
    "root_volume_iops": ("ComputeSettings", lambda group: group.settings.root_volume_iops),
}
"""What ParallelCluster's schema has at the queue and not at the compute resource, by our name for it: its
name there, and what a group has."""


@PCL.error(15, f"{PCLUSTER}, schema (SlurmQueues)", DATE)
def queue_settings_agree(cluster: Cluster) -> Breaches:
    """The groups of a partition agree on settings of the whole queue."""
    for queue, groups in cluster.partitions.items():
        (first, leader), *others = groups.items()
        for name, group in others:
            for key, (field, of) in _SHARED.items():
                mine, theirs = of(group), of(leader)
                if mine != theirs:
                    yield at("node_groups", name, *key.split(".")).breach(
                        f"`{name}` and `{first}` are both in partition `{queue}`, and {key} is {mine} here "
                        f"and {theirs} there: ParallelCluster has one {field} for each queue.",
                        anywhere(
                            {("node_groups", name, "partition"): _legal(name, taken=cluster.partitions)}
                        ).noting(f"or use the {key} of `{first}`"),
                    )


def _legal(name: str, *, taken: Mapping[str, object]) -> str:
    """The nearest name that ParallelCluster takes and nothing else has."""
    limits = parallelcluster()
    text = re.sub(r"[^a-z0-9-]+", "-", name.lower()).lstrip("-0123456789")
    text = text[: limits.names.longest].rstrip("-")
    if not text or text in limits.names.reserved or text in taken:
        text = f"g-{text}"[: limits.names.longest].rstrip("-")
    return text
