"""What is known of services that assume roles of ours."""

from __future__ import annotations

import re

import pytest

from ultracluster.catalog.service_trusts import ServiceTrust, service_trusts

ROWS = list(service_trusts().values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.service)
def test_a_row_says_why_and_where_it_stands(row: ServiceTrust) -> None:
    assert re.fullmatch(r"[a-z0-9.-]+\.amazonaws\.com", row.service)
    assert len(row.why.split()) > 3 and len(row.source.split()) > 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.service)
def test_an_arn_is_asked_for_only_where_it_is_sent(row: ServiceTrust) -> None:
    assert row.arn is None or row.says == "always"
    if row.arn:
        assert "{account}" in row.arn and "{region}" in row.arn
