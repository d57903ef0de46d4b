"""Documents of a move."""

from __future__ import annotations

from typing import Any, TypedDict

from ultracluster.config.findings import Finding
from ultracluster.moving.parts import Part
from ultracluster.moving.steps import Step


class MoveEdit(TypedDict):
    """A value that is another one in the second environment."""

    path: str
    value: Any
    """null: it is removed."""
    stands_in_for: str | None
    """What only a person knows."""


class MoveCost(TypedDict):
    """USD by list prices; null is unknown, never 0."""

    first_per_hour: float | None
    """Without what is paid upfront."""
    second_per_hour: float | None
    days: int
    """In which both are paid."""
    together: float | None
    """Both in those days."""


class MovePlan(TypedDict):
    environment: str
    second: str
    file: str
    """Where the second environment belongs."""
    region: str
    zone_id: str
    why: str | None
    """Why it is that zone, where only a Region was asked for."""
    problems: list[str]
    """Why the target cannot be had as it is asked for."""
    findings: list[Finding]
    """What the rules say of the second environment."""
    parts: list[Part]
    steps: list[Step]
    edits: list[MoveEdit]
    cost: MoveCost
    least_hours: float | None
    """The longest copy, when all run at once."""
    text: str
    """The second environment's file."""
