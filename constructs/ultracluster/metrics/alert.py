# pyright: basic
# ruamel.yaml marks no types.
"""Alerts and recording rules as data: an alert is a file of `alerts/`, named as it and as its runbook."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

Severity = Literal["page", "ticket", "info"]
"""page: someone is called now. ticket: within a working day. info: read beside others, or once a week."""
Scope = Literal["rack", "job", "cluster"]
"""What alerts of one message have in common: the rack of the node (its node group where no rack is known),
the job, or only the cluster."""
GROUPS = ("gpu", "node", "fabric", "lustre", "scheduler", "training", "collection")
"""In which alerts are evaluated, in this order."""
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One file of `alerts/`. Texts may hold `<<values>>` of the cluster, and templates of Prometheus."""

    name: str
    group: str
    severity: Severity
    scope: Scope
    needs: frozenset[str]
    """What a cluster must have for the alert to say anything, in the words of `facts.HAVES`."""
    expr: str
    lasts: str
    """How long the expression must hold first: `for` of Prometheus."""
    summary: str
    """One line, which names what is hit."""
    description: str
    run: str
    """The first command, ready to be copied."""
    why: str
    """Why this threshold and this duration."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels that every one of these alerts has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A recording rule: what several dashboards and alerts would work out again and again."""

    name: str
    expr: str
    needs: frozenset[str]
    what: str


@cache
def alerts() -> tuple[Alert, ...]:
    """All alerts, by group and name."""
    found = [_alert(file) for file in sorted((HERE / "alerts").glob("*.yaml"))]
    return tuple(sorted(found, key=lambda one: (GROUPS.index(one.group), one.name)))


@cache
def records() -> tuple[Record, ...]:
    """All recording rules, in the order of their file: one may read those before it."""
    rows = _read(HERE / "records.yaml")["records"]
    return tuple(
        Record(
            name=row["record"],
            expr=row["expr"].strip(),
            needs=frozenset(row.get("needs", ())),
            what=row["what"],
        )
        for row in rows
    )


def _alert(file: Path) -> Alert:
    row = _read(file)
    return Alert(
        name=file.stem,
        group=row["group"],
        severity=row["severity"],
        scope=row["scope"],
        needs=frozenset(row["needs"]),
        expr=row["expr"].strip(),
        lasts=row["for"],
        summary=row["summary"].strip(),
        description=row["description"].strip(),
        run=row["run"].strip(),
        why=row["why"].strip(),
        labels=row.get("labels", {}),
    )


def _read(file: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))
