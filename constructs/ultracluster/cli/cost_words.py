"""The estimate of `ultracluster cost` in words: rows, sentences, numbered sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ultracluster.plan.cost import Estimate, Line
from ultracluster.plan.cost_summary import rough, summary

if TYPE_CHECKING:
    from ultracluster.catalog.prices import Figure


@dataclass(slots=True)
class Sources:
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
class Row:
    """One line of the table. A price with ~ is not the thing's own in this Region."""

    what: str
    quantity: str
    price: str
    hour: str
    day: str
    month: str
    mark: str


def money(usd: float) -> str:
    """USD: from a thousand on without cents, below ten cents with four digits after the point."""
    return f"{usd:,.0f}" if usd >= 1000 else f"{usd:,.2f}" if usd >= 0.1 or usd == 0 else f"{usd:.4f}"


def heading(found: Estimate) -> list[str]:
    """What is estimated, then the headline, the strict sum, and what an idle node costs."""
    told = summary(found)
    place = f"{found.orchestrator} in {found.region}"
    lines = [
        f"{found.environment}: {place}, USD at list prices on {found.today}",
        told.text,
        told.strict_line,
    ]
    return [*lines, *filter(None, [told.idle_line])]


def rows(found: Estimate, sources: Sources) -> dict[str, list[Row]]:
    """The lines of the table by area; without what is billed by use."""
    areas: dict[str, list[Row]] = {}
    for line in found.lines:
        if line.mark != "by use":
            areas.setdefault(line.item.area, []).append(_row(line, sources))
    return areas


def totals(found: Estimate) -> list[Row]:
    """The sums as rows."""
    of = len(found.standing)
    sums = [(f"estimate, {len(found.priced)} of {of} lines", found.per_hour)]
    if found.grows:
        sums.append(("at the most", found.most_per_hour))
    sums.append((f"strictly, {len(found.strict)} of {of} lines", found.strict_per_hour))
    return [Row(name, "", "", *_sums(usd), "") for name, usd in sums]


def sentences(found: Estimate, sources: Sources) -> Iterator[str]:
    """What stands below the table."""
    if any(line.mark in ("derived", "elsewhere") for line in found.lines):
        yield "~: not its own price in this Region"
    if any(line.prepaid for line in found.lines):
        yield _upfront(found)
    for one in found.committed:
        rates = f"{money(one.figure.usd)} {sources.number(one.figure)} in place of {money(one.on_demand.usd)}"
        yield f"{one.group} with a commitment of one year, nothing upfront: {rates} USD per node and hour"
    if len(found.strict) < len(found.standing):
        yield (
            f"`ultracluster prices update {found.asked_as}` asks AWS for these prices and writes them "
            "into prices.csv beside the environment; add there by hand what AWS does not list"
        )
    uses = [line.item.what + (f", {_price(line, sources)}" if line.figure else "") for line in found.by_use]
    if uses:
        yield f"billed by use, in no sum: {'; '.join(uses)}"


def lists(sources: Sources) -> list[tuple[str, list[str]]]:
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


def _row(line: Line, sources: Sources) -> Row:
    notes = [sources.note(line.item.note)] if line.item.note else []
    marks = [*filter(None, [_mark(line)]), *notes]
    return Row(
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
    hour, day, month = ("?" if per_hour is None else money(per_hour * hours) for hours in (1, 24, 730))
    return hour, day, month


def _quantity(line: Line) -> str:
    item = line.item
    low, high = f"{item.quantity:,.12g}", f"{item.greatest:,.12g}"
    unit = item.unit
    if item.greatest != 1 and unit not in ("GiB", "MB/s", "IOPS"):
        unit += "es" if unit.endswith("s") else "s"
    return f"{low if low == high else f'{low} to {high}'} {unit}"


def _price(line: Line, sources: Sources) -> str:
    """A price with its reference: `0.045/h [2]`; one with ~, which is no exact one, in four digits."""
    figure = line.figure
    if figure is None:
        return "?"
    per = {"hour": "h", "day": "day", "month": "mo", "gb": "GB"}[figure.unit]
    other = line.mark in ("derived", "elsewhere")
    return f"{'~' * other}{figure.usd:,.{4 if other else 10}g}/{per} {sources.number(figure)}"
