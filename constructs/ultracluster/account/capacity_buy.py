"""Buy an offer of capacity: once, and never a second time by a repeated request.

EC2's PurchaseCapacityBlock knows no token that would make it safe to repeat, so it is sent once. Where no
answer comes back, nobody knows whether it was bought: that is said, and nothing is tried again.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast

from botocore import exceptions as known  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain
from ultracluster.account.capacity_owned import owned
from ultracluster.account.capacity_search import Offer
from ultracluster.plan.moving.target import Bought

_NEVER_SENT: tuple[type[Exception], ...] = (
    known.ConnectTimeoutError,
    known.EndpointConnectionError,
    known.NoCredentialsError,
    known.PartialCredentialsError,
    known.CredentialRetrievalError,
    known.ParamValidationError,
    known.SSLError,
    known.ProxyConnectionError,
)
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
    """Whether this reservation, block or plan is the account's, and has not ended.

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
    try:
        answer = ec2.purchase_capacity_block(CapacityBlockOfferingId=offer.id, InstancePlatform="Linux/UNIX")
    except AWS_ERRORS as error:
        look = f"aws ec2 describe-capacity-reservations --region {account.region}"
        raise _failed(error, offer, look) from None
    rows: list[dict[str, Any]] = answer.get("CapacityReservations") or [
        answer.get("CapacityReservation") or {}
    ]
    return str(rows[0].get("CapacityReservationId", ""))


def _plan(account: Account, offer: Offer, name: str) -> str:
    sagemaker = account.client("sagemaker", once=True)
    called = plan_name(offer, name)
    try:
        answer = sagemaker.create_training_plan(TrainingPlanName=called, TrainingPlanOfferingId=offer.id)
    except AWS_ERRORS as error:
        look = f"aws sagemaker describe-training-plan --training-plan-name {called} --region {account.region}"
        raise _failed(error, offer, look) from None
    return str(answer["TrainingPlanArn"])


def _failed(error: Exception, offer: Offer, look: str) -> AccountError:
    if isinstance(error, _NEVER_SENT) or _refused(error):
        return NotBoughtError(f"nothing was bought: {explain(error)}")
    return MaybeBoughtError(
        f"whether {offer.id} was bought is not known, because no answer came ({explain(error)}). Look before "
        f"you try again: {look}"
    )


def _refused(error: Exception) -> bool:
    """Whether AWS answered that it did not do it: a fault of its own (5xx) leaves that open."""
    if not isinstance(error, known.ClientError):
        return False
    response: dict[str, Any] = cast("Any", error).response
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
    return 400 <= status < 500
