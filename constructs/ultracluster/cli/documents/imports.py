"""Document of what was imported."""

from __future__ import annotations

from typing import TypedDict

from ultracluster.cli.documents.checks import FindingRow
from ultracluster.imports.ledger import Outcome


class ImportedRow(TypedDict):
    """One thing that is not in the environment as it was."""

    outcome: Outcome
    where: str
    """Place in what was imported; of what is assumed or put right, the place in the environment."""
    why: str
    todo: str


class Import(TypedDict):
    tool: str
    sources: list[str]
    environment: str
    """Its name."""
    orchestrator: str
    region: str
    file: str | None
    """Where it was written; null where it was not."""
    text: str
    """The environment file."""
    rows: list[ImportedRow]
    findings: list[FindingRow]
    """Warnings that `validate` prints of it."""
