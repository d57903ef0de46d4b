"""What is paid for nothing while a node is idle or has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.config import Environment
from ultracluster.plan.billed import greatest_nodes
from ultracluster.plan.cost_line import Line, Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What is paid for nothing while a node is idle or has failed."""

    group: str
    """The compute group with the most nodes."""
    instance_type: str
    prepaid: bool
    """It is paid upfront, whether or not it works."""
    mark: Mark
    """What is to be said of the node's price."""
    node_per_hour: float | None
    """USD per hour of one node; None without a price."""
    job_groups: tuple[str, ...]
    """The groups of its partition."""
    job_nodes: int
    """Their nodes: those of a synchronous job that all wait for the one."""
    job_per_hour: float | None
    """USD per hour of all of them; None where one has no price."""


def idle_burn(environment: Environment, lines: Sequence[Line]) -> Idle | None:
    """The burn of the compute group with the most nodes; None without compute nodes."""
    of = {line.item.group: line for line in lines if line.item.group}
    compute = [name for name in environment.groups("compute") if name in of]
    if not compute:
        return None
    nodes = {name: _job_nodes(environment, name) for name in compute}
    group = max(compute, key=lambda name: nodes[name])
    partition = environment.node_groups[group].partition
    job = [
        name
        for name in compute
        if name == group or (partition and environment.node_groups[name].partition == partition)
    ]
    each = {name: _node(environment, of[name]) for name in job}
    return Idle(
        group=group,
        instance_type=environment.node_groups[group].instance_type,
        prepaid=of[group].prepaid,
        mark=of[group].mark,
        node_per_hour=each[group],
        job_groups=tuple(job),
        job_nodes=sum(nodes[name] for name in job),
        job_per_hour=None
        if None in each.values()
        else sum(usd * nodes[name] for name, usd in each.items() if usd is not None),
    )


def _job_nodes(environment: Environment, name: str) -> int:
    """Nodes of a group that a job may hold: those that are always there, or else those that may be."""
    group = environment.node_groups[name]
    return group.count or greatest_nodes(environment, group)


def _node(environment: Environment, line: Line) -> float | None:
    """USD per hour of one node; UltraServers are sold whole."""
    if line.figure is None:
        return None
    nodes = greatest_nodes(environment, environment.node_groups[line.item.group])
    return line.figure.per_hour * line.item.greatest / nodes
