"""`ultracluster preflight`: can this account deploy this environment right now?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.account.preflight import preflight as ask
from ultracluster.account.quotas.business_case import business_case
from ultracluster.account.quotas.requests import file_requests, plan_requests
from ultracluster.cli.accounts import open_account
from ultracluster.cli.bootstrap import offer
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    confirm,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.output import draw
from ultracluster.cli.progress import LateBar
from ultracluster.cli.release_online import limits
from ultracluster.cli.report import markdown_table
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve
from ultracluster.supply.source_questions import questions

if TYPE_CHECKING:
    from ultracluster.account.preflight import Question, Report, Row
    from ultracluster.account.quotas.requests import Request
    from ultracluster.cli.documents.checks import Preflight, QuotaCheckRow
    from ultracluster.config import Environment

SOURCES_SECONDS = 90
"""For all sources of a release together; what has not answered by then is unknown."""
_COLOURS = {"red": "red", "yellow": "yellow", "green": "green", "unknown": "magenta"}


def preflight(
    environment: EnvironmentArgument,
    request_quotas: Annotated[
        bool, typer.Option("--request-quotas", help="Ask AWS to raise what is too small; tracks it later.")
    ] = False,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="On a terminal, offer `cdk bootstrap` if the account lacks it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before quotas are requested.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 as soon as one question could not be asked.")
    ] = False,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources/--no-sources", help="Ask where nodes fetch the software of their release, too."
        ),
    ] = True,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for a pull request.")] = False,
) -> None:
    """Ask the account for everything that a deploy needs. Changes nothing without --request-quotas
    and --bootstrap.

    Exit code 0 = nothing is red, 1 = something is red, 2 = bad input, no credentials or not confirmed,
    3 = nothing is red, and most of it could not be asked, with --strict any of it.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    config = load_environment(environment)
    account = open_account(config, profile)
    with LateBar("asking AWS") as bar:
        report = ask(account, resolve(config), progress=bar, further=_sources(config) if sources else ())
    if bootstrap and offer(report):
        with LateBar("asking AWS") as bar:
            report = ask(account, resolve(config), progress=bar, further=_sources(config) if sources else ())
    if not as_json:
        draw(as_markdown(report) if markdown else as_text(report))
    requests = _requests(account, report, yes) if request_quotas else None
    case = business_case(resolve(config), requests or (), report.starts, now())
    failed = any(one.state == "failed" for one in requests or ())
    open_questions = not_asked(report)
    blind = report.blind or (strict and bool(open_questions))
    code = 1 if report.level == "red" or failed else 3 if blind else 0
    if as_json:
        made = as_dict(report, config.name, config.region, requests, strict=strict, code=code)
        if requests is not None:
            made["business_case"] = case
        write_json("preflight", made)
    elif requests is not None:
        typer.echo("\n".join(["", *request_lines(requests), *map(one_line, case)]))
    if strict and open_questions and code == 3:
        typer.echo(f"--strict: not asked: {'; '.join(open_questions)}", err=True)
    raise typer.Exit(code)


def _sources(environment: Environment) -> Iterator[Question]:
    """Questions to the sources of the release, which together have SOURCES_SECONDS."""
    return questions(environment, limits(SOURCES_SECONDS, attempts=1))


def now() -> datetime:
    """The current time; tests have another one."""
    return datetime.now(UTC)


def not_asked(report: Report) -> list[str]:
    """The questions whose call failed: denied, throttled, no network."""
    return [f"{group}: {row.what}" for group, rows in report.sections.items() for row in rows if row.unread]


def _requests(account: Any, report: Report, yes: bool) -> list[Request]:
    planned = plan_requests(account, report.quotas)
    wanted = [one for one in planned if one.state == "would"]
    if not wanted:
        return planned
    typer.echo("\n".join(request_lines(wanted)), err=True)
    confirm(f"Ask AWS to raise {len(wanted)} quota{'s' * (len(wanted) != 1)}?", yes)
    return file_requests(account, planned)


def as_dict(
    report: Report,
    name: str,
    region: str,
    requests: Sequence[Request] | None = None,
    *,
    strict: bool = False,
    code: int = 0,
) -> Preflight:
    """The report as JSON types."""
    made: Preflight = {
        "environment": name,
        "region": region,
        "level": report.level,
        "strict": strict,
        "exit_code": code,
        "not_asked": not_asked(report),
        "sections": {group: [_row(row) for row in rows] for group, rows in report.sections.items()},
    }
    if requests is not None:
        made["requests"] = list(requests)
    return made


def _row(row: Row) -> QuotaCheckRow:
    made: QuotaCheckRow = {"what": row.what, "level": row.level, "found": row.found, "do": row.do or None}
    if row.quota:
        value = row.quota.value
        made["quota"] = {
            "service": row.quota.need.quota.service,
            "code": (value.code if value else row.quota.need.quota.code) or None,
            "value": value.amount if value else None,
            "applied": value.applied if value else None,
            "used": row.quota.used,
            "needed": row.quota.need.amount,
            "unit": row.quota.need.unit,
        }
    return made


def as_text(report: Report) -> str:
    """The report for a person: one block for each family of checks, then the sum."""
    lines: list[str] = []
    wide = max((len(row.what) for row in report.rows), default=0)
    wide = min(wide, 48)
    for group, rows in report.sections.items():
        lines += [typer.style(group, bold=True)]
        for row in rows:
            mark = typer.style(f"{row.level:7}", fg=_COLOURS[row.level])
            what, found, do = map(one_line, (row.what, row.found, row.do))
            if len(what) <= wide:
                lines.append(f"  {mark}  {what:{wide}}  {found}")
            else:
                lines += [f"  {mark}  {what}", f"           {'':{wide}}  {found}"]
            if do:
                lines.append(f"           {'':{wide}}  -> {do}")
        lines.append("")
    return "\n".join([*lines, _sum(report)])


def as_markdown(report: Report) -> str:
    """One table for a pull request."""
    rows = (
        (group, row.level, row.what, row.found, row.do)
        for group, found in report.sections.items()
        for row in found
    )
    return "\n".join([*markdown_table(("", "", "what", "found", "do"), rows), "", _sum(report)])


def request_lines(requests: Sequence[Request]) -> list[str]:
    """Increases of quotas, one line each."""
    lines = ["quota increases:"] if requests else ["quota increases: none needed"]
    for one in requests:
        status = f", {one.status}" if one.status and one.status not in one.why else ""
        why = f": {one.why}" if one.why else ""
        lines.append(f"  {one.state:14}  {one.name}: {one.current:g} -> {one.asked:g}{status}{why}")
    return [one_line(line) for line in lines]


def _sum(report: Report) -> str:
    counts = {level: sum(row.level == level for row in report.rows) for level in _COLOURS}
    text = ", ".join(f"{count} {level}" for level, count in counts.items() if count)
    return f"{text}: most checks could not be made, so nothing is proven" if report.blind else text
