"""What a change is: its verdict, where that comes from, and the resource that it happens to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ultracluster.change.template import Json, as_text
from ultracluster.change.walk import MISSING, Steps, dotted

NEW: Final = "new"
"""The reason of a resource that was not there."""
TAGS: Final = "tags only"
"""The reason of a change of nothing but tags."""


class Verdict(StrEnum):
    """What happens to a resource, from nothing to the worst."""

    NO_OP = "no-op"
    IN_PLACE = "in place"
    ROLLING = "rolling"
    """Nodes or servers restart or are renewed one after the other; jobs on them end."""
    SCALE_TO_ZERO = "needs scale-to-zero"
    """Nothing that runs has it until its nodes are made anew."""
    REPLACED = "replaced"
    """What is there now is deleted; something new may take its place."""
    DATA_LOSS = "DATA LOSS"

    @property
    def rank(self) -> int:
        """0 for no-op to 5 for data loss."""
        return list(Verdict).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed property of one resource, or the resource as a whole."""

    stack: str
    logical_id: str
    """Empty for the stack as a whole."""
    resource_type: str
    path: str
    """Below Properties, as `InstanceGroups[train].InstanceCount`; empty for the resource as a whole."""
    verdict: Verdict
    reason: str
    source: str
    before: Any = None
    """The value until now; None where there was none."""
    after: Any = None
    refused: bool = False
    """AWS refuses the update, which is then rolled back."""
    replaces: bool = False
    """The resource as a whole goes, so what refers to it changes, too."""

    @property
    def resource(self) -> str:
        """`stack/logical id`, which is what `--accept-data-loss` takes."""
        return f"{self.stack}/{self.logical_id}" if self.logical_id else self.stack


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one of the tables says of a change."""

    verdict: Verdict
    reason: str
    source: str
    refused: bool = False
    """AWS refuses the update."""
    part: bool = False
    """Only a part of the resource goes, such as one group of nodes."""
    overrides: bool = False
    """CloudFormation's own list does not count here."""

    @property
    def replaces(self) -> bool:
        """Whether the resource as a whole goes."""
        return self.verdict.rank >= Verdict.REPLACED.rank and not self.refused and not self.part


@dataclass(frozen=True, slots=True)
class Pair:
    """One resource before and after."""

    stack: str
    logical_id: str
    before: Json
    after: Json

    @property
    def type(self) -> str:
        """The type that it has afterwards; empty where it is gone."""
        return as_text(self.after.get("Type"))

    @property
    def key(self) -> tuple[str, str]:
        """Stack and logical id."""
        return self.stack, self.logical_id

    def change(self, ruling: Ruling, steps: Steps = (), before: Any = None, after: Any = None) -> Change:
        """What the ruling makes of this resource, or of one of its properties."""
        return Change(
            stack=self.stack,
            logical_id=self.logical_id,
            resource_type=self.type,
            path=dotted(steps),
            verdict=ruling.verdict,
            reason=f"AWS refuses this: {ruling.reason}" if ruling.refused else ruling.reason,
            source=ruling.source,
            before=None if before is MISSING else before,
            after=None if after is MISSING else after,
            refused=ruling.refused,
            replaces=ruling.replaces,
        )
