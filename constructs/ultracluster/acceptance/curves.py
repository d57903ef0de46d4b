"""Published all-reduce figures by type, and the gates made from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from ultracluster.catalog import instance_type as known_type
from ultracluster.catalog.instances import rows_with

Scope = Literal["single", "two nodes", "fabric"]
FEWEST_FABRIC_NODES = 4
"""On fewer nodes NVLink carries so much of an all-reduce that the figure says little about the fabric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A published figure."""

    id: str
    type: str
    nodes: int
    size: int | None
    """Bytes; None: the source gives a peak or a threshold without a size."""
    busbw: float | None
    """GB/s"""
    kind: Literal["measured", "threshold", "expected"]
    verified: bool
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a run must reach, in each row of at least `min_size` bytes."""

    type: str
    scope: Scope
    min_size: int
    """Bytes."""
    busbw: float
    """GB/s"""
    published: Figure
    provisional: bool


@cache
def figures() -> tuple[Figure, ...]:
    """All published figures."""
    return tuple(
        Figure(type=name, **row) for name, rows in rows_with("nccl").items() for row in rows["published"]
    )


@cache
def gates() -> tuple[Gate, ...]:
    """All gates; there is none where no figure with a source is known."""
    by_id = {figure.id: figure for figure in figures()}
    return tuple(
        Gate(
            type=name,
            scope=row["run"],
            min_size=row["min_size"],
            busbw=row["busbw"],
            published=by_id[row["published"]],
            provisional=row["provisional"],
        )
        for name, rows in rows_with("nccl").items()
        for row in rows.get("gates", ())
    )


def gate(instance_type: str, scope: Scope) -> Gate | None:
    """The gate of a type for a kind of run."""
    return next((one for one in gates() if one.type == instance_type and one.scope == scope), None)


def scope_of(nodes: int) -> Scope | None:
    """Return which gates a run on this many nodes is for; three nodes have none."""
    if nodes >= FEWEST_FABRIC_NODES:
        return "fabric"
    scopes: dict[int, Scope] = {1: "single", 2: "two nodes"}
    return scopes.get(nodes)


def ceiling(instance_type: str, nodes: int, ranks: int, *, ring: bool) -> float | None:
    """Bus bandwidth (GB/s) that the interfaces of a node cannot pass; None: not known, or one node.

    A ring moves all it counts through the interfaces. On two nodes a tree sums inside the node first and
    sends each byte once each way, so that the bus bandwidth may be up to 2(n-1)/n times the line rate with
    n ranks.
    """
    facts = known_type(instance_type)
    line_rate = facts.line_rate if facts else None
    if line_rate is None or nodes < 2 or ranks < 2:
        return None
    return line_rate * (2 * (ranks - 1) / ranks if nodes == 2 and not ring else 1.0)
