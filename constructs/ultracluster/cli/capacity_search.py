"""`ultracluster capacity search`: what AWS has on offer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ultracluster.account import aws
from ultracluster.capacity.search import search as ask
from ultracluster.capacity.search import wishes_for, wishes_of
from ultracluster.catalog import instance_type, nearest_instance_types
from ultracluster.catalog.gpu_names import types_of_gpu_name
from ultracluster.cli.accounts import open_account
from ultracluster.cli.capacity_everywhere import check_options, search_everywhere, wish_lines
from ultracluster.cli.capacity_options import Asked, start_of
from ultracluster.cli.capacity_text import parts_of, zones_of
from ultracluster.cli.environments import (
    JsonOption,
    ProfileOption,
    complete_environment,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import LateBar
from ultracluster.cli.report import text_table
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.capacity.search import Offer, Search, Wish
    from ultracluster.cli.documents.cluster import CapacitySearch, Wished


def search(
    environment: Annotated[
        Path | None,
        typer.Argument(
            help="Search for the compute groups of this environment.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="In every Region that the account has enabled.")
    ] = False,
    accelerators: Annotated[
        str | None,
        typer.Option(help="64xH100, of all types that have them; with --everywhere.", show_default=False),
    ] = None,
    instance_type: Annotated[
        str | None,
        typer.Option(help="Search for this type instead, by its EC2 name.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=256, help="Instances, with --instance-type.")] = 1,
    days: Annotated[int, typer.Option(min=1, max=182, help="Days without a break.")] = 14,
    after: Annotated[
        str | None,
        typer.Option(help="Earliest start, `2026-12-01`; tomorrow by default.", show_default=False),
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="AWS Region, with --instance-type.", show_default=False)
    ] = None,
    regions: Annotated[
        list[str] | None,
        typer.Option(
            "--regions",
            help="Only these, with commas between; again for more. With --everywhere.",
            show_default=False,
        ),
    ] = None,
    orchestrator: Annotated[
        str | None,
        typer.Option(help="Only what this orchestrator takes, with --everywhere.", show_default=False),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            help="Draft an environment for an offer in this new file, with --everywhere.",
            show_default=False,
        ),
    ] = None,
    offer: Annotated[
        str | None,
        typer.Option(help="Id of the offer for --write; by default the first.", show_default=False),
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List training plans and Capacity Blocks by price of an instance-hour. Buys nothing.

    With --everywhere in all Regions, with what the account holds unused, by price in all. Exit code 0 =
    something is offered, 1 = nothing is or a kind could not be asked (with --everywhere: nothing was found,
    or the offer for --write has gone), 2 = bad input or no credentials.
    """
    alone = {
        "--accelerators": accelerators, "--regions": regions, "--orchestrator": orchestrator,
        "--write": write, "--offer": offer,
    }  # fmt: skip
    if not everywhere and (extra := [name for name, value in alone.items() if value is not None]):
        refuse(f"{', '.join(extra)}: only with --everywhere")
    start = start_of(after)
    if everywhere:
        _everywhere(
            environment, instance_type, profile, region, as_json,
            Asked(
                accelerators=accelerators or "", count=count, days=days, after=start, write=write,
                offer=offer, orchestrator=orchestrator, regions=regions or (),
            ),
        )  # fmt: skip
    if (environment is None) == (instance_type is None):
        refuse("name an environment, or give --instance-type")
    if environment is not None:
        config = load_environment(environment)
        account = open_account(config, profile)
        wishes = wishes_of(resolve(config), days=days, after=start)
        nothing = "no compute group of this environment can be bought as a plan or block"
    else:
        name = _known(str(instance_type))
        account = _account(region, profile)
        wishes = wishes_for(name, count, days=days, after=start)
        nothing = f"AWS sells neither training plans nor Capacity Blocks for {name}"
    if not wishes:
        refuse(nothing)
    with LateBar("asking AWS") as bar:
        found = ask(account, wishes, progress=bar)
    if as_json:
        write_json("capacity", as_dict(found))
    else:
        typer.echo(as_text(found, wishes))
    raise typer.Exit(0 if found.offers and not found.failures else 1)


