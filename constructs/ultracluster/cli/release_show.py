"""`ultracluster software show`: releases, and whether the parts of one fit together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from ultracluster.cli.console import Console
from ultracluster.cli.json_output import write_json
from ultracluster.cli.release_files import lock_file
from ultracluster.cli.release_online import answer_lines, ask_sources, exit_code
from ultracluster.cli.report import refuse, text_table
from ultracluster.software import (
    InvalidLockError,
    every_instance_breach,
    load_release,
    read_lock,
    release_names,
    solve,
)
from ultracluster.software.installing import only_bundled
from ultracluster.software.records import checked

if TYPE_CHECKING:
    from ultracluster.cli.documents.software import ReleaseRow
    from ultracluster.software import Artifact, Component, Release, Verdict
    from ultracluster.software.records import Checked


def list_releases(*, as_json: bool) -> None:
    """List the releases of this package."""
    releases = [load_release(name) for name in release_names()]
    if as_json:
        rows: list[ReleaseRow] = [
            {
                "release": release.release,
                "date": release.date,
                "summary": release.summary,
                "components": len(release.components),
                "families": list(release.families),
                "unlocked": [f"{one.component}: {one.name}" for one in release.unlocked],
            }
            for release in releases
        ]
        write_json("releases", {"releases": rows})
        return
    for release in releases:
        typer.echo(
            f"{release.release}  {release.date}  {len(release.components)} components, {_open(release)}"
        )
        typer.echo(f"  for {', '.join(release.families)}")
        typer.echo(f"  {release.summary}")


def show_release(release: str, *, as_json: bool) -> None:
    """Show a release: every component with version, origin, integrity and source."""
    found = _read(release)
    if as_json:
        write_json("release", {"release": found.model_dump(mode="json", by_alias=True)})
        return
    typer.echo(f"release {found.release} of {found.date}")
    typer.echo(f"{found.summary}\n")
    rows = [
        (name, part.version, _kind(part), _integrity(part), part.source)
        for name, part in found.components.items()
    ]
    _print(("component", "version", "kind", "integrity", "source"), rows)
    if found.unlocked:
        typer.echo("\nnot locked: nodes refuse it until `ultracluster software lock` has recorded it")
        missing = [
            (one.component, one.name, f"{', '.join(one.os) or 'any system'} on {', '.join(one.arch)}")
            for one in found.unlocked
        ]
        _print(("component", "file or key", "for"), missing)
    notes = [(name, part.note) for name, part in found.components.items() if part.note]
    if notes:
        typer.echo("\nnotes")
        _print(("component", "note"), notes)


def check_release(release: str, cache: Path | None, *, online: bool, as_json: bool) -> None:
    """Check that the parts of a release fit together, and agree with what public sources record."""
    found = _read(release)
    recorded = _held(release, found)
    answers = ask_sources(found, cache) if online else []
    verdicts, too_old = solve(found), every_instance_breach(found)
    broken = [verdict for verdict in verdicts if verdict.blocks]
    if as_json:
        write_json(
            "release-check",
            {
                "release": found.release,
                "constraints": verdicts,
                "instance_types": too_old,
                "artefacts": recorded.total,
                "checked": recorded.checked,
                "unrecorded": [f"{row.component}: {row.name}: {row.detail}" for row in recorded.open],
                "contradictions": list(recorded.contradictions),
                "only_bundled": list(only_bundled(found)),
                "sources": answers,
            },
        )
    else:
        for verdict in verdicts:
            _print_verdict(verdict)
        for verdict in too_old:
            _print_verdict(verdict, broken="too old")
        warned = sum(verdict.state == "broken" for verdict in verdicts) - len(broken)
        for line in recorded.contradictions:
            typer.echo(f"CONTRADICTION  {line}")
        typer.echo(f"{recorded.sentence}; no source names the other {len(recorded.open)} exactly")
        if alone := only_bundled(found):
            typer.echo(f"only with the EFA installer: {', '.join(alone)}; nothing else here installs them")
        for line in answer_lines(answers):
            typer.echo(line)
        undecided = sum(verdict.state == "unknown" for verdict in verdicts)
        typer.echo(
            f"{found.release}: {len(broken)} broken, {warned} warnings, {undecided} undecided "
            f"of {len(verdicts)} constraints; {_open(found)}"
        )
        if below := sum(verdict.blocks for verdict in too_old):
            typer.echo(f"below the minimum of {below} of the instance types above, and refused only for them")
    if broken or recorded.contradictions:
        raise typer.Exit(2)
    if code := exit_code(answers):
        raise typer.Exit(code)


def _read(release: str) -> Release:
    try:
        return read_lock(lock_file(release))
    except InvalidLockError as error:
        refuse(str(error))


def _held(name: str, release: Release) -> Checked:
    """Return how the rows of a lock file compare with the records."""
    try:
        return checked(lock_file(name), release)
    except InvalidLockError as error:
        refuse(str(error))


def _open(release: Release) -> str:
    """How much could not be checked."""
    counts = {what: sum(one.what == what for one in release.unlocked) for what in ("file", "key")}
    words = [f"{count} {what}{'s' if count > 1 else ''}" for what, count in counts.items() if count]
    return f"{' and '.join(words)} not locked" if words else "all locked"


def _print_verdict(verdict: Verdict, *, broken: str = "BROKEN") -> None:
    row = verdict.constraint
    state = broken if verdict.blocks else "warning" if verdict.state == "broken" else verdict.state
    typer.echo(f"{row.id}  {state:14}  {row.title}")
    if verdict.state == "not-applicable":
        return
    typer.echo(f"        {verdict.detail}")
    if verdict.state == "broken":
        typer.echo(f"        {row.why}")
    typer.echo(f"        {row.source} ({row.date})")


def _kind(part: Component) -> str:
    floor = f", from {part.floor.version} on ({part.floor.mark})" if part.floor else ""
    floor += "".join(f", {family} from {one.version} on" for family, one in part.floors.items())
    return f"{part.kind}, {part.need}{floor}"


def _integrity(part: Component) -> str:
    found = [_of_artifact(artifact) for artifact in part.artifacts]
    for entry in part.packages:
        repository = entry.repository
        if repository is None:
            found.append("the system's repositories")
        else:
            found.append(
                "repository key pinned" if repository.key_fingerprint else "repository key not pinned"
            )
    return ", ".join(dict.fromkeys(found)) or "-"


def _of_artifact(artifact: Artifact) -> str:
    digest = artifact.digest
    if digest is None:
        return artifact.integrity
    words = f"{digest[0]} {digest[1][:8]}"
    return f"signature and {words}" if artifact.integrity == "signature" else words


def _print(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table that folds to the width of a terminal; elsewhere a line for each row."""
    if not sys.stdout.isatty():
        typer.echo(text_table(heads, rows))
        return
    table = Table(box=None, pad_edge=False)
    for title in heads:
        table.add_column(title, overflow="fold", no_wrap=title in ("component", "version"))
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
