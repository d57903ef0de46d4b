"""`ultracluster capacity buy`: buys one offer for a group, and writes its id into the environment file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    open_account,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.report import LateBar
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.account.capacity_search import Offer, Wish
    from ultracluster.cli.documents.cluster import Purchase
    from ultracluster.config import Environment
    from ultracluster.plan.moving import Bought


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be bought without a person at the keyboard."""

    yes: bool
    max_usd: float | None


def buy(
    environment: EnvironmentArgument,
    group: Annotated[
        str | None,
        typer.Option(
            help="Node group that it is for; needed where several are bought for.", show_default=False
        ),
    ] = None,
    offer: Annotated[
        str | None,
        typer.Option(help="Id of the offer; the cheapest in the zone by default.", show_default=False),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=182, help="Days without a break.")] = 14,
    after: Annotated[
        str | None,
        typer.Option(help="Earliest start, `2026-12-01`; tomorrow by default.", show_default=False),
    ] = None,
    max_usd: Annotated[
        float | None,
        typer.Option("--max-usd", min=0, help="Buy nothing that costs more, in all.", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; only with --max-usd.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Buy, too, where the group's capacity is the account's already.")
    ] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Buy a training plan or Capacity Block for a group, and write its id into the environment file.

    The offer is searched for anew, shown with its sum, and bought once: the fee is paid upfront and not given
    back. Exit code 0 = bought and written, 1 = nothing was bought because it is not offered (any more) or AWS
    refused, or the file could not be written after it was bought; 2 = refused: bad input, a guard, not
    confirmed; 3 = no answer came: it may have been bought.
    """
    from ultracluster.account.aws import AccountError
    from ultracluster.account.capacity_buy import MaybeBoughtError, NotBoughtError
    from ultracluster.account.capacity_buy import buy as purchase

    limits = Limits(yes=yes, max_usd=max_usd)
    if yes and max_usd is None:
        refuse("--yes spends money without asking: pass --max-usd with the most that it may cost, too")
    config = load_environment(environment)
    if not os.access(config.file, os.W_OK):
        refuse(f"{config.file} cannot be written, and the id of what is bought belongs into it")
    account = open_account(config, profile)
    wish = _wish(config, group, days, after)
    if not again:
        _not_twice(account, config, wish)
    chosen = _chosen(account, wish, offer)
    _guard(config, chosen, limits)
    _written(config, chosen.wish.group, _stand_in(chosen))  # before money is spent: the file takes an id
    _ask(config, chosen, limits)
    try:
        bought = purchase(account, chosen, name=config.name)
    except NotBoughtError as error:
        refuse(str(error), code=1)
    except MaybeBoughtError as error:
        refuse(str(error), code=3)
    except AccountError as error:
        refuse(f"nothing was bought: {error}", code=1)
    file = _write(config, chosen.wish.group, bought)
    if as_json:
        write_json("purchase", _document(config, chosen, bought, file))
    else:
        typer.echo(f"bought: {bought.id}, written to {file}")
        typer.echo(
            f"AWS takes the payment now; `ultracluster preflight {config.asked_as}` says when it is there"
        )


def _wish(config: Environment, group: str | None, days: int, after: str | None) -> Wish:
    from ultracluster.account.capacity_search import wishes_of
    from ultracluster.cli.capacity import start_of
    from ultracluster.model import resolve

    wishes = wishes_of(resolve(config), days=days, after=start_of(after))
    if not wishes:
        refuse("no compute group of this environment can be bought as a plan or block")
    names = [one.group for one in wishes]
    if group is not None and group not in names:
        refuse(f"nothing is sold for a group `{group}`; there is {', '.join(names)}")
    if group is None and len(wishes) > 1:
        refuse(f"name one of the groups by --group: {', '.join(names)}")
    return next(one for one in wishes if group in (None, one.group))


def _not_twice(account: Account, config: Environment, wish: Wish) -> None:
    """The group may name capacity that was bought before: only its stand-in is nobody's."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.capacity_buy import in_use

    capacity: Any = config.node_groups[wish.group].capacity
    name = getattr(capacity, "arn", None) or getattr(capacity, "id", None)
    try:
        held = name is not None and in_use(account, name)
    except AccountError as error:
        refuse(f"whether {name}, which {wish.group} names, is the account's cannot be asked: {error}")
    if held:
        refuse(f"{wish.group} has {name} already, which has not ended: pass --again to buy more")


def _chosen(account: Account, wish: Wish, named: str | None) -> Offer:
    """The offer as it stands now; a purchase begins with a search of its own."""
    from ultracluster.account.capacity_search import search

    with LateBar("asking AWS") as bar:
        found = search(account, [wish], progress=bar)
    if found.failures:
        refuse(f"nothing was bought: offers cannot be asked for: {found.failures[0][1]}", code=1)
    if named is not None:
        match = next((one for one in found.offers if one.id == named), None)
        if match is None:
            refuse(f"nothing was bought: {named} is not offered (any more). {_others(found.offers)}", code=1)
        return match
    here = [one for one in found.offers if one.fits_zone]
    if not here:
        refuse(f"nothing was bought: nothing is offered in {wish.zone_id}. {_others(found.offers)}", code=1)
    return here[0]


def _others(offers: Sequence[Offer]) -> str:
    from ultracluster.cli.capacity import offer_line

    if not offers:
        return "Try fewer days, or a later start"
    return "Offered now: " + "; ".join(" ".join(offer_line(one).split()) for one in offers[:3])


def _guard(config: Environment, offer: Offer, limits: Limits) -> None:
    zone = config.network.zone_id
    if not offer.fits_zone:
        refuse(
            f"{offer.id} is in {', '.join(offer.zones)}, and {config.name} in {zone}: none of its nodes "
            f"would start there. `ultracluster move {config.asked_as} --to {offer.zones[0]}` plans the move"
        )
    if limits.max_usd is None:
        return
    if offer.currency != "USD":
        refuse(f"--max-usd is in USD, and {offer.id} is sold in {offer.currency}")
    if offer.price > limits.max_usd:
        refuse(f"{offer.id} costs {offer.price:,.2f} USD, more than --max-usd {limits.max_usd:,.2f}")


def _ask(config: Environment, offer: Offer, limits: Limits) -> None:
    from ultracluster.cli.capacity import offer_line

    typer.echo(one_line(" ".join(offer_line(offer).split())), err=True)
    if limits.yes:
        return
    sum_ = f"{offer.price:,.2f} {offer.currency}"
    question = f"Buy it for {config.name}, group {offer.wish.group}? {sum_} are paid now and not given back"
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        typer.echo("", err=True)
    refuse("Not confirmed: nothing was bought. Without a terminal pass --yes and --max-usd.")


def _stand_in(offer: Offer) -> Bought:
    from ultracluster.plan.moving import Bought

    plan = "arn:aws:sagemaker:us-east-2:111122223333:training-plan/any"
    return Bought(
        kind=offer.wish.kind,
        id="cr-00000000000000000" if offer.wish.kind == "capacity-block" else plan,
        region="",
        zone_id="",
        instance_type=offer.wish.instance_type,
        count=offer.wish.count,
        starts=offer.start,
    )


def _written(config: Environment, group: str, bought: Bought) -> str:
    """The file's text with the id; refused where no program can write it."""
    from ultracluster.config.file_edit import EditError, edited, inherited
    from ultracluster.config.remedy import Change, YamlPath
    from ultracluster.model import TRAITS
    from ultracluster.plan.moving import capacity_of

    place: YamlPath = ("node_groups", group, "capacity")
    value = capacity_of(bought)
    if TRAITS[config.orchestrator.kind].until_block != "fills-later":
        value.pop("starts", None)
    same = config.node_groups[group].capacity.kind == bought.kind
    keys = [key for key in value if key != "kind"]
    option = tuple(Change((*place, key), value[key]) for key in keys) if same else (Change(place, value),)
    notes: dict[YamlPath, str] = {(*place, key): "" for key in keys} if same else {}
    try:
        text = config.file.read_text(encoding="utf-8")
        return edited(text, inherited(text, option), notes)
    except EditError as error:
        refuse(f"nothing was bought: {config.file} cannot take the id by a program: {error}")
    except OSError as error:
        refuse(f"nothing was bought: {config.file} cannot be read: {error.strerror}")


def _write(config: Environment, group: str, bought: Bought) -> Path:
    part = config.file.with_name(f".{config.file.name}.part")
    try:
        part.write_text(_written(config, group, bought), encoding="utf-8")
        part.replace(config.file)
    except OSError as error:
        refuse(
            f"{bought.id} IS BOUGHT, but {config.file} cannot be written ({error.strerror}): name it in "
            f"node_groups.{group}.capacity",
            code=1,
        )
    return config.file


def _document(config: Environment, offer: Offer, bought: Bought, file: Path) -> Purchase:
    return {
        "environment": config.name,
        "group": offer.wish.group,
        "kind": bought.kind,
        "id": bought.id,
        "offer": offer.id,
        "zone_id": bought.zone_id,
        "instance_type": bought.instance_type,
        "count": bought.count,
        "start": offer.start.isoformat(),
        "end": offer.end.isoformat() if offer.end else None,
        "upfront_fee": offer.price,
        "currency": offer.currency,
        "file": str(file),
    }
