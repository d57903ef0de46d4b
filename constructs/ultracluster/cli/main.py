"""Commands that need no AWS account."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ultracluster.cli import acceptance, image, release
from ultracluster.config import Finding, InvalidEnvironmentError, Loaded, load, render

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="GPU and Trainium training clusters on AWS from one YAML file.",
)
app.add_typer(release.app, name="release")
app.add_typer(image.app, name="image")
app.add_typer(acceptance.app, name="acceptance")
EnvironmentFile = Annotated[
    Path, typer.Argument(help="An environment file, or the name of one in environments/.", show_default=False)
]


def main() -> None:
    """Entry point of the console script."""
    app()


@app.command()
def validate(
    environment: EnvironmentFile,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
) -> None:
    """Check an environment file: shape and rules. Exit code 2 if it cannot be deployed."""
    from ultracluster.rules import check

    try:
        findings = check(_load(environment))
    except InvalidEnvironmentError as error:
        findings = list(error.findings)
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
def plan(environment: EnvironmentFile) -> None:
    """Show what an environment is made of: nodes, fabric, storage, addresses, stacks."""
    from ultracluster.cli.plan import print_plan
    from ultracluster.rules import enforce

    try:
        loaded = _load(environment)
        warnings = enforce(loaded)
    except InvalidEnvironmentError as error:
        _refuse(error)
    print_plan(loaded.environment, warnings)


@app.command()
def schema() -> None:
    """Print the JSON Schema of an environment file."""
    from ultracluster.config.schema import environment_schema

    typer.echo(json.dumps(environment_schema(), indent=2))


@app.command()
def rules(
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
) -> None:
    """List every rule with its source."""
    from ultracluster.cli.rules_page import rules_page
    from ultracluster.rules import all_rules

    if markdown:
        typer.echo(rules_page(), nl=False)
        return
    for rule in all_rules():
        typer.echo(f"{rule.id}  {rule.severity:7}  {rule.title}")


def _load(environment: Path) -> Loaded:
    if environment.suffix not in {".yaml", ".yml"} and not environment.exists():
        environment = Path("environments") / f"{environment}.yaml"
    return load(environment)


def _refuse(error: InvalidEnvironmentError) -> NoReturn:
    sys.stdout.flush()
    typer.echo(str(error), err=True)
    raise typer.Exit(2) from None


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
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "acknowledged": finding.acknowledged or None,
    }
