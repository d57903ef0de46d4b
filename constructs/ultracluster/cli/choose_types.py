"""Output of `ultracluster choose --model`: instance types beside each other for a model of this size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from ultracluster.cli.paper import Paper
from ultracluster.model.checkpoints import state_gib
from ultracluster.plan.training_model import size_text
from ultracluster.plan.type_choice import TypeRow

if TYPE_CHECKING:
    from ultracluster.cli.documents.figures import TypeChoice

ABOUT = (
    "nodes: those that hold the training state (mixed precision, Adam, without activations). PFLOPS: dense "
    "BF16 at the peak, of one node; training reaches a part of it. Prices: the lowest list price of EC2 for "
    "one node in any Region, USD per hour; HyperPod's is 15 to 40 % higher. Had by: kinds of capacity that "
    "an orchestrator takes; whether AWS has any now, `ultracluster capacity search` asks. Types without a "
    "published peak are left out."
)


def as_document(parameters: float, rows: Sequence[TypeRow]) -> TypeChoice:
    """The part of the JSON document."""
    return {
        "parameters": parameters,
        "state_gib": round(state_gib(parameters), 1),
        "rows": list(rows),
        "about": ABOUT,
    }


def as_text(parameters: float, rows: Sequence[TypeRow], width: int, *, colour: bool = False) -> str:
    """For a terminal of `width` columns."""
    paper = Paper(width, colour=colour, markup=False)
    console = paper.console
    state = f"{state_gib(parameters):,.0f} GiB of training state"
    console.print(f"{size_text(parameters)} parameters: {state}; the cheapest per operation first")
    if not rows:
        console.print("No instance type that is had so holds it: try another --capacity.")
        return paper.text()
    console.print()
    table = Table(box=None, pad_edge=False)
    figures = ("nodes", "memory", "PFLOPS", "on demand", "block", "USD/PFLOPS h", "EFA Gbit/s")
    for title in ("type", *figures, "had by"):
        table.add_column(title, justify="right" if title in figures else "left", overflow="fold")
    for row in rows:
        table.add_row(
            row.instance_type,
            str(row.nodes),
            f"{row.memory_gib:,.0f} GiB",
            f"{row.pflops:,.1f}",
            *(_usd(row, by) for by in ("on demand", "Capacity Block")),
            f"{row.usd_per_pflops:,.2f}" if row.usd_per_pflops else "?",
            f"{row.efa_gbps:,.0f}" if row.efa_gbps else "?",
            ", ".join(row.obtainable),
        )
    console.print(table)
    console.print(f"\n{ABOUT} Source and date of each price: --json.")
    console.print("\nNext: ultracluster choose --instance-type TYPE ranks the orchestrators for one of them")
    return paper.text()


def _usd(row: TypeRow, by: str) -> str:
    found = next((price for price in row.prices if price.by == by), None)
    return f"{found.usd:,.2f}" if found else "-"
