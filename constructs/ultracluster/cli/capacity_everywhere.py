"""`ultracluster capacity search --everywhere`: all Regions by price, and a draft for an offer."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import typer

from ultracluster.account.aws import AccountError
from ultracluster.capacity.everywhere import Regions, everywhere
from ultracluster.capacity.search import wishes_for, wishes_of
from ultracluster.catalog import nearest_regions, region
from ultracluster.catalog.accelerators import nearest_accelerators, read_accelerators, types_with
from ultracluster.cli.capacity_draft import write_draft
from ultracluster.cli.capacity_options import Asked
from ultracluster.cli.environments import check_new_file
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import LateBar
from ultracluster.cli.report import refuse, text_table
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve
from ultracluster.model.capacity import most_instances
from ultracluster.plan.capacity_needs import Home, Place, needs_of
from ultracluster.plan.draft import ORCHESTRATORS
from ultracluster.plan.draft_place import capacities

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.capacity.everywhere import Everywhere, Row
    from ultracluster.capacity.search import Wish
    from ultracluster.cli.documents.cluster import CapacitySearch, EverywhereOffer, HeldCapacity
    from ultracluster.config.orchestrator import OrchestratorKind

SHOWN = 20
"""Rows of the table; --json has all."""


def search_everywhere(asked: Asked, account: Account, as_json: bool) -> NoReturn:
    """Ask, print, and write a draft where one is wanted; ends the command with its exit code."""
    wishes = _wishes(asked)
    try:
        places = Regions.of(account, _named(asked.regions))
    except AccountError as error:
        refuse(str(error))
    with LateBar("asking every Region") as bar:
        found = everywhere(account, wishes, places, progress=bar)
    needs = [_needs(row, asked) for row in found.rows]
    if not as_json:
        typer.echo(as_text(found, wishes, needs, asked))
    if asked.write is not None:
        _draft(asked, found.rows, asked.write)
    if as_json:  # last: a refusal is a document of its own
        write_json("capacity", as_dict(found, needs))
    raise typer.Exit(0 if any(not row.short for row in found.rows) else 1)


def check_options(asked: Asked) -> None:
    """What can be refused before an account is opened."""
    if asked.orchestrator is not None and asked.orchestrator not in ORCHESTRATORS:
        refuse(f"--orchestrator {asked.orchestrator}: write one of {', '.join(ORCHESTRATORS)}")
    if asked.environment is not None:
        name = asked.environment.asked_as
        if asked.orchestrator is not None:
            refuse(f"--orchestrator is what {name} says: {asked.environment.orchestrator.kind}")
        if asked.write is not None:
            refuse(
                f"{name} is there already: `ultracluster move {name} --to ZONE --write "
                f"{shlex.quote(str(asked.write))}` writes it for another place"
            )
    if asked.offer is not None and asked.write is None:
        refuse("--offer says for which offer --write drafts an environment: pass --write FILE, too")
    if asked.write is not None:
        check_new_file(asked.write)
    _named(asked.regions)
    _wishes(asked)


def _named(regions: Sequence[str]) -> list[str]:
    names = [name.strip() for text in regions for name in text.split(",") if name.strip()]
    for name in names:
        if region(name) is None:
            near = ", ".join(nearest_regions(name)) or "us-east-2"
            refuse(f"--regions {name}: there is no such Region; did you mean {near}")
    return list(dict.fromkeys(names))


def _wishes(asked: Asked) -> list[Wish]:
    """What is looked for in each Region; in any zone."""
    if asked.environment is not None:
        own = wishes_of(resolve(asked.environment), days=asked.days, after=asked.after)
        if not own:
            refuse("no compute group of this environment can be bought as a plan or block")
        return [replace(wish, zone_id="") for wish in own]
    return _for_types(asked)


def _for_types(asked: Asked) -> list[Wish]:
    kind = cast("OrchestratorKind | None", asked.orchestrator)
    found: list[Wish] = []
    large: list[str] = []
    for name, nodes in _types(asked):
        for wish in wishes_for(name, nodes, days=asked.days, after=asked.after):
            if kind is not None and wish.kind not in capacities(kind, name):
                continue
            if wish.wanted > most_instances("all_blocks"):
                large.append(f"{wish.wanted:,} x {name}")
                continue
            found.append(wish)
    if not found:
        what = asked.accelerators or asked.instance_type
        most = most_instances("all_blocks")
        many = f"; {', '.join(dict.fromkeys(large))} are more than the {most} that AWS sells" if large else ""
        under = f" that {kind} takes" if kind else ""
        refuse(f"AWS sells neither training plans nor Capacity Blocks{under} for {what}{many}")
    return found


def _types(asked: Asked) -> list[tuple[str, int]]:
    """Each type that has what is wanted, with the number of nodes."""
    if asked.instance_type:
        return [(asked.instance_type, asked.count)]
    wanted = read_accelerators(asked.accelerators)
    if wanted is None or wanted.count < 1:
        refuse(f"--accelerators {asked.accelerators}: write a number and a name: 64xH100, 512xB200")
    types = types_with(wanted.name)
    if not types:
        near = " or ".join(nearest_accelerators(wanted.name))
        refuse(f"--accelerators {asked.accelerators}: no instance type has them. Did you mean {near}?")
    return [
        (one.name, -(-wanted.count // one.accelerator.count))
        for one in types
        if one.accelerator and one.accelerator.count
    ]


def _needs(row: Row, asked: Asked) -> tuple[str, ...]:
    place = Place(
        region=row.region,
        zones=row.zones,
        instance_type=row.wish.instance_type,
        hyperpod=row.kind == "training-plan",
        times=row.wish.times,
        parts=max(1, len(row.segments)),
    )
    return needs_of(place, _orchestrator(asked), _home(asked))


def _orchestrator(asked: Asked) -> OrchestratorKind | None:
    if asked.environment is not None:
        return asked.environment.orchestrator.kind
    return cast("OrchestratorKind | None", asked.orchestrator)


def _home(asked: Asked) -> Home | None:
    own = asked.environment
    if own is None:
        return None
    return Home(asked_as=own.asked_as, region=own.region, zone_id=own.network.zone_id)


def as_text(found: Everywhere, wishes: Sequence[Wish], needs: Sequence[tuple[str, ...]], asked: Asked) -> str:
    """The search for a person: what costs least first."""
    return "\n".join(map(one_line, _lines(found, wishes, needs, asked)))


def _lines(
    found: Everywhere, wishes: Sequence[Wish], needs: Sequence[tuple[str, ...]], asked: Asked
) -> Iterator[str]:
    yield from wish_lines(wishes)
    yield ""
    rows = found.rows[:SHOWN]
    if rows:
        yield from text_table(_HEADS, [_cells(number, row) for number, row in enumerate(rows, 1)]).split("\n")
        if len(found.rows) > SHOWN:
            yield f"{len(found.rows) - SHOWN} more, which cost more: --json has them"
    else:
        regions = f"{len(found.asked)} Region{'s' * (len(found.asked) != 1)}"
        yield f"Nothing is offered in {regions}: try fewer accelerators, fewer days or a later start."
    yield from _also(rows, needs)
    yield from _unasked(found)
    if any(not row.own for row in rows):
        yield ""
        yield "Fees are paid upfront and cannot be given back. Nothing was bought."
    if rows and asked.write is None and asked.environment is None:
        first = rows[0]
        yield f"An environment for one of them: add --write FILE.yaml --offer {first.id}"


_HEADS = (
    "#", "in all", "accelerator-hour", "nodes", "capacity", "zone", "start (UTC)", "end (UTC)", "id",
)  # fmt: skip


def _cells(number: int, row: Row) -> tuple[str, ...]:
    sum_, each = row.in_all, row.per_accelerator_hour
    return (
        str(number),
        "paid" if sum_ is None else f"{sum_:,.2f} {row.currency}",
        "" if each is None else f"{each:.3f}",
        f"{row.count} x {row.wish.instance_type}{' (short)' if row.short else ''}",
        f"{row.kind}{', yours' if row.own else ''}{f' for {row.wish.group}' if row.wish.group else ''}",
        ", ".join(row.zones),
        f"{row.start:%Y-%m-%d %H:%M}" if row.start else "now",
        f"{row.end:%Y-%m-%d %H:%M}" if row.end else "-",
        row.id,
    )


def wish_lines(wishes: Sequence[Wish]) -> Iterator[str]:
    """What was looked for, and where AWS sells something else than what was wanted."""
    for one in wishes:
        yield (
            f"{one.count} x {one.instance_type}, {one.hours / 24:g} days from {one.after:%Y-%m-%d}: "
            f"{one.kind}{f' for {one.group}' if one.group else ''}"
        )
        if one.times > 1:
            yield f"  one holds {one.count} at most, and {one.wanted} are wanted: {one.times} of it"
        elif one.needed:
            yield f"  {one.wanted} are wanted, and AWS sells {one.count} at once, not fewer"
        if one.needed_hours > one.hours:
            yield f"  {one.needed_hours / 24:g} days are wanted, and AWS sells {one.hours / 24:g} at most"
        elif one.needed_hours:
            yield f"  {one.needed_hours / 24:g} days are wanted: after two weeks blocks have whole weeks"


def _also(rows: Sequence[Row], needs: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """What each would need besides, with the numbers of those that need the same."""
    by_need: dict[str, list[int]] = {}
    for number, own in enumerate(needs[: len(rows)], 1):
        for one in own:
            by_need.setdefault(one, []).append(number)
    if by_need:
        yield ""
        yield "Would need besides:"
    for one, numbers in by_need.items():
        which = "all" if len(numbers) == len(rows) > 1 else ", ".join(map(str, numbers))
        yield from textwrap.wrap(
            f"{which}: {one_line(one)}", 100, initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def _unasked(found: Everywhere) -> Iterator[str]:
    """Those that could not be asked, by reason."""
    by_why: dict[tuple[str, str], list[str]] = {}
    for one in found.unasked:
        why = one_line(one.why).replace(one.region, "(Region)")
        by_why.setdefault((one.what, why), []).append(one.region)
    if by_why:
        yield ""
        yield "Could not be asked:"
    for (what, why), names in by_why.items():
        yield from textwrap.wrap(
            f"{f'{what}, ' if what else ''}{', '.join(names)}: {why}", 100, initial_indent="  ",
            subsequent_indent="    ", break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def as_dict(found: Everywhere, needs: Sequence[tuple[str, ...]]) -> CapacitySearch:
    """The search as JSON types."""
    both = list(zip(found.rows, needs, strict=True))
    return {
        "offers": [_offer(row, also) for row, also in both if not row.own],
        "failures": [],
        "held": [_held(row, also) for row, also in both if row.own],
        "regions": found.asked,
        "unasked": [{"region": one.region, "what": one.what, "why": one.why} for one in found.unasked],
    }


def _offer(row: Row, needs: tuple[str, ...]) -> EverywhereOffer:
    hours, price = row.hours or 0.0, row.price or 0.0
    each = row.per_accelerator_hour
    return {
        "kind": row.kind,
        "group": row.wish.group or None,
        "instance_type": row.wish.instance_type,
        "count": row.count,
        "id": row.id,
        "zones": list(row.zones),
        "fits_zone": None,
        "start": row.start.isoformat() if row.start else "",
        "end": row.end.isoformat() if row.end else None,
        "hours": hours,
        "segments": [
            {
                "zone": one.zone, "start": one.start.isoformat(),
                "end": one.end.isoformat() if one.end else None, "count": one.count,
            }
            for one in row.segments
        ],
        "upfront_fee": price,
        "per_instance_hour": round(price / hours / row.count, 4) if hours else 0.0,
        "currency": row.currency,
        "region": row.region,
        "wanted": row.wish.wanted,
        "times": row.wish.times,
        "accelerators": row.accelerators,
        "fee_in_all": row.in_all or 0.0,
        "per_accelerator_hour": None if each is None else round(each, 4),
        "short": row.short,
        "needs": list(needs),
    }  # fmt: skip


def _held(row: Row, needs: tuple[str, ...]) -> HeldCapacity:
    return {
        "kind": row.kind,
        "group": row.wish.group or None,
        "instance_type": row.wish.instance_type,
        "count": row.wish.wanted,
        "region": row.region,
        "id": row.id,
        "zones": list(row.zones),
        "unused": row.count,
        "start": row.start.isoformat() if row.start else None,
        "end": row.end.isoformat() if row.end else None,
        "short": row.short,
        "needs": list(needs),
    }


def _draft(asked: Asked, rows: Sequence[Row], file: Path) -> None:
    write_draft(rows, file, offer=asked.offer, orchestrator=_orchestrator(asked), asked=asked)
