"""`ultracluster capacity buy --settle`: what became of a purchase whose answer never came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from ultracluster.account.aws import AccountError
from ultracluster.capacity.purchases import purchases
from ultracluster.capacity.search import Offer, Segment, Wish
from ultracluster.cli.report import refuse
from ultracluster.config.plain_text import one_line
from ultracluster.moving import Bought

if TYPE_CHECKING:
    from ultracluster.account.aws import Account
    from ultracluster.config.loader import Loaded
    from ultracluster.project.ledger import Intent, Ledger

VISIBLE = timedelta(minutes=10)
"""After a purchase; within it the account's lists may not show it yet. Ours, AWS publishes no figure."""


def settled(loaded: Loaded, ledger: Ledger, account: Account) -> tuple[Offer, Bought]:
    """Find what the open intent bought.

    Ends with exit code 1 where nothing was bought, which closes the intent; with 3 where that is not known
    yet; with 2 where there is no open intent or another account's.
    """
    intent = ledger.intent
    if intent is None:
        refuse(f"there is no purchase to settle for {loaded.environment.name}: each has its answer")
    if intent.action != "capacity buy":
        refuse(f"{one_line(str(intent))} is open, which is settled by: {intent.settle}")
    if (intent.account, intent.region) != (account.identity().account, account.region):
        refuse(f"{one_line(str(intent))} was made in {intent.account}, {intent.region}: use its credentials")
    with ledger.details() as details:
        offer, plan = _offer(intent), str(details["plan"])
    began = datetime.fromisoformat(intent.time)
    try:
        sold = purchases(account, offer)
    except AccountError as error:
        refuse(f"what became of {one_line(intent.subject)} is not known: {error}", code=3)
    group = loaded.environment.node_groups.get(offer.wish.group)
    if group is None:
        refuse(f"{one_line(str(intent))} was for group {offer.wish.group}, which the file has no longer")
    named: Any = group.capacity
    own = (getattr(named, "arn", None), getattr(named, "id", None))
    new = [
        one
        for one in sold
        if one.id not in own
        and (one.created is None or one.created >= began - timedelta(minutes=1))
        and (one.created or one.id.endswith(f"/{plan}"))
    ]
    if len(new) > 1:
        names = ", ".join(one_line(one.id) for one in new)
        refuse(f"the account bought {names} since then: write yours into the file, delete the intent", code=3)
    if not new:
        _nothing(intent, ledger, began)
    return offer, _bought(intent, offer, new[0].id)


def _nothing(intent: Intent, ledger: Ledger, began: datetime) -> NoReturn:
    until = began + VISIBLE
    if until > datetime.now(UTC):
        refuse(f"the account does not show it yet: ask again at {until:%H:%M} UTC", code=3)
    ledger.withdraw()
    refuse(f"nothing was bought: the account has nothing of {one_line(str(intent))}", code=1)


def _offer(intent: Intent) -> Offer:
    details = intent.details
    start, end = datetime.fromisoformat(details["start"]), details["end"]
    wish = Wish(
        kind=details["kind"], instance_type=details["instance_type"], count=details["count"],
        hours=int(details["hours"]), after=start, group=details["group"], zone_id=details["zone_id"],
    )  # fmt: skip
    segment = Segment(
        zone=details["zone_id"],
        start=start,
        end=datetime.fromisoformat(end) if end else None,
        count=details["count"],
    )
    return Offer(
        wish=wish, id=intent.subject, segments=(segment,), hours=details["hours"], price=intent.usd,
        currency=details["currency"],
    )  # fmt: skip


def _bought(intent: Intent, offer: Offer, identifier: str) -> Bought:
    return Bought(
        kind=offer.wish.kind,
        id=identifier,
        region=intent.region,
        zone_id=offer.zones[0],
        instance_type=offer.wish.instance_type,
        count=offer.count,
        starts=offer.start if offer.start > datetime.now(UTC) else None,
        ends=offer.end,
    )
