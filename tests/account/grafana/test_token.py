"""Tokens of Grafana: none is left, whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
from fake_grafana import Aws, Grafana
from grafana_fixtures import Run
from hyperpod_service import refusal

from ultracluster.account.grafana import client


def test_a_token_that_cannot_be_deleted_is_said(fill: Run, there: Grafana, side: Aws) -> None:
    side.refuse["DeleteWorkspaceServiceAccountToken"] = refusal("ThrottlingException")
    result = fill("--yes")
    assert result.exit_code == 1
    assert "could not be deleted; it expires in 10 minutes" in result.stdout
    assert len(there.boards) == 6, "what was to be done is done"


def test_tokens_that_a_killed_command_left_are_deleted_once_they_are_worth_nothing(
    fill: Run, side: Aws
) -> None:
    side.add_token("91", "ultracluster-apply-old", seconds=-60)
    side.add_token("92", "ultracluster-apply-of-a-neighbour", seconds=300)
    side.add_token("93", "somebody else's", seconds=-60)
    side.accounts.append({"id": "3", "name": "ultracluster", "isDisabled": "false", "grafanaRole": "ADMIN"})
    fill("--yes")
    assert sorted(side.tokens) == ["92", "93"]


def test_an_interrupted_command_leaves_no_token(
    fill: Run, there: Grafana, side: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client.Client, "send", interrupted)
    fill("--yes")
    assert side.made == 2 and side.tokens == {} and there.changes == []
