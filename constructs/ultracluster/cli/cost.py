"""`ultracluster cost`: what an environment costs, with the age of every price."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.catalog.prices import hyperpod_premium
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.operations.cost import Estimate, Line, billed, estimate, reason

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ultracluster.catalog.prices import Figure
    from ultracluster.config import Environment
    from ultracluster.operations.live_prices import LivePrices

WIDE, MIDDLE = 110, 76
"""Columns of a terminal from which every column fits, or all but price and day."""


def cost(
    environment: EnvironmentArgument,
    as_json: JsonOption = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Ask AWS for prices; they win over ours.")] = False,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, max=1096, help="Length of Capacity Blocks and training plans, in days.", show_default=False
        ),
    ] = None,
    accept_expired: Annotated[
        bool, typer.Option("--accept-expired", help="Sum prices past their date, too.")
    ] = False,
    profile: ProfileOption = None,
    today: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Estimate what an environment costs per hour, day and month: list prices, USD, without tax.

    A price is taken to hold for 90 days from its date; later it is shown, not summed. What has no known price
    is named. --live needs `pricing:GetProducts` and `ec2:DescribeSpotPriceHistory`. Exit code 2: bad input.
    """
    if as_json and markdown:
        refuse("--json and --markdown exclude each other")
    try:
        on = dt.date.fromisoformat(today) if today else dt.date.today()
    except ValueError:
        refuse(f"--today {today}: write a day as 2026-11-21")
    config = load_environment(environment)
    asked = _ask(config, profile, on) if live else None
    found = estimate(
        config,
        today=on,
        days=days,
        accept_expired=accept_expired,
        live=asked.figures if asked else None,
        faults=asked.faults if asked else (),
    )
    if as_json:
        sys.stdout.write(json.dumps(as_document(found), indent=2) + "\n")
    elif markdown:
        sys.stdout.write(as_markdown(found))
    else:
        terminal = sys.stdout.isatty()
        sys.stdout.write(as_text(found, _width(terminal), colour=terminal))


def _ask(config: Environment, profile: str | None, today: dt.date) -> LivePrices:
    from rich.console import Console
    from rich.status import Status

    from ultracluster.operations.aws import Account, AccountError
    from ultracluster.operations.live_prices import live_prices

    try:
        account = Account(region=config.region, profile=profile)
    except AccountError as error:
        refuse(str(error))
    keys = [item.key for item in billed(config) if item.key]
    with Status("asking AWS for prices", console=Console(stderr=True)) as status:
        return live_prices(
            account,
            keys,
            zone_id=config.network.zone_id,
            today=today,
            asking=lambda key: status.update(f"asking AWS for the price of {key}"),
        )


def _width(terminal: bool) -> int:
    if terminal:
        from rich.console import Console

        return Console().width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) else WIDE


# ------------------------------------------------------------------------------------ what is shown


