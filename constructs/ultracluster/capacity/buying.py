"""Buy an offer of capacity: once, and never a second time by a repeated request.

EC2's PurchaseCapacityBlock knows no token that would make it safe to repeat, so it is sent once. Where no
answer comes back, nobody knows whether it was bought: that is said, and nothing is tried again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from ultracluster.account.aws import (
    AWS_ERRORS,
    Account,
    AccountError,
    certainly_refused,
    code,
    explain,
    is_throttled,
)
from ultracluster.capacity.owned import owned
from ultracluster.capacity.search import Offer
from ultracluster.moving.target import Bought

_LONGEST_NAME = 64


class NotBoughtError(AccountError):
    """AWS refused, or was never asked: nothing was bought."""


class MaybeBoughtError(AccountError):
    """No answer came back: whether it was bought is not known."""


def buy(account: Account, offer: Offer, *, name: str) -> Bought:
    """Buy an offer.

    Args:
        name: of the environment; a training plan is named after it.

    Raises:
        NotBoughtError: the offer has gone, or AWS refused; nothing was bought.
        MaybeBoughtError: no answer came; look before anything is tried again.
    """
    segment = offer.segments[0]
    starts = offer.start if offer.start > datetime.now(UTC) else None
    identifier = (
        _block(account, offer) if offer.wish.kind == "capacity-block" else _plan(account, offer, name)
    )
    return Bought(
        kind=offer.wish.kind,
        id=identifier,
        region=account.region,
        zone_id=segment.zone,
        instance_type=offer.wish.instance_type,
        count=segment.count,
        starts=starts,
        ends=offer.end,
    )


def in_use(account: Account, capacity: str) -> bool:
    """Return whether this reservation, block or plan is the account's, and has not ended.

    Raises:
        AccountError: AWS could not be asked.
    """
    try:
        owned(account, capacity)
    except AccountError as error:
        said = str(error)
        if said.startswith("there is no ") or "no node starts" in said:
            return False
        if "has no instances" not in said:
            raise
    return True


def plan_name(offer: Offer, name: str) -> str:
    """The name of a training plan: `prod-train-20261201`, which a second request would be refused for."""
    group = offer.wish.group or "nodes"
    day = f"{offer.start:%Y%m%d}"
    text = re.sub(r"[^a-zA-Z0-9]+", "-", f"{name}-{group}")[: _LONGEST_NAME - len(day) - 1]
    return f"{text.strip('-')}-{day}"


def _block(account: Account, offer: Offer) -> str:
    ec2 = account.client("ec2", once=True)
    look = f"aws ec2 describe-capacity-reservations --region {account.region}"
    try:
        answer = ec2.purchase_capacity_block(CapacityBlockOfferingId=offer.id, InstancePlatform="Linux/UNIX")
    except (KeyboardInterrupt, *AWS_ERRORS) as error:
        raise _failed(error, offer, look) from None
    rows: list[dict[str, Any]] = answer.get("CapacityReservations") or [
        answer.get("CapacityReservation") or {}
    ]
    return _identifier(rows[0].get("CapacityReservationId"), offer, look)


def _plan(account: Account, offer: Offer, name: str) -> str:
    sagemaker = account.client("sagemaker", once=True)
    called = plan_name(offer, name)
    look = f"aws sagemaker describe-training-plan --training-plan-name {called} --region {account.region}"
    try:
        answer = sagemaker.create_training_plan(TrainingPlanName=called, TrainingPlanOfferingId=offer.id)
    except (KeyboardInterrupt, *AWS_ERRORS) as error:
        raise _failed(error, offer, look) from None
    return _identifier(answer.get("TrainingPlanArn"), offer, look)


def _identifier(said: Any, offer: Offer, look: str) -> str:
    if not said:
        raise MaybeBoughtError(
            f"AWS answered that it sold {offer.id}, and not what it is called. Look, and name it in the "
            f"file, before you try again: {look}"
        )
    return str(said)


def _failed(error: BaseException, offer: Offer, look: str) -> AccountError:
    if is_throttled(error):
        return NotBoughtError("nothing was bought: AWS throttles such requests now; try again in a minute")
    if code(error) in _TAKEN:
        return NotBoughtError(
            f"nothing was bought now: {explain(error)}. A plan of that name may be what an earlier request "
            f"bought, whose answer was lost: {look}"
        )
    if certainly_refused(error):
        return NotBoughtError(f"nothing was bought: {explain(error)}")
    why = "interrupted" if isinstance(error, KeyboardInterrupt) else explain(error)
    return MaybeBoughtError(
        f"whether {offer.id} was bought is not known, because no answer came ({why}). Look before you try "
        f"again: {look}"
    )


_TAKEN = ("ResourceInUse", "ResourceInUseException", "ConflictException")
