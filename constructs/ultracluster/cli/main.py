"""Entry point of the `ultracluster` command, with those of its commands that are short."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.commands import Commands
from ultracluster.cli.environments import EnvironmentArgument, JsonOption, load_file
from ultracluster.cli.report import refuse
from ultracluster.config import Finding, InvalidEnvironmentError, render

if TYPE_CHECKING:
    from ultracluster.rules import Rule

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="GPU and Trainium training clusters on AWS from one YAML file.",
)


def main() -> None:
    """Entry point of the console script."""
    app()


@app.command()
def validate(
    environment: EnvironmentArgument,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
) -> None:
    """Check an environment file: shape and rules. Exit code 2 if it cannot be deployed."""
    from ultracluster.rules import check, judge_rest

    try:
        findings = check(load_file(environment))
    except InvalidEnvironmentError as error:
        findings = judge_rest(error)
    wrong = any(finding.blocks for finding in findings)
    if as_json:
        typer.echo(json.dumps([_as_json(finding) for finding in findings], indent=2))
    else:
        shown = [finding for finding in findings if finding.blocks or not quiet]
        if shown:
            typer.echo(render(shown), err=True)
        if not quiet:
            typer.echo(_summary(environment, findings), err=wrong)
    if wrong:
        raise typer.Exit(2)


@app.command()
def schema() -> None:
    """Print the JSON Schema of an environment file."""
    from ultracluster.config.schema import environment_schema
    from ultracluster.software import release_names

    typer.echo(json.dumps(environment_schema(release_names()), indent=2))


@app.command()
def rules(
    codes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CODE]...", help="Rules in full: FSX002, or FSX for all of a subject."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
    next_of: Annotated[
        str, typer.Option("--next", metavar="SET", help="Only the id of the next rule of a set, as FSX.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List every rule; with codes, each in full: what is wrong and why, bad and good lines, the source."""
    from ultracluster.cli.rule_words import as_row, as_text
    from ultracluster.cli.rules_page import rules_page
    from ultracluster.rules import RULE_SETS, all_rules

    if next_of:
        sets = {one.prefix: one for one in RULE_SETS}
        if next_of not in sets:
            refuse(f"there is no set {next_of}: {', '.join(sets)}")
        typer.echo(f"{next_of}{sets[next_of].next_number:03d}")
        return
    if markdown:
        if codes:
            refuse("--markdown prints every rule: omit the codes")
        typer.echo(rules_page(), nl=False)
        return
    chosen = _rules_called(codes) if codes else list(all_rules())
    if as_json:
        typer.echo(json.dumps([as_row(rule) for rule in chosen], indent=2))
    elif codes:
        typer.echo("\n\n".join(as_text(rule) for rule in chosen))
    else:
        for rule in chosen:
            typer.echo(f"{rule.id}  {rule.severity:7}  {rule.title}")


def _rules_called(codes: list[str]) -> list[Rule]:
    """The rules of these codes and subjects, in the order asked for."""
    from ultracluster.cli.rules_page import SHAPE
    from ultracluster.rules import all_rules

    chosen: dict[str, Rule] = {}
    for code in codes:
        wanted = code.upper()
        found = [rule for rule in all_rules() if wanted in (rule.id, rule.id.rstrip("0123456789"))]
        if not found and wanted in SHAPE:
            refuse(f"{wanted} is not a rule but the shape of the file: {SHAPE[wanted]}")
        if not found:
            known = [rule.id for rule in all_rules()]
            near = [one for one in known if one.startswith(wanted)] or difflib.get_close_matches(
                wanted, known
            )
            refuse(f"there is no rule {code}: {' or '.join(near[:3]) or '`ultracluster rules` lists them'}")
        chosen |= {rule.id: rule for rule in found}
    return list(chosen.values())


def _summary(environment: Path, findings: list[Finding]) -> str:
    errors = sum(finding.blocks for finding in findings)
    accepted = sum(bool(finding.acknowledged) for finding in findings)
    warnings = len(findings) - errors - accepted
    counts = [f"{errors} error{'s' * (errors != 1)}", f"{warnings} warning{'s' * (warnings != 1)}"]
    if accepted:
        counts.append(f"{accepted} acknowledged")
    return f"{environment}: {', '.join(counts)}"


def _as_json(finding: Finding) -> dict[str, object]:
    place = finding.location
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": finding.dotted,
        "message": finding.message,
        "instead": finding.instead,
        "remedy": finding.remedy.as_json(),
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "acknowledged": finding.acknowledged or None,
    }
