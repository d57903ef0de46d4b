"""`ultracluster apply observability`: what no deploy does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ultracluster.account.aws import AccountError
from ultracluster.account.observability_apply import perform, plan
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import confirm, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.prometheus_files import watched
from ultracluster.cli.terminal import remark

if TYPE_CHECKING:
    from ultracluster.account.observability_apply import Plan, Row
    from ultracluster.model import Cluster

WORDS = {"keep": "keep a person's", "none": "same"}


def apply(
    environment: Path,
    *,
    dry_run: bool,
    yes: bool,
    overwrite: bool,
    runbooks: str,
    profile: str | None,
    as_json: bool,
) -> None:
    """Fill Grafana: data sources, boards, administrators; and HyperPod's extension on Slurm."""
    cluster = watched(environment)
    account = open_account(cluster.environment, profile)
    try:
        with working("asking AWS and Grafana"):
            made = plan(account, cluster, overwrite=overwrite, runbooks=runbooks)
    except AccountError as error:
        refuse(str(error))
    rows: Sequence[Row] = made.rows
    if not as_json:
        _show(made)
    wanted = made.changes or any(one.state == "under way" for one in rows)
    if wanted and not dry_run:
        confirm(f"Apply it to {cluster.name}?", yes)
        with working("filling Grafana"):
            rows = perform(account, made, environment=cluster.name, report=remark)
    notes = [*made.notes, *_closing(rows, dry_run=dry_run, wanted=wanted)]
    if as_json:
        write_json("observability", _document(cluster, made, rows, notes, applied=wanted and not dry_run))
    else:
        for row in rows:
            if row.state in ("failed", "not tried", "under way"):
                typer.echo(f"{row.state}: {row.kind} {row.name}: {'; '.join(row.details)}")
        for note in notes:
            typer.echo(note)
    states = {row.state for row in rows}
    if states & {"failed", "not tried"}:
        raise typer.Exit(1)
    if "under way" in states and not dry_run:
        raise typer.Exit(3)


def _show(made: Plan) -> None:
    if made.workspace:
        version = ".".join(map(str, made.workspace.version))
        typer.echo(f"Grafana {version}, workspace {made.workspace.id}: {made.workspace.url}")
    for row in made.rows:
        details = f": {'; '.join(row.details)}" if row.details else ""
        typer.echo(f"{WORDS.get(row.action, row.action)} {row.kind} {row.name}{details}")


def _closing(rows: Sequence[Row], *, dry_run: bool, wanted: bool) -> list[str]:
    notes: list[str] = []
    if any(row.state == "kept" and row.kind == "board" for row in rows):
        notes.append("boards that a person has saved stay as they are; --overwrite replaces them")
    if not wanted:
        notes.append("nothing to do")
    elif dry_run:
        notes.append("dry run: nothing changed")
    return notes


def _document(
    cluster: Cluster, made: Plan, rows: Sequence[Row], notes: Sequence[str], *, applied: bool
) -> dict[str, Any]:
    workspace = made.workspace
    return {
        "environment": cluster.name,
        "grafana": workspace
        and {
            "id": workspace.id,
            "url": workspace.url,
            "version": ".".join(map(str, workspace.version)),
        },
        "applied": applied,
        "rows": [
            {
                "kind": row.kind,
                "name": row.name,
                "action": row.action,
                "state": row.state,
                "details": list(row.details),
            }
            for row in rows
        ],
        "notes": list(notes),
    }
