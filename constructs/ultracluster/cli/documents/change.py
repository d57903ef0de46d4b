"""The document of `ultracluster diff`."""

from __future__ import annotations

from typing import TypedDict

from ultracluster.change.changes import Verdict
from ultracluster.cli.json_rows import JudgedChange


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
    changes: list[JudgedChange]
    """The worst first."""
