"""What is always there is there as often at the least as at the most."""

from __future__ import annotations

from ultracluster.plan.billed_item import standing


def test_what_stands_does_not_grow() -> None:
    item = standing("network", "NAT gateway", "nat", "gateway", 2)
    assert (item.quantity, item.greatest, item.purchase, item.group) == (2, 2, "usage", "")
    assert standing("network", "NAT gateway", "nat", "gateway").quantity == 1
