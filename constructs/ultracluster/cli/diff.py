"""`ultracluster diff`: what a change does to what is there, before it is deployed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.change import blast_radius
from ultracluster.change import comparison as compare
from ultracluster.change.changes import ChangeError
from ultracluster.change.comparison import Comparison
from ultracluster.change.other_version import of_version
from ultracluster.change.radius_page import radius_page
from ultracluster.change.report import Report
from ultracluster.cli.diff_output import as_document, as_markdown, as_text
from ultracluster.cli.environments import JsonOption, complete_environment, refuse_file
from ultracluster.cli.file_output import check_html, write_html
from ultracluster.cli.json_output import write_json
from ultracluster.cli.pcluster_file import add_pcluster_files
from ultracluster.cli.progress import working
from ultracluster.cli.report import refuse
from ultracluster.config import InvalidEnvironmentError
from ultracluster.project.place import ProjectError, find_root, located


def diff(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two environments, what is there and what is to be; or one, with an option.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Compare with the environment file of this git revision.", show_default=False),
    ] = None,
    against_version: Annotated[
        str | None,
        typer.Option(
            "--against-version",
            metavar="WHEEL|REVISION|PYTHON",
            help="Compare with what another version of Ultracluster makes of the same file.",
            show_default=False,
        ),
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Compare with what is deployed in the account.")
    ] = False,
    templates: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Compare two templates, or two folders of them.", show_default=False),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            "--accept-data-loss",
            metavar="STACK/LOGICAL_ID",
            help="The data of this resource may be lost, or lose a guard. Repeatable.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="AWS profile for --deployed.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page that a browser opens into this file, which is replaced.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the blast radius of a change: what stays, restarts, is replaced, or loses its data.

    Exit code 0: running jobs are not disturbed. 1: AWS refuses it, something restarts, has to be scaled to
    zero, is replaced or not known, or running jobs lose a way or a right. 3: data would be lost, or lose a
    guard, or what becomes of them is not known, and --accept does not name it. 2: bad input, or something
    could not be read.
    """
    accepted = set(accept or [])
    if wrong := [one for one in sorted(accepted) if one.count("/") != 1]:
        refuse(f"--accept {wrong[0]}: write STACK/LOGICAL_ID, as the report shows it")
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    if html is not None:
        check_html(html)
    try:
        comparison = _compared(environments or [], against, against_version, deployed, templates, profile)
    except InvalidEnvironmentError as error:
        refuse_file(error.findings)
    except ChangeError as error:
        refuse(str(error))
    except ProjectError as error:
        without = "" if find_root() else "\nOr compare templates: ultracluster diff --templates OLD NEW"
        refuse(f"{error}{without}")
    add_pcluster_files(comparison)
    changes = blast_radius(comparison.before, comparison.after, renamed_to=comparison.renamed_to)
    report = Report(comparison, changes, accepted)
    for resource in sorted(accepted - report.acceptable):
        typer.echo(f"--accept {resource}: no data is lost there, and no data protection is removed", err=True)
    if html is not None:
        write_html(html, radius_page(report))
    if as_json:
        write_json("diff", as_document(report))
    else:
        sys.stdout.write(as_markdown(report) if markdown else as_text(report))
    raise typer.Exit(report.exit_code)


_WAYS = (
    "Pass what to compare, in one of these ways:\n"
    "  ultracluster diff dev prod                   two environments\n"
    "  ultracluster diff prod --against HEAD~1      with another revision of the file\n"
    "  ultracluster diff prod --against-version V   with another version of Ultracluster\n"
    "  ultracluster diff prod --deployed            with what is deployed\n"
    "  ultracluster diff --templates OLD NEW        two templates, or folders of them"
)


def _compared(
    names: list[str],
    against: str | None,
    against_version: str | None,
    deployed: bool,
    templates: tuple[Path, Path] | None,
    profile: str | None,
) -> Comparison:
    """Both sides that the command line names."""
    ways = [way for way in (against, against_version, deployed or None, templates) if way is not None]
    if len(names) == 2 and not ways:
        old, new = (located(name, anywhere=True) for name in names)
        with working(f"synthesising {old.name} and {new.name} ..."):
            return compare.of_two(old, new)
    if len(ways) != 1 or len(names) != (templates is None):
        refuse(_WAYS)
    if templates is not None:
        return compare.of_templates(*templates)
    here = located(names[0])
    if against is not None:
        with working(f"synthesising {here.name}, now and at {against} ..."):
            return compare.of_revision(here, against)
    if against_version is not None:
        with working(f"synthesising {here.name}, now and by {against_version} ..."):
            return of_version(here, against_version)
    from ultracluster.cli.accounts import open_account  # 0.3 s: the SDK

    account = open_account(here.environment, profile)
    with working(f"synthesising {here.name} ..."):
        return compare.of_account(here, account)
