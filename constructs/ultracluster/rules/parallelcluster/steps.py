"""Rules on: node steps of a team's own in groups that ParallelCluster cannot tell apart."""

from __future__ import annotations

from ultracluster.config.remedy import write
from ultracluster.model import Cluster
from ultracluster.model.own_steps import steps_of_group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCL, STP


@STP.error(
    8,
    "ParallelCluster User Guide: CustomActions are a property of a queue; this package: a node finds "
    "its group among those of a queue by its instance type",
    "2026-11-22",
    kinds=PCL.kinds,
)
def steps_of_queue_agree(cluster: Cluster) -> Breaches:
    """Groups that ParallelCluster cannot tell apart run the same steps."""
    for partition, groups in cluster.partitions.items():
        first: dict[str, str] = {}
        for name, group in groups.items():
            other = first.setdefault(group.settings.instance_type, name)
            if _steps(cluster, name) == _steps(cluster, other):
                continue
            yield at("node_groups", name, "lifecycle_steps").breach(
                f"`{name}` and `{other}` are groups of partition `{partition}` and of one instance type, and "
                "run different steps: their nodes have the scripts of one queue and could not tell which "
                "group is theirs.",
                write(_steps(cluster, other)).noting("or a partition of its own"),
            )


def _steps(cluster: Cluster, group: str) -> list[str]:
    return [step.name for step in steps_of_group(cluster.environment, group)]
