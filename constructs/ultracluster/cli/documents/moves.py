"""Documents of a move."""

from __future__ import annotations

from typing import Any, TypedDict

from ultracluster.cli.documents.checks import FindingRow


class MovedPart(TypedDict):
    """A part of the environment and what becomes of it."""

    what: str
    becomes: str
    """`carries over`, `copied`, `bought again`, `made again` or `to decide`."""
    how: str
    least_hours: float | None
    """Copying it when it is full; null: nothing is copied, or how long it takes is unknown."""


class MoveStep(TypedDict):
    """One step; each is done before the next."""

    what: str
    why: str | None
    commands: list[str]
    back: str
    """What leads back from here."""
    gate: bool
    """The second environment has to pass here, or the move ends."""
    downtime: bool
    """No job runs from here to the next step."""
    deletes: bool
    """Something of the first environment goes."""


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
    findings: list[FindingRow]
    """What the rules say of the second environment."""
    parts: list[MovedPart]
    steps: list[MoveStep]
    edits: list[MoveEdit]
    cost: MoveCost
    least_hours: float | None
    """The longest copy, when all run at once."""
    text: str
    """The second environment's file."""
