"""Output of `ultracluster cost --by`: node-hours and money by user, team or job."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from textwrap import fill
from typing import cast, get_args

from ultracluster.account.aws import AccountError
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.report import markdown, markdown_table, text_table
from ultracluster.cli.terminal import remark, width
from ultracluster.config.plain_text import one_line
from ultracluster.jobs import queue as queues
from ultracluster.model import Cluster
from ultracluster.plan.cost import Estimate
from ultracluster.plan.usage import By, Usage, UsageRow, usage

DAYS = 30
"""Length of the time by default."""
_WORDS = {"idle": "(idle)", "service": "(service nodes)", "total": "all nodes"}


def time_of(text: str, option: str) -> dt.datetime:
    """A day or a time; without an offset that of UTC."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        refuse(f"{option} {text}: write a day or a time (UTC) as 2026-11-01 or 2026-11-01T12:00")
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def times(first: str | None, last: str | None, now: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
    """Begin and end of the time that is asked for."""
    until = time_of(last, "--until") if last else now
    since = time_of(first, "--from") if first else until - dt.timedelta(days=DAYS)
    if since >= until:
        refuse(f"--from {since:%Y-%m-%dT%H:%M} is not before --until {until:%Y-%m-%dT%H:%M}")
    if since >= now:
        refuse(f"--from {since:%Y-%m-%dT%H:%M} is in the future: nothing was used yet")
    return since, until


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Request of --by: the use of nodes between two times."""

    by: By
    since: dt.datetime
    until: dt.datetime
    user: str

    def print(
        self, cluster: Cluster, estimate: Estimate, profile: str | None, *, as_json: bool, markdown: bool
    ) -> None:
        """Print what jobs held of the nodes."""
        held = self._held(cluster, estimate, profile)
        if as_json:
            write_json("usage", held)
        else:
            sys.stdout.write(as_text(held, width(), as_markdown=markdown))

    def _held(self, cluster: Cluster, estimate: Estimate, profile: str | None) -> Usage:
        """Use as the scheduler recorded it, at the prices of the estimate."""
        if self.user and cluster.traits.kubernetes:
            refuse(f"--as is for Slurm, and this is {cluster.settings.kind}: your IAM role is who you are")
        account = open_account(cluster.environment, profile)
        try:
            with (
                queues.open_queue(
                    account, cluster, user=self.user, say=lambda line: remark(one_line(line))
                ) as queue,
                working("asking the scheduler what jobs held"),
            ):
                records = queue.records(cluster, self.since, self.until)
        except AccountError as error:
            refuse(str(error))
        return usage(cluster, estimate, records, self.since, self.until, self.by)


def use_of(by: str | None, since: str | None, until: str | None, user: str, on: dt.date | None) -> Use:
    """Read the options of --by.

    Args:
        on: the day of --today; none for now.
    """
    if by is None:
        refuse(f"{'--until' if until else '--as'} goes with --by")
    if by not in get_args(By):
        refuse(f"--by {one_line(by)}: user, team or job")
    now = dt.datetime.now(dt.UTC)
    first, last = times(since, until, dt.datetime.combine(on, now.timetz()) if on else now)
    return Use(by=cast("By", by), since=first, until=last, user=user)


def as_text(found: Usage, width: int, *, as_markdown: bool = False) -> str:
    """The report for a terminal of `width` columns, or in Markdown."""
    rows = [_cells(row, found) for row in (*found.rows, found.total)]
    who = ("job", "user", "team") if found.by == "job" else (found.by,)
    figures = ("node-hours", "accelerator-h", "USD", "of all", "jobs", "starts")
    heads = (*who, *figures, *(("name",) if found.by == "job" else ()))
    title = (
        f"{found.environment}: {found.hours:,.1f} h from {found.since:%Y-%m-%d %H:%M} to "
        f"{found.until:%Y-%m-%d %H:%M} UTC, by {found.by}; instances at list prices"
    )
    notes = [f"Asked: {found.place}", *found.notes]
    if as_markdown:
        lines = [f"### {markdown(title)}", "", *markdown_table(heads, rows), ""]
        return "\n".join([*lines, *(f"- {markdown(one)}" for one in notes), ""])
    table = text_table(heads, rows, numbers=figures)
    return "\n".join([title, "", table, "", *(fill(one_line(one), width) for one in notes), ""])


def _cells(row: UsageRow, found: Usage) -> tuple[str, ...]:
    usd = "?" if row.usd is None else f"{row.usd:,.2f}"
    whole = found.total.usd
    share = f"{row.usd / whole:.1%}" if whole and row.usd is not None else "?"
    unknown = {"user": "(unknown user)", "team": "(no team)", "job": ""}[found.by]
    name = row.name or unknown if row.kind == "use" else _WORDS[row.kind]
    figures = (f"{row.node_hours:,.1f}", f"{row.accelerator_hours:,.1f}", usd, share)
    counts = (str(row.jobs), str(row.starts)) if row.kind in ("use", "total") else ("", "")
    if found.by == "job":
        return (name, row.user, row.team, *figures, *counts, row.job_name)
    return (name, *figures, *counts)
