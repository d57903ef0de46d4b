"""The estimate of `ultracluster cost` for a terminal, and in Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ultracluster.catalog.prices import HOURS_PER_MONTH
from ultracluster.cli.paper import Paper
from ultracluster.cli.report import cell, folded, markdown, markdown_row
from ultracluster.plan.cost import Estimate, Line
from ultracluster.plan.cost_summary import rough, summary

if TYPE_CHECKING:
    from rich.console import Console

    from ultracluster.catalog.prices import Figure

WIDE, MIDDLE = 95, 76
"""Columns from which every column but the day's fits, or all but price and day."""
WIDEST = 118
"""Columns from which there is room for the day, too."""


def as_text(found: Estimate, width: int, *, colour: bool = False) -> str:
    """The estimate for a terminal of `width` columns; no figure is ever cut."""
    paper = Paper(width, colour=colour, markup=False)
    console = paper.console
    sources = _Sources()
    title, headline, *others = _heading(found)
    console.print(title)
    console.print(Text(headline, "bold"))
    for line in others:
        console.print(line)
    for fault in found.faults:
        console.print(Text(fault, "yellow"))
    console.print()
    console.print(_table(found, sources, width))
    console.print()
    for line in _sentences(found, sources):
        console.print(line)
    for name, lines in _lists(sources):
        _print_list(console, name, lines)
    return paper.text()


def _table(found: Estimate, sources: _Sources, width: int) -> Table:
    columns = _columns(width)
    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= WIDEST else 1, 0, 0))
    for name, heading_of in columns.items():
        table.add_column(
            heading_of,
            justify="right" if name in ("price", "hour", "day", "month") else "left",
            no_wrap=name in ("hour", "day", "month", "mark"),
            overflow="fold",
        )
    for area, lines in _rows(found, sources).items():
        table.add_row(Text(area, "bold"))
        for row in lines:
            cells = [Text(getattr(row, name), "dim" if row.mark else "") for name in columns]
            table.add_row(Padding(cells[0], (0, 0, 0, 2)), *cells[1:])
    for row in _totals(found):
        table.add_row(*(Text(getattr(row, name), "bold") for name in columns))
    return table


def _columns(width: int) -> dict[str, str]:
    names = {"what": "", "quantity": "quantity", "price": "price", "hour": "per hour"}
    names |= {"day": "per day", "month": "per month", "mark": ""}
    if width >= WIDEST:
        return names
    if width >= WIDE:
        dropped = {"day"}
    elif width >= MIDDLE:
        dropped = {"day", "price"}
    else:
        return {"what": "", "month": "per month"}
    return {name: text for name, text in names.items() if name not in dropped}


def _print_list(console: Console, name: str, lines: list[str]) -> None:
    if not lines:
        return
    console.print()
    console.print(Text(name, "bold"))
    for line in lines:
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))


def as_markdown(found: Estimate) -> str:
    """The estimate as a comment for a pull request."""
    sources = _Sources()
    title, headline, *others = _heading(found)
    out = [f"### Cost of {cell(title)}", "", f"**{headline}**  ", *(f"{line}  " for line in others)]
    out += [f"{markdown(fault)}  " for fault in found.faults]
    out += [
        "",
        "| | quantity | price | per hour | per day | per month | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for lines in _rows(found, sources).values():
        for row in lines:
            out.append(
                markdown_row((row.what, row.quantity, row.price, row.hour, row.day, row.month, row.mark))
            )
    for row in _totals(found):
        out.append(f"| **{row.what}** | | | **{row.hour}** | **{row.day}** | **{row.month}** | |")
    out += ["", *(f"{markdown(line)}  " for line in _sentences(found, sources))]
    for name, lines in _lists(sources):
        out += folded(name, [f"- {markdown(one)}" for one in lines])
    return "\n".join(out) + "\n"


@dataclass(slots=True)
class _Sources:
    """Prices and notes that are shown, numbered in the order in which they are."""

    lines: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def number(self, figure: Figure) -> str:
        """The reference of a price: `[1]`."""
        day = f"asked on {figure.date}" if figure.live else str(figure.date or "undated")
        doubt = "" if figure.verified else ", unverified"
        place = f" ({figure.region})" if figure.region else ""
        return f"[{_number(self.lines, f'{day}{doubt}: {figure.source}{place}')}]"

    def note(self, text: str) -> str:
        """The reference of a note: `(1)`."""
        return f"({_number(self.notes, text)})"


def _number(texts: list[str], text: str) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text) + 1


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table. A price with ~ is not the thing's own in this Region."""

    what: str
    quantity: str
    price: str
    hour: str
    day: str
    month: str
    mark: str


def _money(usd: float) -> str:
    """USD: from a thousand on without cents, below ten cents with four digits after the point."""
    return f"{usd:,.0f}" if usd >= 1000 else f"{usd:,.2f}" if usd >= 0.1 or usd == 0 else f"{usd:.4f}"


