"""Quotas by the names that AWS lists."""

from __future__ import annotations

import pytest

from ultracluster.catalog.quotas import ec2_quota, quota, quota_by_type


def test_a_quota_of_a_type_names_the_type() -> None:
    found = quota_by_type("hyperpod-usage", "p5.48xlarge")
    assert found.service == "sagemaker" and "p5.48xlarge" in found.name


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
def test_a_family_is_counted_in_vcpus(purchase: str) -> None:
    found = ec2_quota("p5en", purchase)  # type: ignore[arg-type]
    assert found and found.service == "ec2" and "P" in found.name


def test_a_family_that_no_quota_counts() -> None:
    assert ec2_quota("zz9", "on-demand") is None


def test_every_quota_has_a_source_and_a_date() -> None:
    found = quota("vpcs")
    assert found.source and found.date and found.match
