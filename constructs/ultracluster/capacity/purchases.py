"""Capacity Blocks and training plans of the account, looked up by type, zone and start instead of by id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ultracluster.account.aws import Account, plain_errors
from ultracluster.capacity.owned import zone_ids
from ultracluster.capacity.search import Offer

_NEAR = timedelta(hours=1)
"""Start times of an offer and of what was bought may differ by minutes."""
_BOUGHT_STATES = ["payment-pending", "scheduled", "active", "assessing", "delayed", "pending"]
_LOST_PLANS = frozenset({"Failed", "Expired"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """A Capacity Block or training plan of the account."""

    id: str
    """Id of the block, or ARN of the plan."""
    created: datetime | None
    """None for a plan: SageMaker does not state it."""
    count: int


def purchases(account: Account, offer: Offer) -> list[Purchase]:
    """Find what the account has of the offer's type in its zone, beginning at its time.

    Raises:
        AccountError: AWS cannot be asked.
    """
    find = _blocks if offer.wish.kind == "capacity-block" else _plans
    with plain_errors():
        return list(find(account, offer.wish.instance_type, offer.zones[0], offer.start))


def _blocks(account: Account, instance_type: str, zone_id: str, start: datetime) -> Iterator[Purchase]:
    names = zone_ids(account)
    filters = [
        {"Name": "instance-type", "Values": [instance_type]},
        {"Name": "state", "Values": _BOUGHT_STATES},
    ]
    for page in (
        account.client("ec2").get_paginator("describe_capacity_reservations").paginate(Filters=filters)
    ):
        for row in page["CapacityReservations"]:
            zone = row.get("AvailabilityZoneId") or names.get(row.get("AvailabilityZone", ""))
            block = row.get("ReservationType", "capacity-block") == "capacity-block"
            if block and zone in (zone_id, None) and _is_near(row.get("StartDate"), start):
                yield Purchase(
                    id=str(row["CapacityReservationId"]),
                    created=row.get("CreateDate"),
                    count=int(row.get("TotalInstanceCount", 0)),
                )


def _plans(account: Account, instance_type: str, zone_id: str, start: datetime) -> Iterator[Purchase]:
    names = zone_ids(account)
    pages = account.client("sagemaker").get_paginator("list_training_plans")
    for page in pages.paginate(StartTimeAfter=start - _NEAR, StartTimeBefore=start + _NEAR):
        for row in page["TrainingPlanSummaries"]:
            parts: list[dict[str, Any]] = row.get("ReservedCapacitySummaries") or [{}]
            zone = parts[0].get("AvailabilityZoneId") or names.get(parts[0].get("AvailabilityZone", ""))
            same = str(parts[0].get("InstanceType", instance_type)).removeprefix("ml.") == instance_type
            if row.get("Status") not in _LOST_PLANS and same and zone in (zone_id, None):
                count = int(row.get("TotalInstanceCount", 0))
                yield Purchase(id=str(row["TrainingPlanArn"]), created=None, count=count)


def _is_near(value: datetime | None, start: datetime) -> bool:
    return value is None or abs(value - start) <= _NEAR
