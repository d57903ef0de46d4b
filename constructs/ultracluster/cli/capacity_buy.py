"""`ultracluster capacity buy`: buys one offer for a group, and writes its id into the environment file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.account.aws import AccountError
from ultracluster.capacity.buying import MaybeBoughtError, NotBoughtError, in_use, plan_name
from ultracluster.capacity.buying import buy as purchase
from ultracluster.capacity.purchases import purchases
from ultracluster.capacity.search import search, wishes_of
from ultracluster.cli.accounts import open_account
from ultracluster.cli.capacity_everywhere import wish_lines
from ultracluster.cli.capacity_options import start_of
from ultracluster.cli.capacity_settle import settled
from ultracluster.cli.capacity_text import offer_line
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_file,
    refuse,
    refuse_file,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import LateBar, working
from ultracluster.cli.terminal import hand_over
from ultracluster.config import InvalidEnvironmentError, load, parse, render
from ultracluster.config.file_edit import EditError, edited, inherited
from ultracluster.config.file_write import write
from ultracluster.config.plain_text import one_line
from ultracluster.config.remedy import Change, apply
from ultracluster.config.source import Source
from ultracluster.model import TRAITS, resolve
from ultracluster.moving import Bought, capacity_of
from ultracluster.project.ledger import Intent, exclusive
from ultracluster.project.place import ProjectError
from ultracluster.rules import check

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.capacity.search import Offer, Wish
    from ultracluster.cli.documents.cluster import Purchase
    from ultracluster.config import Environment
    from ultracluster.config.loader import Loaded
    from ultracluster.config.remedy import Option, YamlPath
    from ultracluster.project.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be bought without a person at the keyboard."""

    yes: bool
    max_usd: float | None
    """Most that the environment's ledger may come to, with this purchase."""
    again: bool = False
    """Buy although the account has such capacity."""


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
        typer.Option(
            "--max-usd",
            min=0,
            help="Limit of all purchases in the environment's ledger, with this one.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; only with --max-usd.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Buy, too, where the group's capacity is the account's already.")
    ] = False,
    settle: Annotated[
        bool,
        typer.Option("--settle", help="Find out what became of a purchase whose answer never came."),
    ] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Buy a training plan or Capacity Block for a group, and write its id into the environment file.

    The offer is searched for again, shown with its price, and bought once: the fee is paid upfront and not
    refunded. The intent is recorded beside the environment file before AWS is asked, and the purchase in its
    ledger (`prod.ledger.jsonl`) after it. While the answer of a purchase is missing, no other is made.

    Exit code 0 = bought and written, 1 = nothing was bought because it is not offered (any more) or AWS
    refused, or the file could not be written after it was bought; 2 = refused: bad input, a guard, not
    confirmed; 3 = no answer came: it may have been bought, and --settle finds out.
    """
    limits = Limits(yes=yes, max_usd=max_usd, again=again)
    if max_usd is not None and not math.isfinite(max_usd):
        refuse(f"--max-usd {max_usd}: write the most that it may cost, in USD")
    if yes and max_usd is None:
        refuse("--yes spends money without asking: pass --max-usd with the most that it may cost, too")
    try:
        loaded = load_file(environment)
    except InvalidEnvironmentError as error:
        refuse_file(error.findings)
    config = loaded.environment
    if not os.access(config.file, os.W_OK):
        refuse(f"{config.file} cannot be written, and the id of what is bought belongs into it")
    try:
        with exclusive(config.file, "capacity buy") as ledger:
            loaded = load_file(environment)  # the process before may have written it
            if settle:
                chosen, bought = settled(loaded, ledger, open_account(config, profile))
            else:
                wish = _wish_of_one(config, group, days, after)
                chosen, bought = _bought(loaded, ledger, wish, offer, limits, profile)
            file = _write(loaded, ledger, chosen.wish.group, bought)
    except ProjectError as error:
        refuse(str(error))
    if as_json:
        write_json("purchase", _document(config, chosen, bought, file))
    else:
        typer.echo(f"bought: {one_line(bought.id)}, written to {file}")
        typer.echo(
            f"AWS takes the payment now; `ultracluster preflight {config.asked_as}` says when it is there"
        )


def _bought(
    loaded: Loaded, ledger: Ledger, wish: Wish, named: str | None, limits: Limits, profile: str | None
) -> tuple[Offer, Bought]:
    """The offer and what AWS sold, or exit codes 1 to 3."""
    config = loaded.environment
    if ledger.intent:
        refuse(
            f"nothing was bought: {one_line(str(ledger.intent))} ended without an answer, and may have "
            f"been done. Find out first: {ledger.intent.settle}"
        )
    account = open_account(config, profile)
    if not limits.again:
        _not_twice(account, config, wish)
    chosen = _chosen(account, wish, named)
    _guard(config, chosen, limits, ledger)
    _check_file(loaded, chosen.wish.group, _stand_in(chosen))
    _not_sold_already(account, config, chosen, limits)
    _ask(config, chosen, limits)
    if not limits.yes:
        chosen = _as_shown(account, chosen)
        _not_sold_already(account, config, chosen, limits)
    ledger.begin(_intent(account, config, chosen))
    try:
        with working("buying; AWS may take 90 s to answer"):
            bought = purchase(account, chosen, name=config.name)
    except NotBoughtError as error:
        ledger.withdraw()
        refuse(str(error), code=1)
    except MaybeBoughtError as error:
        refuse(f"{error}. Then, or instead: {ledger.intent and ledger.intent.settle}", code=3)
    except AccountError as error:
        ledger.withdraw()
        refuse(f"nothing was bought: {error}", code=1)
    return chosen, bought


def _intent(account: Account, config: Environment, offer: Offer) -> Intent:
    return Intent(
        action="capacity buy",
        subject=offer.id,
        settle=f"ultracluster capacity buy {config.asked_as} --settle",
        account=account.identity().account,
        region=account.region,
        usd=offer.price,
        details={
            "group": offer.wish.group,
            "kind": offer.wish.kind,
            "instance_type": offer.wish.instance_type,
            "zone_id": offer.zones[0],
            "count": offer.count,
            "start": offer.start.isoformat(),
            "end": offer.end.isoformat() if offer.end else None,
            "hours": offer.hours,
            "currency": offer.currency,
            "plan": plan_name(offer, config.name),
        },
    )


def _not_sold_already(account: Account, config: Environment, offer: Offer, limits: Limits) -> None:
    """Refuse where the account has just bought the same, on another machine or without an answer."""
    if limits.again:
        return
    try:
        sold = purchases(account, offer)
    except AccountError as error:
        refuse(f"whether the account has bought it already cannot be asked: {error}")
    capacity: Any = config.node_groups[offer.wish.group].capacity
    own = (getattr(capacity, "arn", None), getattr(capacity, "id", None))
    # a checkout in CI is as young as the job: what was bought within a day counts, however young the file is
    written = datetime.fromtimestamp(config.file.stat().st_mtime, UTC)
    since = min(written, datetime.now(UTC) - timedelta(days=1))
    new = [one for one in sold if one.id not in own and (one.created is None or one.created >= since)]
    if new:
        first = new[0]
        when = f" at {first.created:%Y-%m-%d %H:%M} UTC" if first.created else ""
        refuse(
            f"nothing was bought: the account bought {one_line(first.id)}{when}, of the same type, zone and "
            f"start, and {config.file.name} does not name it. Write it into node_groups.{offer.wish.group}."
            "capacity, or pass --again to buy one more"
        )


def _wish_of_one(config: Environment, group: str | None, days: int, after: str | None) -> Wish:
    wish = _wish(config, group, days, after)
    if wish.times > 1:
        refuse(
            f"{wish.group} has {wish.wanted} nodes, and one holds {wish.count} at most: make groups of "
            f"{wish.count}, each with capacity of its own"
        )
    return wish


def _wish(config: Environment, group: str | None, days: int, after: str | None) -> Wish:
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
    with LateBar("asking AWS") as bar:
        found = search(account, [wish], progress=bar)
    if found.failures:
        refuse(f"nothing was bought: offers cannot be asked for: {found.failures[0][1]}", code=1)
    if named is not None:
        match = next((one for one in found.offers if one.id == named), None)
        if match is None:
            refuse(f"nothing was bought: {named} is not offered (any more). {_others(found.offers)}", code=1)
        return match
    here = [one for one in found.offers if one.fits_zone and not one.short]
    if not here:
        refuse(f"nothing was bought: nothing is offered in {wish.zone_id}. {_others(found.offers)}", code=1)
    return here[0]


def _as_shown(account: Account, offer: Offer) -> Offer:
    """A person may have thought for an hour: the offer must be what was agreed to.

    Whether AWS calls an offer the same in each search is not documented: one that is the same in all else is
    taken for it.
    """
    found = search(account, [offer.wish])
    if found.failures:
        refuse(f"nothing was bought: offers cannot be asked for: {found.failures[0][1]}", code=1)
    agreed = (offer.price, offer.currency, offer.segments)
    same = [one for one in found.offers if (one.price, one.currency, one.segments) == agreed]
    now = next((one for one in found.offers if one.id == offer.id), next(iter(same), None))
    if now is None:
        refuse(f"nothing was bought: {offer.id} is not offered (any more). {_others(found.offers)}", code=1)
    if (now.price, now.currency) != (offer.price, offer.currency):
        refuse(
            f"nothing was bought: {offer.id} costs {now.price:,.2f} {now.currency} now, not "
            f"{offer.price:,.2f} {offer.currency}",
            code=1,
        )
    if now.segments != offer.segments:
        refuse(f"nothing was bought: {offer.id} has other times or nodes than a moment ago", code=1)
    return now


def _others(offers: Sequence[Offer]) -> str:
    if not offers:
        return "Try fewer days, or a later start"
    return "Offered now: " + "; ".join(" ".join(offer_line(one).split()) for one in offers[:3])


def _guard(config: Environment, offer: Offer, limits: Limits, ledger: Ledger) -> None:
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
    if offer.price + ledger.usd > limits.max_usd:
        before = f" and {ledger.file.name} has {ledger.usd:,.2f} USD, together" if ledger.usd else ","
        refuse(f"{offer.id} costs {offer.price:,.2f} USD{before} more than --max-usd {limits.max_usd:,.2f}")


def _ask(config: Environment, offer: Offer, limits: Limits) -> None:
    for line in list(wish_lines([offer.wish]))[1:]:
        typer.echo(one_line(line.strip()), err=True)
    typer.echo(one_line(" ".join(offer_line(offer).split())), err=True)
    if offer.count < offer.wish.wanted:
        typer.echo(f"it holds {offer.count}, and {offer.wish.group} has {offer.wish.wanted}", err=True)
    if limits.yes:
        return
    hand_over()
    sum_ = f"{offer.price:,.2f} {offer.currency}"
    question = f"Buy it for {config.name}, group {offer.wish.group}? {sum_} are paid now and not given back"
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        typer.echo("", err=True)
    refuse("Not confirmed: nothing was bought. Without a terminal pass --yes and --max-usd.")


def _stand_in(offer: Offer) -> Bought:
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


def _changes(config: Environment, group: str, bought: Bought) -> tuple[Option, Mapping[YamlPath, str]]:
    """What becomes of the group's capacity, and notes that go with what stood in."""
    place: YamlPath = ("node_groups", group, "capacity")
    value = capacity_of(bought)
    if TRAITS[config.orchestrator.kind].until_block != "fills-later":
        value.pop("starts", None)
    if config.node_groups[group].capacity.kind != bought.kind:
        return (Change(place, value),), {}
    keys = [key for key in value if key != "kind"]
    return tuple(Change((*place, key), value[key]) for key in keys), {(*place, key): "" for key in keys}


