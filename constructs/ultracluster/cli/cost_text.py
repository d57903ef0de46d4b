"""The estimate of `ultracluster cost` for a terminal, and in Markdown for a pull request."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from ultracluster.cli.cost_rows import Sources, rows, whole
from ultracluster.cli.cost_summary import lists, orientation, sentences, title, totals, warnings
from ultracluster.operations.cost import Estimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE, MIDDLE = 95, 76
"""Columns from which every column but the day's fits, or all but price and day."""
WIDEST = 118
"""Columns from which there is room for the day, too."""


def as_text(found: Estimate, width: int, *, colour: bool = False) -> str:
    """The estimate for a terminal of `width` columns; no figure is ever cut."""
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, force_terminal=colour)
    sources = Sources()
    console.print(Text(title(found), "bold"))
    for fault in found.faults:
        console.print(Text(fault, "yellow"))
    console.print()
    console.print(_table(found, sources, width))
    if about := orientation(found):
        console.print(about)
    console.print()
    for line in warnings(found):
        console.print(Text(line, "bold red" if line.startswith("STALE") else "yellow"))
    for line in sentences(found, sources):
        console.print(line)
    for name, lines in lists(found, sources):
        _print_list(console, name, lines)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(found: Estimate, sources: Sources, width: int) -> Table:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    columns = _columns(width)
    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= WIDEST else 1, 0, 0))
    for name, heading in columns.items():
        numbers = name in ("price", "hour", "day", "month")
        table.add_column(
            heading,
            justify="right" if numbers else "left",
            no_wrap=name in ("hour", "day", "month", "state"),
            overflow="fold",
        )
    for area, lines in rows(found, sources).items():
        table.add_row(Text(area, "bold"))
        for row in lines:
            style = "" if row.state in ("", "upfront") else "dim"
            cells = [Text(getattr(row, name), style) for name in columns]
            table.add_row(Padding(cells[0], (0, 0, 0, 2)), *cells[1:])
    for heading, usd in totals(found):
        sums = {"what": heading, "quantity": "", "price": "", "state": "" if found.complete else "incomplete"}
        for name, hours in (("hour", 1), ("day", 24), ("month", 730)):
            sums[name] = "?" if usd is None else whole(usd * hours)
        table.add_row(*(Text(sums[name], "bold") for name in columns))
    return table


def _columns(width: int) -> dict[str, str]:
    names = {"what": "", "quantity": "quantity", "price": "price", "hour": "per hour"}
    names |= {"day": "per day", "month": "per month", "state": ""}
    if width >= WIDEST:
        return names
    if width >= WIDE:
        dropped = {"day"}
    elif width >= MIDDLE:
        dropped = {"day", "price"}
    else:
        return {"what": "", "month": "per month"}
    return {name: heading for name, heading in names.items() if name not in dropped}


def _print_list(console: Console, name: str, lines: list[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if not lines:
        return
    console.print()
    console.print(Text(name, "bold"))
    for line in lines:
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))


def as_markdown(found: Estimate) -> str:
    """The estimate as a comment for a pull request."""
    sources = Sources()
    out = [f"### Cost of {_cell(title(found))}", ""]
    out += [f"{fault}  " for fault in found.faults]
    out += [
        "| | quantity | price | per hour | per day | per month | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for lines in rows(found, sources).values():
        for row in lines:
            cells = (row.what, row.quantity, row.price, row.hour, row.day, row.month, row.state)
            out.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for heading, usd in totals(found):
        sums = ["?" if usd is None else whole(usd * hours) for hours in (1, 24, 730)]
        state = "" if found.complete else "incomplete"
        out.append(f"| **{heading}** | | | " + " | ".join(f"**{one}**" for one in sums) + f" | {state} |")
    out.append("")
    if about := orientation(found):
        out.append(f"{about}  ")
    out += [f"**{line}**  " for line in warnings(found)]
    out += [f"{line}  " for line in sentences(found, sources)]
    for name, lines in lists(found, sources):
        if lines:
            out += ["", f"<details><summary>{name}</summary>", "", *(f"- {one}" for one in lines)]
            out += ["", "</details>"]
    return "\n".join(out) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
