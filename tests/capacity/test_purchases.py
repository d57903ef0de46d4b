"""Purchases are recognised by type, zone and start, whatever the account calls them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hyperpod_service import account as known_account
from hyperpod_service import answer, refusal

from ultracluster.account.aws import Account, AccountError
from ultracluster.capacity.purchases import purchases
from ultracluster.capacity.search import Offer, Segment, Wish

START = datetime(2027, 1, 10, 11, 30, tzinfo=UTC)
BLOCK = {
    "CapacityReservationId": "cr-1", "ReservationType": "capacity-block", "AvailabilityZoneId": "use2-az2",
    "StartDate": START, "TotalInstanceCount": 4,
}  # fmt: skip


WISH = Wish(kind="capacity-block", instance_type="p5.48xlarge", count=4, hours=24, after=START)
OFFER = Offer(
    wish=WISH, id="cb-1", segments=(Segment(zone="use2-az2", start=START, end=None, count=4),), hours=24,
    price=1, currency="USD",
)  # fmt: skip


@pytest.fixture
def account() -> Account:
    known = known_account("us-east-2")
    answer(known.client("ec2"), "DescribeAvailabilityZones", lambda _: {"AvailabilityZones": []})
    return known


def found(account: Account, rows: list[dict[str, Any]]) -> list[str]:
    answer(account.client("ec2"), "DescribeCapacityReservations", lambda _: {"CapacityReservations": rows})
    sold = purchases(account, OFFER)
    return [one.id for one in sold]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"StartDate": START + timedelta(minutes=30)}, True),
        ({"StartDate": START + timedelta(days=1)}, False),
        ({"AvailabilityZoneId": "use2-az1"}, False),
        ({"ReservationType": "default"}, False),
    ],
)
def test_a_block_counts_where_type_zone_and_start_are_the_same(
    account: Account, change: dict[str, Any], same: bool
) -> None:
    assert found(account, [{**BLOCK, **change}]) == (["cr-1"] if same else [])


def test_an_account_that_cannot_be_asked_is_an_error(account: Account) -> None:
    def denied(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal("UnauthorizedOperation", "no", "DescribeCapacityReservations")

    answer(account.client("ec2"), "DescribeCapacityReservations", denied)
    with pytest.raises(AccountError, match="not allowed"):
        purchases(account, OFFER)
