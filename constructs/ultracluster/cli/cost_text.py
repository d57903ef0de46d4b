"""The estimate of `ultracluster cost` for a terminal, and in Markdown for a pull request."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from ultracluster.cli.cost_words import Sources, heading, lists, rows, sentences, totals
from ultracluster.plan.cost import Estimate

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
    title, headline, *others = heading(found)
    console.print(title)
    console.print(Text(headline, "bold"))
    for line in others:
        console.print(line)
    for fault in found.faults:
        console.print(Text(fault, "yellow"))
    console.print()
    console.print(_table(found, sources, width))
    console.print()
    for line in sentences(found, sources):
        console.print(line)
    for name, lines in lists(sources):
        _print_list(console, name, lines)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(found: Estimate, sources: Sources, width: int) -> Table:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    columns = _columns(width)
    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= WIDEST else 1, 0, 0))
    for name, heading_of in columns.items():
        table.add_column(
            heading_of,
            justify="right" if name in ("price", "hour", "day", "month") else "left",
            no_wrap=name in ("hour", "day", "month", "mark"),
            overflow="fold",
        )
    for area, lines in rows(found, sources).items():
        table.add_row(Text(area, "bold"))
        for row in lines:
            cells = [Text(getattr(row, name), "dim" if row.mark else "") for name in columns]
            table.add_row(Padding(cells[0], (0, 0, 0, 2)), *cells[1:])
    for row in totals(found):
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
    title, headline, *others = heading(found)
    out = [f"### Cost of {_cell(title)}", "", f"**{headline}**  ", *(f"{line}  " for line in others)]
    out += [f"{fault}  " for fault in found.faults]
    out += [
        "",
        "| | quantity | price | per hour | per day | per month | |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for lines in rows(found, sources).values():
        for row in lines:
            cells = (row.what, row.quantity, row.price, row.hour, row.day, row.month, row.mark)
            out.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for row in totals(found):
        out.append(f"| **{row.what}** | | | **{row.hour}** | **{row.day}** | **{row.month}** | |")
    out += ["", *(f"{line}  " for line in sentences(found, sources))]
    for name, lines in lists(sources):
        if lines:
            out += ["", f"<details><summary>{name}</summary>", "", *(f"- {one}" for one in lines)]
            out += ["", "</details>"]
    return "\n".join(out) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