def as_dict(found: Search) -> CapacitySearch:
    """The search as JSON types."""
    return {
        "offers": [
            {
                **_wish(offer.wish),
                "id": offer.id,
                "zones": list(offer.zones),
                "fits_zone": offer.fits_zone,
                "start": offer.start.isoformat(),
                "end": offer.end.isoformat() if offer.end else None,
                "hours": offer.hours,
                "segments": [
                    {
                        "zone": segment.zone,
                        "start": segment.start.isoformat(),
                        "end": segment.end.isoformat() if segment.end else None,
                        "count": segment.count,
                    }
                    for segment in offer.segments
                ],
                "upfront_fee": offer.price,
                "per_instance_hour": round(offer.per_hour, 4),
                "currency": offer.currency,
            }
            for offer in found.offers
        ],
        "failures": [{**_wish(wish), "why": why} for wish, why in found.failures],
        "held": [],
        "regions": [],
        "unasked": [],
    }


def as_text(found: Search, wishes: list[Wish]) -> str:
    """The search for a person, cheapest first."""
    lines = list(wish_lines(wishes))
    lines.append("")
    if found.offers:
        rows = [_cells(offer) for offer in found.offers]
        lines += text_table(_HEADS, rows, numbers=_HEADS[:2]).split("\n")
    else:
        lines.append("Nothing is offered: try fewer instances, fewer days or a later start.")
    lines += [
        f"could not be asked: {wish.kind} for {wish.instance_type}: {why}" for wish, why in found.failures
    ]
    if found.offers:
        lines += ["", "The fee is paid upfront and cannot be given back. Nothing was bought."]
    return "\n".join(map(one_line, lines))


_HEADS = ("instance-hour", "in all", "nodes", "capacity", "zone", "start (UTC)", "end (UTC)", "id")


def _cells(offer: Offer) -> tuple[str, ...]:
    wish = offer.wish
    return (
        f"{offer.per_hour:.3f} {offer.currency}",
        f"{offer.price:,.2f} {offer.currency}",
        f"{offer.count} x {wish.instance_type}",
        f"{wish.kind}{f' for {wish.group}' if wish.group else ''}{parts_of(offer)}",
        zones_of(offer),
        f"{offer.start:%Y-%m-%d %H:%M}",
        f"{offer.end:%Y-%m-%d %H:%M}" if offer.end else "?",
        offer.id,
    )


def _wish(wish: Wish) -> Wished:
    return {
        "kind": wish.kind,
        "group": wish.group or None,
        "instance_type": wish.instance_type,
        "count": wish.count,
    }


def _everywhere(
    environment: Path | None,
    instance_type: str | None,
    profile: str | None,
    region: str | None,
    as_json: bool,
    asked: Asked,
) -> NoReturn:
    given = [environment is not None, instance_type is not None, bool(asked.accelerators)]
    if sum(given) != 1:
        refuse("name an environment, or give --accelerators 64xH100, or --instance-type with --count")
    if environment is not None:
        config = load_environment(environment)
        asked = replace(asked, environment=config)
        check_options(asked)
        account = open_account(config, profile)
    else:
        asked = replace(asked, instance_type=_known(instance_type) if instance_type else "")
        check_options(asked)
        account = _any_account(region, profile)
    search_everywhere(asked, account, as_json)


def _any_account(region: str | None, profile: str | None) -> Account:
    """The account in the Region that is named anywhere, or in one that every account has."""
    try:
        account = aws.Account(region=region, profile=profile)
    except aws.AccountError as error:
        if region is not None:
            refuse(str(error))
        return _account(_FIRST, profile)
    try:
        account.identity()
    except aws.AccountError as error:
        refuse(str(error))
    return account


_FIRST = "us-east-1"


def _known(name: str) -> str:
    name = name.strip().lower().removeprefix("ml.")
    if instance_type(name) is None:
        types = types_of_gpu_name(name)
        if len(types) == 1:
            return types[0]
        if types:
            refuse(f"`{name}` is several instance types: {', '.join(types)}; name one")
        refuse(f"there is no instance type `{name}`; did you mean {', '.join(nearest_instance_types(name))}")
    return name


def _account(region: str | None, profile: str | None) -> Account:
    try:
        account = aws.Account(region=region, profile=profile)
        account.identity()
    except aws.AccountError as error:
        refuse(str(error))
    return account
