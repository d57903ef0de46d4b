"""`ultracluster import`: a file of another tool as an environment, and what did not carry over."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.draft_words import schema_line
from ultracluster.cli.environments import JsonOption, refuse
from ultracluster.cli.json_output import finding_row, write_json
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.cli.documents.imports import Import
    from ultracluster.project.imports.outcome import Imported

_HEADINGS = {"left out": "Left out", "changed": "Changed", "assumed": "Assumed: the file does not say it"}


def import_environment(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="What to import; two files where one needs the other.", show_default=False
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Environment file to write; standard output by default.",
            metavar="NAME.yaml",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name", help="Name of the environment; that of the file by default.", show_default=False
        ),
    ] = "",
    region: Annotated[
        str, typer.Option("--region", help="Region, where the file does not say it.", show_default=False)
    ] = "",
    zone_id: Annotated[
        str,
        typer.Option(
            "--zone-id", help="Zone of its capacity and file systems, as use2-az1.", show_default=False
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an environment of another tool's file, with a list of what did not carry over.

    Takes a configuration of AWS ParallelCluster 3, HyperPod's create-cluster JSON (with its older
    provisioning_parameters.json as a second file), and a ClusterConfig of eksctl. Asks AWS nothing. What it
    writes passes `ultracluster validate`. The list says of each thing why, and what to do; it is in the head
    of the file, too. Exit code 2: a file cannot be read or carried over, or the new file is there already;
    nothing is written then.
    """
    from ultracluster.project.imports.ledger import ImportRefusedError
    from ultracluster.project.imports.outcome import Asked, finished
    from ultracluster.project.imports.reading import drafted, read

    if to is not None and to.exists() and not force:
        refuse(f"{to} exists: pass --force to replace it")
    asked = Asked(name=name or (to.stem if to else ""), region=region, zone_id=zone_id)
    try:
        draft = drafted([read(one) for one in files], asked)
        found = finished(draft, ", ".join(one.name for one in files), to)
    except ImportRefusedError as error:
        refuse(f"Nothing was written:\n{error}")
    text = schema_line(to) + found.text
    if to is not None:
        _write(text, to, force)
    if as_json:
        write_json("import", _document(found, [str(one) for one in files], to, text))
        return
    if to is None:
        sys.stdout.write(text)
        return
    sys.stdout.write(_told(found))
    place = shlex.quote(str(to))
    typer.echo(f"{to} is written. Next: ultracluster validate {place}, ultracluster plan {place}", err=True)


def _told(found: Imported) -> str:
    """The list for people, by what became of each thing."""
    from ultracluster.project.imports.outcome import grouped, sentence

    environment = found.environment
    place = f"{environment.orchestrator.kind} in {environment.region}"
    count = len(environment.node_groups)
    lines = [f"{environment.name}: {place}, {count} node groups, from {found.tool}."]
    heading = ""
    for places, row in grouped(found.rows):
        if row.outcome != heading:
            heading = row.outcome
            lines += ["", f"{_HEADINGS[heading]}:"]
        words = f"{sentence(row.why)} {sentence(row.todo)}"
        lines += [
            f"- {', '.join(map(one_line, places))}",
            *wrap(
                words,
                110,
                initial_indent="  ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            ),
        ]
    return "\n".join(lines) + "\n"


def _document(found: Imported, sources: list[str], to: Path | None, text: str) -> Import:
    return {
        "tool": found.tool,
        "sources": sources,
        "environment": found.environment.name,
        "orchestrator": found.environment.orchestrator.kind,
        "region": found.environment.region,
        "file": str(to) if to else None,
        "text": text,
        "rows": [
            {"outcome": row.outcome, "where": row.where, "why": row.why, "todo": row.todo}
            for row in found.rows
        ],
        "findings": [finding_row(one) for one in found.findings],
    }


def _write(text: str, to: Path, force: bool) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        refuse(f"{to} exists: pass --force to replace it")
    except OSError as error:
        refuse(f"{to} cannot be written: {error.strerror}")
