"""Grafana that refuses, breaks or is silent is told in plain words."""

from __future__ import annotations

import pytest
from fake_grafana import Aws, Grafana
from grafana_fixtures import FAILURES, Run

from ultracluster.account.grafana import client


@pytest.mark.parametrize("name", FAILURES)
def test_a_grafana_that_cannot_be_read_is_named_and_no_token_stays(
    name: str, fill: Run, there: Grafana, side: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure, said = FAILURES[name]
    if name == "silence":
        monkeypatch.setattr(client, "TIMEOUT", 0.5)
    there.fail = lambda method, path: failure
    result = fill("--yes")
    assert result.exit_code == 2 and said in result.stderr, result.output
    assert side.tokens == {} and there.changes == []
    assert "glsa_" not in result.output


def test_who_is_let_in_is_named_where_access_is_restricted(fill: Run, there: Grafana, side: Aws) -> None:
    side.workspace["networkAccessControl"] = {"prefixListIds": [], "vpceIds": ["vpce-1"]}
    there.fail = lambda method, path: (403, b"Forbidden")
    result = fill("--yes")
    assert result.exit_code == 2
    assert (
        "workspace g-0123456789 lets in only VPC endpoints vpce-1: run the command from there"
        in result.stderr
    )