def _written(config: Environment, group: str, bought: Bought) -> str:
    """The file's text with the id.

    Raises:
        EditError: no program can write it.
        OSError, UnicodeError: it cannot be read.
    """
    option, notes = _changes(config, group, bought)
    text = config.file.read_text(encoding="utf-8")
    return edited(text, inherited(text, option), notes)


def _check_file(loaded: Loaded, group: str, bought: Bought) -> None:
    """Before money is spent: a program can write the id, and the rules take the environment with it."""
    config = loaded.environment
    option, _ = _changes(config, group, bought)
    try:
        after = parse(Source(str(config.file), data=apply(loaded.source.data, option)))
        wrong = [
            one for one in check(replace(after, environment=after.environment.at(config.file))) if one.blocks
        ]
    except InvalidEnvironmentError as error:
        wrong = list(error.findings)
    known = {(one.code, one.path) for one in check(loaded) if one.blocks}
    if new := [one for one in wrong if (one.code, one.path) not in known]:
        refuse(f"nothing was bought: the file would be refused with it:\n{render(new)}", new)
    try:
        _written(config, group, bought)
    except EditError as error:
        refuse(f"nothing was bought: {config.file} cannot take the id by a program: {error}")
    except (OSError, UnicodeError) as error:
        refuse(f"nothing was bought: {config.file} cannot be read: {error}")


def _write(loaded: Loaded, ledger: Ledger, group: str, bought: Bought) -> Path:
    """After money was spent: whatever happens, the id is printed."""
    config = loaded.environment
    problem = ""
    try:
        ledger.complete(bought.id)
    except OSError as error:
        problem = f"the ledger {ledger.file} cannot be written ({error.strerror})"
    try:
        read = config.node_groups[group].capacity
        if load(config.file).environment.node_groups[group].capacity != read:
            raise ValueError("another program changed the capacity of the group meanwhile")
        write(config.file.resolve(), _written(config, group, bought))  # a link stays one
    except Exception as error:  # nothing may hide what was bought
        problem = f"{config.file} cannot be written ({one_line(str(error))})"
    if problem:
        refuse(
            f"{one_line(bought.id)} IS BOUGHT, but {problem}: name it in node_groups.{group}.capacity",
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
