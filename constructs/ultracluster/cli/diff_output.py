"""The report of `ultracluster diff` as text, as Markdown and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ultracluster.change import Verdict, worst
from ultracluster.change.report import Report, end, rows, title
from ultracluster.cli.json_rows import JudgedChange
from ultracluster.cli.paper import Paper
from ultracluster.cli.report import folded, markdown, markdown_table
from ultracluster.cli.terminal import coloured, width

if TYPE_CHECKING:
    from ultracluster.cli.documents.change import Diff

_STYLES = {
    "no-op": "dim",
    "in place": "green",
    "rolling": "yellow",
    "needs scale-to-zero": "yellow",
    "jobs at risk": "bold yellow",
    "not known": "bold magenta",
    "replaced": "red",
    "refused": "bold magenta",
    "DATA AT RISK": "bold red",
    "DATA LOSS": "bold white on red",
}


def as_text(report: Report) -> str:
    """A table for each stack, in the colours of a terminal where there is one."""
    paper = Paper(width(140), colour=coloured(), markup=False)
    console = paper.console
    console.print(title(report))
    for note in report.comparison.notes:
        console.print(f"  {note}", soft_wrap=True)
    made = rows(report)
    for stack in dict.fromkeys(row.stack for row in made):
        table = Table(box=None, pad_edge=False, expand=True, title=stack, title_justify="left")
        table.title_style = "bold"
        table.add_column("verdict", no_wrap=True)
        table.add_column("resource", overflow="fold", ratio=3)
        table.add_column("change", overflow="fold", ratio=4)
        table.add_column("why", overflow="fold", ratio=6)
        last = ""
        for row in (one for one in made if one.stack == stack):
            again = row.resource == last
            name = "" if again else f"{row.resource}\n{row.type}".rstrip()
            verdict = "" if again and row.verdict == "no-op" else row.verdict.value
            table.add_row(Text(verdict, style=_STYLES[row.verdict]), name, row.what, row.why)
            last = row.resource
        console.print()
        console.print(table)
    console.print()
    for line in end(report):
        console.print(line, soft_wrap=True)
    return paper.text()


def as_markdown(report: Report) -> str:
    """For a pull request: what disturbs jobs in full, the rest folded away."""
    made = rows(report)
    parts = [f"### Blast radius: {markdown(title(report))}"]
    parts += [line for note in report.comparison.notes for line in ("", f"*{markdown(note)}*")]
    loud = {row.resource for row in made if row.verdict.rank >= Verdict.ROLLING.rank}
    for fold, kept in (
        (False, [row for row in made if row.resource in loud]),
        (True, [row for row in made if row.resource not in loud]),
    ):
        if not kept:
            continue
        cells: list[tuple[str, ...]] = []
        for row in kept:
            verdict = f"**{row.verdict}**" if row.verdict.rank >= Verdict.AT_RISK.rank else row.verdict
            verdict = "" if row.verdict is Verdict.NO_OP and row.resource in loud else verdict
            cells.append((verdict, f"{row.stack}/{row.resource}", row.what, row.why))
        table = markdown_table(("verdict", "resource", "change", "why"), cells)
        parts += folded(f"{len(kept)} harmless", table) if fold else ["", *table]
    return "\n".join([*parts, "", *(f"{markdown(line)}  " for line in end(report))]).rstrip() + "\n"


def as_document(report: Report) -> Diff:
    """Every change, for machines."""
    return {
        "before": report.comparison.before_name,
        "after": report.comparison.after_name,
        "notes": report.comparison.notes,
        "unread": report.comparison.unread,
        "verdict": worst(report.changes),
        "exit_code": report.exit_code,
        "data_loss_not_accepted": report.lost,
        "data_at_risk_not_accepted": report.at_risk,
        "data_not_known_not_accepted": report.not_known,
        "changes": [JudgedChange(one, one.resource in report.accepted) for one in report.changes],
    }
