"""`ultracluster export prometheus`: rules and boards as files."""

from __future__ import annotations

from pathlib import Path

import typer

from ultracluster.cli.accepted import load_accepted
from ultracluster.cli.file_output import write_folder
from ultracluster.cli.report import refuse
from ultracluster.metrics.files import observability_files
from ultracluster.model import Cluster, resolve


def write_rules_and_boards(environment: Path, to: Path, runbooks: str) -> None:
    """Write rules, the alert manager and boards as files; asks nothing of AWS."""
    cluster = watched(environment)
    files = observability_files(cluster, runbooks=runbooks)
    if not files:
        refuse(f"{environment}: rules and boards read the metrics of `observability.kind: prometheus`")
    write_folder(to, files)
    for name in files:
        typer.echo(f"wrote {to / name}")


def watched(environment: Path) -> Cluster:
    """An environment that is observed; another one ends with exit code 2."""
    cluster = resolve(load_accepted(environment))
    if cluster.environment.observability is None:
        refuse(f"{environment}: the environment has no `observability:`: there is nothing to fill")
    return cluster
