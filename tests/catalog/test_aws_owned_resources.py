"""What of AWS's passes the endpoints: rows with their reasons, and the accounts of registries."""

from __future__ import annotations

import re

import pytest

from ultracluster.catalog.aws_owned_resources import AwsOwned, aws_owned_resources, registry_account
from ultracluster.catalog.hyperpod_eks import health_agent_image

ROWS = aws_owned_resources()
PLACEHOLDERS = re.compile(r"\{(?!partition\}|region\}|flatregion\}|account\}|registry:[a-z-]+\})")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.services[0]}: {row.resources[0]}")
def test_every_row_says_why_and_who_says_so(row: AwsOwned) -> None:
    assert len(row.why.split()) > 2 and len(row.source) > 10
    assert row.actions and row.resources
    assert not any(PLACEHOLDERS.search(resource) for resource in row.resources)


@pytest.mark.parametrize("row", [row for row in ROWS if row.who == "anyone"], ids=lambda row: row.why)
def test_unsigned_requests_write_only_answers_to_cloudformation(row: AwsOwned) -> None:
    writes = [action for action in row.actions if action.split(":")[1].startswith(("Put", "Delete", "Copy"))]
    if writes:
        assert writes == ["s3:PutObject"]
        assert all(":::cloudformation-" in resource for resource in row.resources)
    elif row.services == ("s3",):
        assert set(row.actions) <= {"s3:GetObject", "s3:ListBucket"}


def test_no_bucket_is_named_by_a_wildcard_that_a_stranger_could_meet_with_a_write() -> None:
    for row in ROWS:
        for resource in row.resources:
            bucket = resource.removeprefix("arn:{partition}:s3:::").split("/")[0]
            if row.services == ("s3",) and "*" in bucket:
                assert row.actions == ("s3:GetObject",), resource


def test_registries_by_region() -> None:
    assert registry_account("eks-addons", "us-east-2") == "602401143452"
    assert registry_account("eks-addons", "af-south-1") == "877085696533"
    assert registry_account("deep-learning-containers", "us-east-2") == "763104351884"
    for region in ("us-east-2", "eu-central-2"):
        assert registry_account("hyperpod", region) == health_agent_image(region).split(".")[0]
