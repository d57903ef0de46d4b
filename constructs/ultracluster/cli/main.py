"""Commands that need no AWS account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.commands import Commands
from ultracluster.cli.environments import EnvironmentArgument, JsonOption, load_file
from ultracluster.config import Finding, InvalidEnvironmentError, render

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

    typer.echo(json.dumps(environment_schema(), indent=2))


@app.command()
def rules(
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List every rule with its source."""
    from ultracluster.cli.rules_page import rules_page
    from ultracluster.rules import all_rules

    if markdown:
        typer.echo(rules_page(), nl=False)
        return
    if as_json:
        rows = [
            {
                "id": rule.id,
                "severity": rule.severity,
                "title": rule.title,
                "orchestrators": sorted(rule.kinds) if rule.kinds else None,
                "source": rule.source,
                "date": rule.date,
            }
            for rule in all_rules()
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    for rule in all_rules():
        typer.echo(f"{rule.id}  {rule.severity:7}  {rule.title}")


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