@dataclass(slots=True)
class Sources:
    """Prices that are shown, numbered in the order in which they are."""

    lines: list[str] = field(default_factory=list[str])

    def number(self, figure: Figure) -> str:
        """The reference of a price: `[1]`."""
        text = f"{_age(figure)}: {figure.source}"
        if figure.region:
            text += f" ({figure.region})"
        if text not in self.lines:
            self.lines.append(text)
        return f"[{self.lines.index(text) + 1}]"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table, in words. Sums in parentheses are not in the total."""

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


def _rows(found: Estimate, sources: Sources) -> dict[str, list[Row]]:
    areas: dict[str, list[Row]] = {}
    for line in found.lines:
        areas.setdefault(line.item.area, []).append(_row(line, sources))
    return areas


def _row(line: Line, sources: Sources) -> Row:
    item = line.item
    bought = "" if item.purchase == "usage" else f" ({item.purchase})"
    hour, day, month = _sums(line)
    return Row(
        what=f"{item.what}{bought}",
        quantity="" if line.state == "by use" else _quantity(line),
        price=_price(line.figure, sources) if line.figure else "" if line.state == "by use" else "?",
        hour=hour,
        day=day,
        month=month,
        state="" if line.state in ("counted", "by use") else line.state,
    )


def _sums(line: Line) -> tuple[str, str, str]:
    if line.state == "by use":
        return "", "", ""
    if line.around:
        low, high = line.around
        return tuple(f"({money(low * hours)}-{money(high * hours)})" for hours in (1, 24, 730))  # pyright: ignore[reportReturnType]
    if line.per_hour is None:
        return "?", "?", "?"
    texts = [money(line.per_hour * hours) for hours in (1, 24, 730)]
    hour, day, month = texts if line.state == "counted" else [f"({text})" for text in texts]
    return hour, day, month


def _quantity(line: Line) -> str:
    item = line.item
    low, high = f"{item.quantity:,g}", f"{item.greatest:,g}"
    plural = "" if item.greatest == 1 or item.unit in ("GiB", "MB/s", "IOPS") else "s"
    return f"{low if low == high else f'{low} to {high}'} {item.unit}{plural}"


def _price(figure: Figure, sources: Sources) -> str:
    per = {"hour": "hour", "day": "day", "month": "month", "gb": "GB"}[figure.unit]
    return f"{figure.usd:,.10g} / {per} {sources.number(figure)}"


def _age(figure: Figure) -> str:
    if figure.live:
        return f"asked on {figure.date}"
    if figure.date is None:
        return "undated, indicative only"
    unverified = "" if figure.verified else ", unverified"
    return f"{figure.date}, {'expired' if figure.expired else 'holds until'} {figure.expires}{unverified}"


def _notes(found: Estimate, sources: Sources) -> list[str]:
    notes: list[str] = []
    for line in found.lines:
        for text in _notes_of(line, sources):
            notes.append(f"{line.item.what}: {text}")
    return notes


def _notes_of(line: Line, sources: Sources) -> Iterable[str]:
    if line.item.note:
        yield line.item.note
    if line.around and line.ec2:
        low, high = (round(100 * (factor - 1)) for factor in hyperpod_premium())
        more = f"EC2's list price {sources.number(line.ec2)} and {low}-{high} % more"
        yield f"HyperPod's price is not known; in parentheses {more}, for orientation"
    elif line.elsewhere and line.state != "by use":
        yield f"in {line.elsewhere.region or 'us-east-1'} {_price(line.elsewhere, sources)}"
    if line.premium is not None and line.ec2:
        yield f"{round(100 * line.premium)} % over EC2's list price {sources.number(line.ec2)}"


def _totals(found: Estimate) -> list[tuple[str, float | None]]:
    """Sums per hour by their names; None where nothing can be summed."""
    of = f"{len(found.counted)} of {sum(line.state != 'by use' for line in found.lines)} lines"
    rows = [(f"total, {of}", found.per_hour if found.counted else None)]
    if found.grows:
        rows.append(("at the most", found.greatest_per_hour if found.counted else None))
    return rows


def _warnings(found: Estimate) -> list[str]:
    """What is wrong with the sums, loudest first."""
    lines: list[str] = []
    stale = [line for line in found.lines if line.state == "expired"]
    if stale:
        lines.append(
            f"STALE: {len(stale)} price{'s are' if len(stale) > 1 else ' is'} past the 90 days that one is "
            "trusted, and not summed; ask AWS with --live, or accept with --accept-expired"
        )
    if found.expired_accepted:
        what = "; ".join(line.item.what for line in found.expired_accepted)
        lines.append(f"STALE: summed although expired (--accept-expired): {what}")
    if found.unverified:
        what = "; ".join(line.item.what for line in found.unverified)
        lines.append(f"unverified, a single source: {what}")
    return lines


def _legend(found: Estimate) -> str:
    beside = (line for line in found.lines if line.state not in ("counted", "by use"))
    return "in parentheses: not in the total" if any(one.figure or one.around for one in beside) else ""


def _upfront(found: Estimate) -> str:
    """What is paid upfront, in words; empty where nothing is."""
    prepaid = [line for line in found.lines if line.item.purchase in ("capacity-block", "training-plan")]
    if not prepaid:
        return ""
    if found.upfront is not None:
        return f"upfront for {found.days} days, beside the total: {money(found.upfront)}"
    if found.days is None:
        return "upfront, beside the total: the whole fee of a block or plan; give its length with --days"
    return f"upfront for {found.days} days, beside the total: unknown, a price is missing or does not hold"


def _idle(found: Estimate) -> str:
    idle = found.idle
    if idle is None:
        return ""
    if idle.node_per_hour is None:
        return f"one failed {idle.instance_type} of {idle.group}: unknown, it has no price"
    holds = {"counted": "", "upfront": ", paid already"}.get(idle.state, f", {idle.state} price")
    text = (
        f"one failed {idle.instance_type} of {idle.group}: {money(idle.node_per_hour)} per hour, "
        f"{money(idle.node_per_hour * 24)} per day{holds}"
    )
    waits = f"; a synchronous job on all {idle.job_nodes} nodes that waits for it: "
    if idle.job_per_hour is None:
        return f"{text}{waits}unknown, a price is missing or does not hold"
    return f"{text}{waits}{money(idle.job_per_hour)} per hour, {money(idle.job_per_hour * 24)} per day"


def _title(found: Estimate) -> str:
    return f"{found.environment}: {found.orchestrator} in {found.region}, USD at list prices on {found.today}"


def _lists(found: Estimate, sources: Sources) -> list[tuple[str, list[str]]]:
    """What stands below the table."""
    notes = _notes(found, sources)
    return [
        ("left out of the total", _by_reason(line for line in found.lines if line.item.quantity)),
        (
            "left out of the total at the most, too",
            _by_reason(line for line in found.lines if not line.item.quantity),
        ),
        ("notes", notes),
        ("prices", [f"[{number}] {text}" for number, text in enumerate(sources.lines, start=1)]),
    ]


def _by_reason(lines: Iterable[Line]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.state != "by use" and (why := reason(line)):
            reasons.setdefault(why, []).append(line.item.what)
    return [f"{why}: {'; '.join(whats)}" for why, whats in reasons.items()]


# ------------------------------------------------------------------------------------ text


def as_text(found: Estimate, width: int, *, colour: bool = False) -> str:
    """The estimate for a terminal of `width` columns; no figure is ever cut."""
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, force_terminal=colour)
    sources = Sources()
    console.print(Text(_title(found), "bold"))
    for fault in found.faults:
        console.print(Text(fault, "yellow"))
    console.print()
    console.print(_table(found, sources, width))
    console.print()
    for line in _warnings(found):
        console.print(Text(line, "bold red" if line.startswith("STALE") else "yellow"))
    for line in (_legend(found), _upfront(found), _idle(found)):
        if line:
            console.print(line)
    for title, lines in _lists(found, sources):
        _print_list(console, title, lines)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(found: Estimate, sources: Sources, width: int) -> Table:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    columns = _columns(width)
    table = Table(box=None, pad_edge=False)
    for name, title in columns.items():
        numbers = name in ("price", "hour", "day", "month")
        table.add_column(
            title,
            justify="right" if numbers else "left",
            no_wrap=name in ("hour", "day", "month", "state"),
            overflow="fold",
        )
    for area, rows in _rows(found, sources).items():
        table.add_row(Text(area, "bold"))
        for row in rows:
            style = "" if row.state in ("", "upfront") else "dim"
            cells = [Text(getattr(row, name), style) for name in columns]
            table.add_row(Padding(cells[0], (0, 0, 0, 2)), *cells[1:])
    for title, usd in _totals(found):
        sums = {"what": title, "quantity": "", "price": "", "state": "" if found.complete else "incomplete"}
        for name, hours in (("hour", 1), ("day", 24), ("month", 730)):
            sums[name] = "?" if usd is None else money(usd * hours)
        table.add_row(*(Text(sums[name], "bold") for name in columns))
    return table


def _columns(width: int) -> dict[str, str]:
    if width >= WIDE:
        return {
            "what": "", "quantity": "quantity", "price": "price", "hour": "per hour", "day": "per day",
            "month": "per month", "state": "",
        }  # fmt: skip
    if width >= MIDDLE:
        return {
            "what": "", "quantity": "quantity", "hour": "per hour", "month": "per month", "state": "",
        }  # fmt: skip
    return {"what": "", "month": "per month"}


def _print_list(console: Console, title: str, lines: list[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if not lines:
        return
    console.print()
    console.print(Text(title, "bold"))
    for line in lines:
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))


# ------------------------------------------------------------------------------------ Markdown and JSON


def as_markdown(found: Estimate) -> str:
    """The estimate as a comment for a pull request."""
    sources = Sources()
    out = [f"### Cost of {_cell(_title(found))}", ""]
    out += [f"{fault}  " for fault in found.faults]
    out += [
        "| | quantity | price | per hour | per day | per month | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for rows in _rows(found, sources).values():
        for row in rows:
            cells = (row.what, row.quantity, row.price, row.hour, row.day, row.month, row.state)
            out.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for title, usd in _totals(found):
        sums = ["?" if usd is None else money(usd * hours) for hours in (1, 24, 730)]
        state = "" if found.complete else "incomplete"
        out.append(f"| **{title}** | | | " + " | ".join(f"**{one}**" for one in sums) + f" | {state} |")
    out.append("")
    out += [f"**{line}**  " for line in _warnings(found)]
    out += [f"{line}  " for line in (_legend(found), _upfront(found), _idle(found)) if line]
    for title, lines in _lists(found, sources):
        if lines:
            out += ["", f"<details><summary>{title}</summary>", "", *(f"- {one}" for one in lines)]
            out += ["", "</details>"]
    return "\n".join(out) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def as_document(found: Estimate) -> dict[str, Any]:
    """The estimate for machines. Sums are USD; `null` is unknown."""
    idle = found.idle
    return {
        "environment": found.environment,
        "orchestrator": found.orchestrator,
        "region": found.region,
        "date": str(found.today),
        "currency": "USD",
        "hours_per_month": 730,
        "days": found.days,
        "accept_expired": found.accept_expired,
        "complete": found.complete,
        "total": _periods(found.per_hour if found.counted else None),
        "at_most": _periods(found.greatest_per_hour if found.counted else None),
        "upfront": _rounded(found.upfront),
        "left_out": list(found.left_out),
        "at_most_left_out": list(found.greatest_left_out),
        "by_use": list(found.by_use),
        "summed_although_expired": [line.item.what for line in found.expired_accepted],
        "unverified": [line.item.what for line in found.unverified],
        "faults": list(found.faults),
        "lines": [_line(line) for line in found.lines],
        "idle": {
            "group": idle.group,
            "instance_type": idle.instance_type,
            "state": idle.state,
            "node": _periods(idle.node_per_hour),
            "job_groups": list(idle.job_groups),
            "job_nodes": idle.job_nodes,
            "job": _periods(idle.job_per_hour),
        }
        if idle
        else None,
    }


def _line(line: Line) -> dict[str, Any]:
    item = line.item
    return {
        "area": item.area,
        "what": item.what,
        "purchase": item.purchase,
        "quantity": item.quantity,
        "at_most": item.greatest,
        "unit": item.unit,
        "state": line.state,
        "reason": reason(line) or None,
        "note": item.note or None,
        "price": _figure(line.figure),
        "price_elsewhere": _figure(line.elsewhere),
        "ec2_price": _figure(line.ec2),
        "premium_over_ec2": _rounded(line.premium),
        "per_hour_around": [_rounded(one) for one in line.around] if line.around else None,
        "cost": _periods(line.per_hour),
        "fee": _rounded(line.fee),
    }


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {
        "usd": figure.usd,
        "per": figure.unit,
        "region": figure.region or None,
        "source": figure.source,
        "date": str(figure.date) if figure.date else None,
        "expires": str(figure.expires) if figure.expires else None,
        "expired": figure.expired,
        "verified": figure.verified,
        "live": figure.live,
    }


def _periods(per_hour: float | None) -> dict[str, float | None] | None:
    if per_hour is None:
        return None
    return {"hour": _rounded(per_hour), "day": _rounded(per_hour * 24), "month": _rounded(per_hour * 730)}


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
