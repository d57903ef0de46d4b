"""`ultracluster release ...`: look at, check, lock and mirror software releases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.refusal import refuse

if TYPE_CHECKING:
    from rich.progress import Progress

    from ultracluster.operations.release_lock import Locked
    from ultracluster.software import Artifact, Component, Release, Verdict

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Software releases: locked sets of versions that nodes are brought to.",
)
ReleaseName = Annotated[
    str, typer.Argument(help="A release (2026.11) or the path of a lock file.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache", help="Folder for downloads; ~/.cache/ultracluster by default.", show_default=False
    ),
]


@app.command("list")
def list_releases(as_json: AsJson = False) -> None:
    """List the releases of this package, oldest first."""
    from ultracluster.software import load_release, release_names

    releases = [load_release(name) for name in release_names()]
    if as_json:
        rows = [
            {
                "release": release.release,
                "date": release.date,
                "summary": release.summary,
                "components": len(release.components),
                "unlocked": len(release.unlocked),
            }
            for release in releases
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    for release in releases:
        locked = f"{len(release.unlocked)} files to be locked" if release.unlocked else "locked"
        typer.echo(f"{release.release}  {release.date}  {len(release.components)} components, {locked}")
        typer.echo(f"  {release.summary}")


@app.command()
def show(release: ReleaseName, as_json: AsJson = False) -> None:
    """Show a release: every component with version, origin, integrity and source."""
    found = _read(release)
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json", by_alias=True), indent=2))
        return
    typer.echo(f"release {found.release} of {found.date}")
    typer.echo(f"{found.summary}\n")
    _table(
        ("component", "version", "kind", "integrity", "source"),
        [
            (name, part.version, _kind(part), _integrity(part), part.source)
            for name, part in found.components.items()
        ],
    )
    notes = [(name, part.note) for name, part in found.components.items() if part.note]
    if notes:
        typer.echo("\nnotes")
        _table(("component", "note"), notes)


@app.command()
def check(release: ReleaseName, as_json: AsJson = False) -> None:
    """Check that the parts of a release fit together. Exit code 2 if they do not."""
    from ultracluster.software import solve

    found = _read(release)
    verdicts = solve(found)
    broken = [verdict for verdict in verdicts if verdict.blocks]
    if as_json:
        typer.echo(json.dumps([_verdict(verdict) for verdict in verdicts], indent=2))
    else:
        for verdict in verdicts:
            row = verdict.constraint
            state = "BROKEN" if verdict.blocks else "warning" if verdict.state == "broken" else verdict.state
            typer.echo(f"{row.id}  {state:14}  {row.title}")
            if verdict.state != "not-applicable":
                typer.echo(f"        {verdict.detail}")
            if verdict.state == "broken":
                typer.echo(f"        {row.why}")
            if verdict.state != "not-applicable":
                typer.echo(f"        {row.source} ({row.date})")
        warned = sum(verdict.state == "broken" for verdict in verdicts) - len(broken)
        undecided = sum(verdict.state == "unknown" for verdict in verdicts)
        typer.echo(
            f"{found.release}: {len(broken)} broken, {warned} warnings, {undecided} undecided "
            f"of {len(verdicts)} constraints"
        )
    if broken:
        raise typer.Exit(2)


@app.command()
def lock(
    file: Annotated[Path, typer.Argument(help="The lock file to fill, in place.", show_default=False)],
    component: Annotated[
        list[str] | None, typer.Option("--component", help="Only this component; repeat for more.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Check what is locked already, too.")] = False,
    cache: Cache = None,
) -> None:
    """Download each file, check its signature, and write size and SHA-256 into the lock file.

    Exit code 1 if a file could not be locked; what could be is written.
    """
    from difflib import unified_diff

    from ultracluster.operations.artifacts import default_cache
    from ultracluster.operations.release_lock import lock_release
    from ultracluster.software import InvalidLockError

    before = _text(file)
    try:
        with _progress() as bar:
            results = lock_release(
                file,
                cache=cache or default_cache(),
                components=component or (),
                again=again,
                starting=lambda name: bar.console.print(f"{name} ...", highlight=False, style="dim"),
            )
    except InvalidLockError as error:
        refuse(str(error))
    difference = unified_diff(
        before.splitlines(), _text(file).splitlines(), f"{file} (before)", str(file), n=1, lineterm=""
    )
    for line in difference:
        typer.echo(line)
    for result in results:
        if result.state != "unchanged":
            typer.echo(f"{result.state:9}  {result.component}: {_about(result)}", err=True)
    if any(result.state == "failed" for result in results):
        raise typer.Exit(1)


@app.command()
def mirror(
    bucket: Annotated[str, typer.Option("--bucket", help="S3 bucket, which exists.")],
    release: Annotated[
        str, typer.Option("--release", help="A release or the path of a lock file; the newest by default.")
    ] = "",
    prefix: Annotated[str, typer.Option("--prefix", help="Key prefix in the bucket.")] = "",
    kms_key: Annotated[
        str | None,
        typer.Option("--kms-key", help="KMS key (ARN) to encrypt with; the bucket's default otherwise."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=32, help="Downloads at a time.")] = 4,
    packages: Annotated[
        bool,
        typer.Option(
            "--packages/--no-packages", help="Packages of apt and dnf repositories, with what they need."
        ),
    ] = True,
    system: Annotated[
        list[str] | None,
        typer.Option("--os", help="Packages of this operating system only (ubuntu22.04); repeat for more."),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option("--arch", help="Packages of this processor only (x86_64, aarch64); repeat for more."),
    ] = None,
    renew_packages: Annotated[
        bool, typer.Option("--renew-packages", help="Choose packages again, though the lock file has some.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be uploaded.")] = False,
    profile: Annotated[str | None, typer.Option("--profile", help="AWS profile.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="AWS Region of the bucket.")] = None,
    cache: Cache = None,
) -> None:
    """Copy the files and packages of a release to S3, verified; run it again to go on after an interruption.

    The packages that were chosen are recorded in the lock file, by which nodes verify them: deploy after it.
    Exit code 1 if something is missing: the mirror then has no lock file and counts as not made.
    """
    from ultracluster.operations.artifacts import default_cache
    from ultracluster.operations.mirror import mirror_release
    from ultracluster.operations.mirror_bucket import MirrorError, s3_client
    from ultracluster.software import InvalidLockError, release_names

    file = _file(release or release_names()[-1])
    known = _systems(file)
    for option, values, valid in (("--os", system, 0), ("--arch", arch, 1)):
        names = sorted({pair[valid] for pair in known})
        for value in values or ():
            if packages and value not in names:
                refuse(f"{option} {value}: the release has packages for {', '.join(names) or 'none'}")
    try:
        s3 = s3_client(profile, region)
        with _progress() as bar:
            done = mirror_release(
                file,
                bucket=bucket,
                prefix=prefix,
                cache=cache or default_cache(),
                s3=s3,
                kms_key=kms_key,
                jobs=jobs,
                dry_run=dry_run,
                progress=_Bars(bar),
                packages=packages,
                only=lambda its_os, its_arch: (
                    (not system or its_os in system) and (not arch or its_arch in arch)
                ),
                renew=renew_packages,
            )
    except InvalidLockError as error:
        refuse(str(error))
    except MirrorError as error:
        for reason in error.reasons:
            typer.echo(f"missing  {reason}", err=True)
        typer.echo("the mirror is not complete: mend this and run it again", err=True)
        raise typer.Exit(1) from None
    for key in done.uploaded:
        typer.echo(f"{'would upload' if dry_run else 'uploaded'}  s3://{bucket}/{key}")
    for line in done.left_out:
        typer.echo(f"not mirrored  {line}", err=True)
    for name, count in done.package_sets.items():
        typer.echo(f"packages  {name}: {count}{'' if dry_run else f', recorded in {file}'}")
    where = "/".join(part for part in (bucket, prefix.strip("/")) if part)
    typer.echo(
        f"{len(done.uploaded)} {'to upload' if dry_run else 'uploaded'}, {len(done.present)} there already"
    )
    typer.echo(f'software:\n  release: "{file.stem}"\n  mirror: s3://{where}')


@app.command()
def schema() -> None:
    """Print the JSON Schema of a lock file."""
    from ultracluster.software.lock_text import lock_schema

    typer.echo(json.dumps(lock_schema(), indent=2))


class _Bars:
    """One line of the progress bar for each file."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar

    def start(self, name: str, size: int | None) -> Callable[[int], None]:
        task = self.bar.add_task(name, total=size)
        return lambda count: self.bar.advance(task, count)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _file(release: str) -> Path:
    from ultracluster.software import UnknownReleaseError, release_file

    if release.endswith(".lock") or "/" in release:
        return Path(release)
    try:
        return release_file(release)
    except UnknownReleaseError as error:
        refuse(str(error.args[0]))


