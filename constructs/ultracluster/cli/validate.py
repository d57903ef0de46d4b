"""`ultracluster validate`: what is wrong with environment files, for people, machines and pull requests."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ultracluster.cli.environments import complete_environment, environment_path, load_file
from ultracluster.cli.json_output import JsonOption, write_json
from ultracluster.cli.output import Drawn
from ultracluster.cli.progress import LateBar
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import quiet
from ultracluster.cli.workflow_annotations import annotation_lines
from ultracluster.config import Finding, InvalidEnvironmentError, render
from ultracluster.config.plain_text import one_line
from ultracluster.project.place import ProjectError, find_root
from ultracluster.project.same_name import environment_files, same_name
from ultracluster.project.versions import misfits
from ultracluster.rules import check, judge_rest
from ultracluster.rules.deployed import as_deployed

if TYPE_CHECKING:
    from ultracluster.cli.documents.checks import ValidatedFile
    from ultracluster.config.loader import Loaded

Format = Literal["text", "json", "github", "sarif"]


@dataclass(frozen=True, slots=True)
class Validated:
    """The findings in one environment."""

    environment: str
    """As it was asked for."""
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        return sum(finding.blocks for finding in self.findings)

    @property
    def acknowledged(self) -> int:
        return sum(bool(finding.acknowledged) for finding in self.findings)

    @property
    def warnings(self) -> int:
        """Without the acknowledged ones."""
        return len(self.findings) - self.errors - self.acknowledged


def validate(
    environments: Annotated[
        list[Path],
        typer.Argument(
            metavar="ENVIRONMENT...",
            help="Environment files, names of some in environments/, or folders of files.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ],
    form: Annotated[
        Format,
        typer.Option("--format", help="`github`: annotations of a workflow. `sarif`: SARIF 2.1.0."),
    ] = "text",
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="They are deployed as they are: name what a running one takes."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check environment files: shape and rules. Exit code 2 if one cannot be deployed.

    With --quiet only errors are printed.
    """
    if as_json and form not in ("text", "json"):
        refuse(f"--json and --format {form} exclude each other")
    files = list(dict.fromkeys(_files(environments)))
    if deployed:
        _of_another_version()
    found: list[Validated] = []
    loaded: list[Loaded] = []
    with as_deployed() if deployed else nullcontext(), LateBar("checking") as bar:
        for path in files:
            bar(len(found), len(files))
            found.append(_validated(path, loaded))
    if quiet():
        found = [
            Validated(one.environment, tuple(finding for finding in one.findings if finding.blocks))
            for one in found
        ]
    wrong = any(one.errors for one in found)
    match "json" if as_json else form:
        case "json":
            write_json("validate", {"environments": [_row(one) for one in found]})
        case "sarif":
            from ultracluster.cli.sarif import sarif  # 5 ms, and `validate` is to answer in a blink

            typer.echo(sarif(_each_once(found)))
        case "github":
            for line in annotation_lines(_each_once(found)):
                sys.stdout.write(Drawn(f"{line}\n"))
            sys.stdout.flush()
            _tell(found, err=True)
        case "text":
            for one in found:
                if one.findings:
                    typer.echo(render(one.findings), err=True)
            _tell(found, err=wrong)
    if wrong:
        raise typer.Exit(2)


def _of_another_version() -> None:
    """Advise on the version of the project here by which its environments were deployed."""
    try:
        for one in misfits(root) if (root := find_root()) else ():
            typer.echo(one.text, err=True)
    except ProjectError as error:
        typer.echo(str(error), err=True)


def _files(asked: Iterable[Path]) -> Iterator[Path]:
    """What is asked for, with the environment files of a folder in its place."""
    for path in asked:
        below = environment_files(path) if path.is_dir() and not environment_path(path).is_file() else []
        yield from below or [path]


def _validated(path: Path, loaded: list[Loaded]) -> Validated:
    """The findings in a file; a readable one is added to those that are `loaded`, and compared with them."""
    try:
        file = load_file(path)
        findings = [*check(file)]
        if all(one.environment.file.resolve() != file.environment.file.resolve() for one in loaded):
            loaded.append(file)
            findings += [finding for where, finding in same_name(loaded) if where is file]
    except InvalidEnvironmentError as error:
        findings = judge_rest(error)
    return Validated(str(path), tuple(findings))


def _each_once(found: list[Validated]) -> list[Finding]:
    """All findings; what lies in a file that several extend is said once."""
    alike = {
        (finding.code, finding.location, finding.dotted, finding.message): finding
        for one in found
        for finding in one.findings
    }
    return list(alike.values())


def _tell(found: list[Validated], *, err: bool) -> None:
    """A line for each environment."""
    for one in found if not quiet() else ():
        counts = [
            f"{one.errors} error{'s' * (one.errors != 1)}",
            f"{one.warnings} warning{'s' * (one.warnings != 1)}",
        ]
        if one.acknowledged:
            counts.append(f"{one.acknowledged} acknowledged")
        typer.echo(one_line(f"{one.environment}: {', '.join(counts)}"), err=err)


def _row(one: Validated) -> ValidatedFile:
    return {
        "environment": one.environment,
        "errors": one.errors,
        "warnings": one.warnings,
        "acknowledged": one.acknowledged,
        "findings": list(one.findings),
    }
