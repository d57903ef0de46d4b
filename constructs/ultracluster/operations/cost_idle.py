"""What is paid for nothing while a node is down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog.prices import Figure
from ultracluster.config import Environment
from ultracluster.operations.billed import greatest_nodes
from ultracluster.operations.cost_line import Line, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What is paid for nothing while a node is down."""

    group: str
    """The compute group with the most nodes."""
    instance_type: str
    state: State
    """How far the node's figure holds; `upfront`: it is paid already."""
    node_per_hour: float | None
    """USD per hour of one node; None without a figure."""
    job_groups: tuple[str, ...]
    """The groups of its partition."""
    job_nodes: int
    """Their nodes: those of a synchronous job that all wait for the one."""
    job_per_hour: float | None
    """USD per hour of all of them; None where a figure is missing or does not hold."""
    node_about: float | None
    """USD per hour of one node at the nearest figure there is, whatever its age; for orientation."""
    job_about: float | None
    """USD per hour of all of them likewise; None where one has no figure at all."""


def idle_burn(environment: Environment, lines: Sequence[Line]) -> Idle | None:
    """The burn of the compute group with the most nodes."""
    of = {line.item.group: line for line in lines if line.item.group}
    compute = [name for name in environment.groups("compute") if name in of]
    if not compute:
        return None
    nodes = {name: _job_nodes(environment, of[name]) for name in compute}
    group = max(compute, key=lambda name: nodes[name])
    partition = environment.node_groups[group].partition
    job = [
        name
        for name in compute
        if name == group or (partition and environment.node_groups[name].partition == partition)
    ]
    costs = [_burn(environment, of[name], nodes[name]) for name in job]
    about = [_node(environment, of[name], of[name].about) for name in job]
    first = of[group]
    return Idle(
        group=group,
        instance_type=environment.node_groups[group].instance_type,
        state=first.state,
        node_per_hour=_node(environment, first, first.figure),
        job_groups=tuple(job),
        job_nodes=sum(nodes[name] for name in job),
        job_per_hour=None if None in costs else sum(cost for cost in costs if cost is not None),
        node_about=_node(environment, first, first.about),
        job_about=None
        if None in about
        else sum(usd * nodes[name] for usd, name in zip(about, job, strict=True) if usd is not None),
    )


def _job_nodes(environment: Environment, line: Line) -> int:
    """Nodes of a group that a job may hold: those that are always there, or else those that may be."""
    group = environment.node_groups[line.item.group]
    return group.count or greatest_nodes(environment, group)


def _node(environment: Environment, line: Line, figure: Figure | None) -> float | None:
    if figure is None:
        return None
    group = environment.node_groups[line.item.group]
    return figure.per_hour * line.item.greatest / greatest_nodes(environment, group)


def _burn(environment: Environment, line: Line, nodes: int) -> float | None:
    node = _node(environment, line, line.figure)
    return None if node is None or line.state not in ("counted", "upfront") else node * nodes
