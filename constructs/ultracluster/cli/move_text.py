"""The plan of a move for people: text, Markdown, and JSON types."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from ultracluster.cli.report import markdown
from ultracluster.config.findings import dotted
from ultracluster.config.remedy import DROP, flow
from ultracluster.moving import Edit, Move, hourly_usd, hours_text
from ultracluster.plan.cost_summary import rough
from ultracluster.plan.draft_check import UNSOLD

if TYPE_CHECKING:
    from ultracluster.cli.documents.moves import MovePlan


def unsold(move: Move) -> list[str]:
    """Why the target may not have what is asked for, in words."""
    held = tuple(("node_groups", name) for name in move.taken)  # AWS has said where it is
    found = [
        f"{one.code} {one.dotted}: {one.message}"
        for one in move.findings
        if one.code in UNSOLD and one.path[:2] not in held
    ]
    return [*move.problems, *found]


def as_text(move: Move, width: int) -> str:
    """The plan on a terminal of so many columns."""

    def lines() -> Iterator[str]:
        for title, entries in _sections(move):
            yield from textwrap.wrap(
                f"{title}:" if entries else title, width, subsequent_indent="  ", break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
            for head, rest in entries:
                yield from textwrap.wrap(
                    head, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False,
                    break_on_hyphens=False,
                )  # fmt: skip
                for one in rest:
                    if one[0] == "$ ":  # to be copied
                        yield f"      $ {one[1]}"
                        continue
                    lead = f"      {one[0]}"
                    yield from textwrap.wrap(
                        one[1], width, initial_indent=lead, subsequent_indent=" " * 8,
                        break_long_words=False, break_on_hyphens=False,
                    )  # fmt: skip
            yield ""

    return "\n".join(lines()).rstrip() + "\n"


def as_markdown(move: Move) -> str:
    """The plan for a pull request or a ticket."""

    def lines() -> Iterator[str]:
        first = True
        for title, entries in _sections(move):
            yield f"{'#' if first else '##'} {markdown(title)}"
            first = False
            yield ""
            number = "1." if title.startswith("Order") else "-"
            for head, rest in entries:
                yield f"{number} {markdown(head.partition('. ')[2] if number == '1.' else head)}"
                for lead, one in rest:
                    yield f"   - {f'`{one}`' if lead == '$ ' else markdown(lead + one)}"
            if entries:
                yield ""

    return "\n".join(lines()).rstrip() + "\n"


Entry = tuple[str, list[tuple[str, str]]]


def _sections(move: Move) -> Iterator[tuple[str, list[Entry]]]:
    first, second = move.both.first, move.both.second
    where = f"{first.environment.network.zone_id} to {move.target.zone_id}"
    if move.both.away:
        where += f" ({first.region} to {second.region})"
    yield f"{first.name} from {where}, as {second.name}", []
    if move.target.reason:
        yield "The zone", [(move.target.reason, [])]
    if why := unsold(move):
        yield "The target may not have it", [(one, []) for one in why]
    if move.wrong:
        yield (
            "The second environment would be refused",
            [
                (
                    f"{one.code} {one.dotted}: {one.message}",
                    [("instead: ", one.instead)] if one.instead else [],
                )
                for one in move.wrong
            ],
        )
    for becomes, group in groupby(move.parts, lambda part: part.becomes):
        yield (
            becomes.capitalize(),
            [(part.what, [("", part.how), *_least(part.least_hours)]) for part in group],
        )
    yield "Cost", [(one, []) for one in _cost(move)]
    if move.blanks:
        yield f"To fill in, in {move.file}", [_blank(one) for one in move.blanks]
    yield (
        "Order; each step is done before the next",
        [
            (
                f"{number}. {step.what}{_marks(step.gate, step.downtime, step.deletes)}",
                [
                    *([("", f"{step.why}")] if step.why else []),
                    *(("$ ", one) for one in step.commands),
                    ("back: ", step.back),
                ],
            )
            for number, step in enumerate(move.steps, 1)
        ],
    )


def _marks(gate: bool, downtime: bool, deletes: bool) -> str:
    named = {"has to pass": gate, "no job runs": downtime, "deletes": deletes}
    found = [name for name, holds in named.items() if holds]
    return f" [{', '.join(found)}]" if found else ""


def _least(hours: float | None) -> list[tuple[str, str]]:
    return (
        [("", f"when full: {hours_text(hours)} at least, at the slower file system's speed")] if hours else []
    )


def _blank(one: Edit) -> Entry:
    value = "removed" if one.value is DROP else flow(one.value)
    return f"{dotted(one.path)}: {value}", [("", f"stands in for {one.blank}")]


def _cost(move: Move) -> Iterator[str]:
    for cluster, found in zip((move.both.first, move.both.second), move.cost, strict=True):
        usd = hourly_usd(found)
        hourly = "unknown by the hour" if usd is None else f"about {rough(usd)} USD/h by the hour (estimate)"
        paid = [line for line in found.standing if line.prepaid]
        fees = [line.per_hour for line in paid if line.per_hour is not None]
        about = f", about {rough(sum(fees) * 24)} USD for each day (estimate)" if fees else ""
        names = ", ".join(line.item.group for line in paid)
        upfront = f"; paid upfront: {names}{about}" if paid else ""
        yield f"{cluster.name}: {hourly}{upfront}"
    days = f"{move.days} day{'s' * (move.days != 1)}"
    together = move.usd_together
    sum_ = "unknown" if together is None else f"about {rough(together)} USD"
    yield f"both for {days}: {sum_}, and what is paid upfront; `ultracluster cost` itemises each"
    if move.both.away:
        yield f"copies between Regions are billed by the GB, in {move.both.first.region} (not counted)"
    yield "AWS DataSync bills by the GB that it copies (not counted)"


def as_dict(move: Move) -> MovePlan:
    """The plan as JSON types."""
    first, second = map(hourly_usd, move.cost)
    return {
        "environment": move.both.first.name,
        "second": move.both.second.name,
        "file": str(move.file),
        "region": move.target.region,
        "zone_id": move.target.zone_id,
        "why": move.target.reason or None,
        "problems": unsold(move),
        "findings": list(move.findings),
        "parts": list(move.parts),
        "steps": list(move.steps),
        "edits": [
            {
                "path": dotted(one.path),
                "value": None if one.value is DROP else one.value,
                "stands_in_for": one.blank or None,
            }
            for one in move.edits
        ],
        "cost": {
            "first_per_hour": _round(first), "second_per_hour": _round(second), "days": move.days,
            "together": _round(move.usd_together),
        },
        "least_hours": _round(move.least_hours),
        "text": move.text,
    }  # fmt: skip


def _round(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 4)