def _heading(found: Estimate) -> list[str]:
    """What is estimated, then the headline, the strict sum, and what an idle node costs."""
    told = summary(found)
    place = f"{found.orchestrator} in {found.region}"
    lines = [
        f"{found.environment}: {place}, USD at list prices on {found.today}",
        told.text,
        told.strict_line,
    ]
    return [*lines, *filter(None, [told.idle_line, told.order_line])]


def _rows(found: Estimate, sources: _Sources) -> dict[str, list[_Row]]:
    """The lines of the table by area; without what is billed by use."""
    areas: dict[str, list[_Row]] = {}
    for line in found.lines:
        if line.mark != "by use":
            areas.setdefault(line.item.area, []).append(_row(line, sources))
    return areas


def _totals(found: Estimate) -> list[_Row]:
    """The sums as rows."""
    of = len(found.standing)
    sums = [(f"estimate, {len(found.priced)} of {of} lines", found.per_hour)]
    if found.grows:
        sums.append(("maximum", found.most_per_hour))
    sums.append((f"current prices, {len(found.strict)} of {of} lines", found.strict_per_hour))
    return [_Row(name, "", "", *_sums(usd), "") for name, usd in sums]


def _sentences(found: Estimate, sources: _Sources) -> Iterator[str]:
    """What stands below the table."""
    if any(line.mark in ("derived", "elsewhere") for line in found.lines):
        yield "~: not its own price in this Region"
    if any(line.prepaid for line in found.lines):
        yield _upfront(found)
    for one in found.committed:
        rates = (
            f"{_money(one.figure.usd)} {sources.number(one.figure)} in place of {_money(one.on_demand.usd)}"
        )
        yield f"{one.group} with {one.by} of one year, nothing upfront: {rates} USD per node and hour"
    if plans := found.savings_plans:
        most = "; ".join(f"{plan.name}, at most {plan.most_percent} % off ({plan.note})" for plan in plans)
        yield f"nodes on demand, with a commitment to spend that reserves no capacity: {most}"
    if len(found.strict) < len(found.standing):
        yield (
            f"`ultracluster cost {found.asked_as} --refresh` asks AWS for these prices and writes them "
            "into prices.csv next to the environment; add there by hand what AWS does not list"
        )
    uses = [line.item.what + (f", {_price(line, sources)}" if line.figure else "") for line in found.by_use]
    if uses:
        yield f"billed by use, in no sum: {'; '.join(uses)}"


def _lists(sources: _Sources) -> list[tuple[str, list[str]]]:
    """Notes and prices; to be asked for last, when all have their numbers."""
    return [
        ("notes", [f"({number}) {text}" for number, text in enumerate(sources.notes, start=1)]),
        ("prices", [f"[{number}] {text}" for number, text in enumerate(sources.lines, start=1)]),
    ]


def _upfront(found: Estimate) -> str:
    fee = "paid upfront, in the estimate by the hour: the whole fee of a block or plan"
    if found.days is None:
        return f"{fee}; --days gives it for a number of days"
    known = "not known, a price is missing" if found.upfront is None else f"about {rough(found.upfront)} USD"
    return f"{fee}, for {found.days} days {known}"


def _row(line: Line, sources: _Sources) -> _Row:
    notes = [sources.note(line.item.note)] if line.item.note else []
    marks = [*filter(None, [_mark(line)]), *notes]
    return _Row(
        line.item.what,
        _quantity(line),
        _price(line, sources) if line.figure else "?",
        *_sums(line.per_hour),
        " ".join(marks),
    )


def _mark(line: Line) -> str:
    if line.mark == "elsewhere" and line.figure:
        return line.figure.region
    return f"{line.days_old} days old" if line.mark == "old" else line.mark


def _sums(per_hour: float | None) -> tuple[str, str, str]:
    hour, day, month = (
        "?" if per_hour is None else _money(per_hour * hours) for hours in (1, 24, HOURS_PER_MONTH)
    )
    return hour, day, month


def _quantity(line: Line) -> str:
    item = line.item
    low, high = f"{item.quantity:,.12g}", f"{item.greatest:,.12g}"
    unit = item.unit
    if item.greatest != 1 and unit not in ("GiB", "GB", "MB/s", "IOPS", "10M samples"):
        unit += "es" if unit.endswith("s") else "s"
    return f"{low if low == high else f'{low} to {high}'} {unit}"


def _price(line: Line, sources: _Sources) -> str:
    """A price with its reference: `0.045/h [2]`; one with ~, which is not exact, in four digits."""
    figure = line.figure
    if figure is None:
        return "?"
    per = {"hour": "h", "day": "day", "month": "mo", "gb": "GB"}[figure.unit]
    other = line.mark in ("derived", "elsewhere")
    return f"{'~' * other}{figure.usd:,.{4 if other else 10}g}/{per} {sources.number(figure)}"
