"""A first environment for an offer of capacity: in its zone, of its type, number and kind of capacity."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.catalog import region, zone_region
from ultracluster.cli.draft_words import commands_for, schema_line
from ultracluster.cli.file_output import write_new
from ultracluster.cli.report import refuse
from ultracluster.config.plain_text import one_line
from ultracluster.plan.draft import ORCHESTRATORS, Wishes
from ultracluster.plan.draft_check import judged
from ultracluster.plan.draft_place import NoZoneError, capacities

if TYPE_CHECKING:
    from ultracluster.capacity.everywhere import Row
    from ultracluster.cli.capacity_options import Asked
    from ultracluster.config.orchestrator import OrchestratorKind
    from ultracluster.plan.draft_check import Judgement


def write_draft(
    rows: Sequence[Row], file: Path, *, offer: str | None, orchestrator: OrchestratorKind | None, asked: Asked
) -> None:
    """Write the environment for the named offer, or for the first that one environment can use.

    Ends with exit code 1 where the offer is not there (any more), and 2 where no such environment could be
    deployed; nothing is written then, and no file is replaced.
    """
    row = _chosen(rows, offer)
    found, wishes = _judged(row, file, orchestrator)
    text = schema_line(file) + found.text
    write_new(file, text, exists=f"name another file{'' if file.is_dir() else ', or delete it'}")
    place = shlex.quote(str(file))
    typer.echo(f"{file} is written, for {one_line(row.id)} and {wishes.orchestrator}. Next:", err=True)
    if not row.own:
        when = f"--days {asked.days} --after {asked.after:%Y-%m-%d}"
        typer.echo(
            f"  ultracluster capacity buy {place} --offer {shlex.quote(one_line(row.id))} {when}", err=True
        )
    typer.echo(f"  ultracluster preflight {place}", err=True)


def _chosen(rows: Sequence[Row], offer: str | None) -> Row:
    if offer is not None:
        named = next((row for row in rows if row.id == offer), None)
        if named is None:
            others = ", ".join([row.id for row in rows if not _unfit(row)][:3])
            instead = f"; there is {others}" if others else ""
            refuse(f"nothing was written: {offer} is not offered (any more){instead}", code=1)
        if reason := _unfit(named):
            refuse(f"nothing was written: {named.id} {reason}")
        return named
    fit = next((row for row in rows if not _unfit(row) and not row.short), None)
    if fit is None:
        refuse("nothing was written: nothing is offered that one environment could use", code=1)
    return fit


def _unfit(row: Row) -> str:
    """Why no environment can be of this capacity; empty where one can."""
    if len(row.zones) != 1:
        return f"is in several zones ({', '.join(row.zones)}), and an environment in one"
    if region(row.region) is None:
        return f"is in {row.region}, which the catalogue does not know"
    found = zone_region(row.zones[0])
    if found is None or found.name != row.region or row.zones[0].startswith(row.region):
        return f"is in a zone whose id AWS did not say (`{row.zones[0]}`)"
    return ""


def _judged(row: Row, file: Path, orchestrator: OrchestratorKind | None) -> tuple[Judgement, Wishes]:
    """The draft for the orchestrator that is wanted, or the first that is known to take it there."""
    kinds: list[OrchestratorKind] = list(ORCHESTRATORS)
    if orchestrator:
        kinds = [orchestrator]
    takes: list[OrchestratorKind] = [
        one for one in kinds if row.kind in capacities(one, row.wish.instance_type)
    ]
    if not takes:
        who = orchestrator or "no orchestrator"
        refuse(f"nothing was written: {who} takes {row.kind} of {row.wish.instance_type}")
    best: tuple[Judgement, Wishes] | None = None
    reasons: list[str] = []
    for kind in takes:
        wishes = _wishes(row, kind, _name(file))
        try:
            found = judged(wishes, commands_for(file, wishes.name), file)
        except NoZoneError as error:
            reasons.append(f"{kind}: {error}")
            continue
        reasons += [f"{kind}: {one.code} {one.dotted}: {one.message}" for one in found.wrong]
        if not found.wrong and (best is None or not found.unsold):
            best = found, wishes
            if not found.unsold:
                break
    if best is None:
        refuse("\n  ".join(["Nothing was written: the environment would be rejected:", *reasons]))
    return best


def _wishes(row: Row, orchestrator: OrchestratorKind, name: str) -> Wishes:
    start = f"from {row.start:%Y-%m-%d %H:%M} UTC" if row.start else "there now"
    end = f" until {row.end:%Y-%m-%d %H:%M} UTC" if row.end else ""
    size = f"{row.count} nodes, {start}{end}"
    paid = "held by the account" if row.price is None else f"{row.price:,.2f} {row.currency} upfront"
    what = "" if row.own else "offer "
    reason = one_line(f"{what}{row.id}: {size}, {paid}, as AWS answered")
    return Wishes(
        name=name,
        region=row.region,
        orchestrator=orchestrator,
        instance_type=row.wish.instance_type,
        nodes=min(row.count, row.wish.wanted) if row.own else row.count,
        zone_id=row.zones[0],
        zone_reason="that of the capacity",
        capacity=row.kind,
        capacity_id=row.id if row.own else "",
        capacity_reason=reason,
    )


def _name(file: Path) -> str:
    """Of the environment: that of the file, as the configuration takes it."""
    plain = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).lstrip("-0123456789")
    return plain[:30].rstrip("-") or "train"
