"""Output of `ultracluster cost --spent`: money spent beside the estimate of the same days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ultracluster.account.spending import Spending
from ultracluster.cli.paper import Paper
from ultracluster.cli.report import cell, markdown, markdown_row
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.plan.cost import Estimate

if TYPE_CHECKING:
    from ultracluster.cli.documents.figures import SpentCost

ACTIVATE = (
    "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status "
    f"TagKey={ENVIRONMENT_TAG},Status=Active"
)


def estimated(found: Estimate, spent: Spending) -> float | None:
    """USD of the estimate for as many days; None where nothing has a price."""
    return None if found.per_hour is None else found.per_hour * 24 * spent.days


def as_document(found: Estimate, spent: Spending) -> SpentCost:
    """The part of the JSON document."""
    usd = estimated(found, spent)
    return {
        "since": str(spent.since),
        "until": str(spent.until),
        "days": spent.days,
        "usd": round(spent.usd, 2) if spent.rows else None,
        "estimate_usd": None if usd is None else round(usd, 2),
        "may_change": spent.estimated,
        "requests": spent.requests,
        "requests_usd": round(spent.fee, 2),
        "rows": list(spent.rows),
        "notes": list(_notes(spent)),
    }


def as_text(found: Estimate, spent: Spending, width: int, *, colour: bool = False) -> str:
    """For a terminal of `width` columns."""
    paper = Paper(width, colour=colour, markup=False)
    title, sums = _heading(found, spent)
    paper.console.print(title)
    paper.console.print(Text(sums, "bold"))
    if spent.rows:
        table = Table(box=None, pad_edge=False)
        for name in ("service", "usage", "USD"):
            table.add_column(name, justify="right" if name == "USD" else "left", overflow="fold")
        for row in spent.rows:
            table.add_row(Text(row.service), Text(row.usage), f"{row.usd:,.2f}")
        paper.console.print()
        paper.console.print(table)
    paper.console.print()
    for note in _notes(spent):
        paper.console.print(note)
    return paper.text()


def as_markdown(found: Estimate, spent: Spending) -> str:
    """A comment for a pull request or a report."""
    title, sums = _heading(found, spent)
    out = [f"### {cell(title)}", "", f"**{sums}**", ""]
    if spent.rows:
        out += ["| service | usage | USD |", "|---|---|---:|"]
        out += [markdown_row((row.service, row.usage, f"{row.usd:,.2f}")) for row in spent.rows]
        out.append("")
    return "\n".join([*out, *(f"- {markdown(note)}" for note in _notes(spent))]) + "\n"


def _heading(found: Estimate, spent: Spending) -> tuple[str, str]:
    title = f"{found.environment}: {spent.days} days from {spent.since}, by the tag {ENVIRONMENT_TAG}"
    usd = estimated(found, spent)
    beside = "the estimate is unknown" if usd is None else f"estimate of the same days: {usd:,.2f} USD"
    if not spent.rows:
        return title, f"Cost Explorer has nothing; {beside}"
    share = f", {spent.usd / usd:.0%} of it spent" if usd else ""
    return title, f"spent {spent.usd:,.2f} USD before credits, refunds and tax; {beside}{share}"


def _notes(spent: Spending) -> Iterator[str]:
    if not spent.rows:
        yield (
            f"Nothing is not zero: Cost Explorer knows {ENVIRONMENT_TAG} only from the day on which it is "
            "activated for cost allocation, in the account that pays. It can be activated a day after "
            f"resources have it, and takes up to a day: {ACTIVATE}"
        )
    else:
        yield (
            "Without what has no tag: Capacity Blocks and training plans, which are billed when they are "
            "bought, fees of Savings Plans, and days before the tag was activated. The estimate has all "
            "nodes at all times, at list prices, and nothing that is billed by use."
        )
    late = " AWS may still change these figures." if spent.estimated else ""
    yield f"Cost Explorer is up to 24 hours late.{late}"
    asked = "1 request" if spent.requests == 1 else f"{spent.requests} requests"
    yield f"AWS bills this question: {asked}, {spent.fee:.2f} USD."
