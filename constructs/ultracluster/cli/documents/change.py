"""The document of `ultracluster diff`."""

from __future__ import annotations

from typing import Any, TypedDict

from ultracluster.change.changes import Verdict


class ChangedProperty(TypedDict):
    """One changed property of one resource, or the resource as a whole."""

    stack: str
    logical_id: str
    """Empty for the stack as a whole."""
    type: str
    """`AWS::FSx::FileSystem`; empty where it is gone."""
    path: str
    """Below Properties; empty for the resource as a whole."""
    verdict: Verdict
    refused: bool
    """AWS refuses the update, which is then rolled back."""
    order: list[str]
    """The deployments in which a refused change works, first to last, those of several reasons one after the
    other; empty where none is known."""
    replaces: bool
    """The resource as a whole goes."""
    accepted: bool
    """Its data may be lost, or lose a guard: --accept."""
    reason: str
    source: str
    before: Any
    """As it stands in the template; null where there was nothing."""
    after: Any


class Diff(TypedDict):
    before: str
    """What is compared, in words."""
    after: str
    notes: list[str]
    unread: list[str]
    """Stacks that could not be read, with the reason."""
    verdict: Verdict
    """The worst of all changes."""
    exit_code: int
    data_loss_not_accepted: list[str]
    """`STACK/LOGICAL_ID`, as --accept takes it."""
    data_at_risk_not_accepted: list[str]
    """Of what loses a guard, or is left behind; `STACK/TerminationProtection` and `STACK/data` of a stack."""
    data_not_known_not_accepted: list[str]
    """Resources with data of which no source says what the change does."""
    changes: list[ChangedProperty]
    """The worst first."""
