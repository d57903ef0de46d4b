"""The lines of `ultracluster cost` in words, with their prices and notes numbered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ultracluster.catalog.prices import hyperpod_premium
from ultracluster.operations.cost import Estimate, Line

if TYPE_CHECKING:
    from ultracluster.catalog.prices import Figure


@dataclass(slots=True)
class Sources:
    """Prices and notes that are shown, numbered in the order in which they are."""

    lines: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def number(self, figure: Figure) -> str:
        """The reference of a price: `[1]`."""
        text = f"{_age(figure)}: {figure.source}"
        if figure.region:
            text += f" ({figure.region})"
        if text not in self.lines:
            self.lines.append(text)
        return f"[{self.lines.index(text) + 1}]"

    def note(self, text: str) -> str:
        """The reference of a note: `(1)`."""
        if text not in self.notes:
            self.notes.append(text)
        return f"({self.notes.index(text) + 1})"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, in words. Sums in parentheses are not in the total; those with ~ are not from
    the thing's own price."""

    what: str
    quantity: str
    price: str
    hour: str
    day: str
    month: str
    state: str


def money(usd: float) -> str:
    """USD with two digits after the point, or with four for less than ten cents."""
    return f"{usd:,.2f}" if usd >= 0.1 or usd == 0 else f"{usd:.4f}"


def whole(usd: float) -> str:
    """USD, from a thousand on without cents."""
    return f"{usd:,.0f}" if usd >= 1000 else money(usd)


def rows(found: Estimate, sources: Sources) -> dict[str, list[Row]]:
    """The lines of the table by area; without what is billed by use."""
    areas: dict[str, list[Row]] = {}
    for line in found.lines:
        if line.state != "by use":
            areas.setdefault(line.item.area, []).append(_row(line, sources))
    return areas


def by_use(found: Estimate, sources: Sources) -> list[str]:
    """What is billed by use, with its price where one is known."""
    lines = [line for line in found.lines if line.state == "by use"]
    return [
        f"{line.item.what}, {price(line.about, sources)}" if line.about else line.item.what for line in lines
    ]


def _row(line: Line, sources: Sources) -> Row:
    hour, day, month = _sums(line)
    shown = price(line.about, sources, "" if line.basis == "own" else "~") if line.about else "?"
    notes = [sources.note(text) for text in _notes(line, sources)]
    return Row(
        what=line.item.what,
        quantity=_quantity(line),
        price=shown,
        hour=hour,
        day=day,
        month=month,
        state=" ".join([*filter(None, [_state(line)]), *notes]),
    )


def _state(line: Line) -> str:
    if line.basis == "elsewhere" and line.elsewhere:
        return line.elsewhere.region
    return {"counted": "", "unknown": line.basis if line.basis == "derived" else "unknown"}.get(
        line.state, line.state
    )


def _sums(line: Line) -> tuple[str, str, str]:
    if line.about_per_hour is None:
        return "?", "?", "?"
    texts = [whole(line.about_per_hour * hours) for hours in (1, 24, 730)]
    if line.state != "counted":
        texts = [f"({text})" if line.basis == "own" else f"(~{text})" for text in texts]
    hour, day, month = texts
    return hour, day, month


def _quantity(line: Line) -> str:
    item = line.item
    low, high = f"{item.quantity:,g}", f"{item.greatest:,g}"
    plural = "" if item.greatest == 1 or item.unit in ("GiB", "MB/s", "IOPS") else "s"
    return f"{low if low == high else f'{low} to {high}'} {item.unit}{plural}"


def price(figure: Figure, sources: Sources, sign: str = "") -> str:
    """A price with its reference: `0.045/h [2]`; one with a sign, which is no exact one, in four digits."""
    per = {"hour": "h", "day": "day", "month": "mo", "gb": "GB"}[figure.unit]
    digits = 4 if sign else 10
    return f"{sign}{figure.usd:,.{digits}g}/{per} {sources.number(figure)}"


def _age(figure: Figure) -> str:
    if figure.live:
        return f"asked on {figure.date}"
    if figure.date is None:
        return "undated, indicative only"
    unverified = "" if figure.verified else ", unverified"
    return f"{figure.date}, {'expired' if figure.expired else 'holds until'} {figure.expires}{unverified}"


def _notes(line: Line, sources: Sources) -> Iterable[str]:
    item = line.item
    if item.note:
        yield item.note if item.purchase in ("usage", "on-demand") else f"{item.purchase}: {item.note}"
    if line.around:
        low, high = (round(100 * (factor - 1)) for factor in hyperpod_premium())
        yield (
            "HyperPod's price is not known: the middle of "
            f"{low}-{high} % over EC2's list price, for orientation"
        )
    elif line.basis == "derived":
        yield "follows from another price, for orientation"
    if line.premium is not None and line.ec2:
        yield f"{round(100 * line.premium)} % over EC2's list price {sources.number(line.ec2)}"