def _systems(file: Path) -> list[tuple[str, str]]:
    from ultracluster.operations.package_set import systems
    from ultracluster.software import InvalidLockError, read_lock

    try:
        return systems(read_lock(file))
    except InvalidLockError as error:
        refuse(str(error))


def _read(release: str) -> Release:
    from ultracluster.software import InvalidLockError, read_lock

    try:
        return read_lock(_file(release))
    except InvalidLockError as error:
        refuse(str(error))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{file}: {getattr(error, 'strerror', None) or error}")


def _about(result: Locked) -> str:
    # a message of a failure names the file itself
    return result.message if result.state == "failed" else f"{result.name}  {result.message}".rstrip()


def _verdict(verdict: Verdict) -> dict[str, str]:
    row = verdict.constraint
    return {
        "id": row.id,
        "state": verdict.state,
        "severity": row.severity,
        "title": row.title,
        "detail": verdict.detail,
        "why": row.why,
        "source": row.source,
        "date": row.date,
    }


def _kind(part: Component) -> str:
    return f"{part.kind}, {part.need}"


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


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table in a terminal; elsewhere columns of plain text, a line for each row."""
    if not sys.stdout.isatty():
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head) - 1)]
        for row in (head, *rows):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            typer.echo("  ".join([*cells, row[-1]]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in head:
        table.add_column(title, overflow="fold", no_wrap=title in ("component", "version"))
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
