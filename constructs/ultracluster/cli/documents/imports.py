"""Document of what was imported."""

from __future__ import annotations

from typing import TypedDict

from ultracluster.config.findings import Finding
from ultracluster.imports.ledger import Row


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
    rows: list[Row]
    findings: list[Finding]
    """Warnings that `validate` prints of it."""
