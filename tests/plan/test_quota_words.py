"""Quotas in words."""

from __future__ import annotations

import pytest

from ultracluster.plan.environment_plan import QuotaPlan
from ultracluster.plan.quota_words import quota_amount, scarce_quotas


def quota(amount: float, unit: str, *, service: str = "ec2", scope: str = "region") -> QuotaPlan:
    return QuotaPlan(service=service, name="", code="", amount=amount, unit=unit, why="", scope=scope)


@pytest.mark.parametrize(
    ("amount", "unit", "words"),
    [
        (1536, "vCPUs", "1,536 vCPUs"),
        (1, "instances", "1 instance"),
        (1, "addresses", "1 address"),
        (1, "MB/s", "1 MB/s"),
        (0, "instances", "0 instances"),
    ],
)
def test_one_is_not_many(amount: float, unit: str, words: str) -> None:
    assert quota_amount(quota(amount, unit)) == words


def test_scarce_is_what_nodes_and_storage_take() -> None:
    nodes, storage = quota(8, "instances"), quota(1200, "GiB")
    others = [quota(1, "VPCs"), quota(1, "instances", service="rds"), quota(9, "GiB", scope="vpc")]
    assert scarce_quotas([*others, nodes, storage]) == [nodes, storage]
