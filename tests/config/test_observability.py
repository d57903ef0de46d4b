"""`observability:` of an environment file: what is refused, what is the default, what is ours to make."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ultracluster.config.observability import ExistingWorkspace, Grafana, Observability, remote_write_url

WORKSPACE = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"


def test_by_default_a_workspace_and_a_topic_are_made_and_no_grafana() -> None:
    made = Observability()
    assert (made.kind, made.makes_workspace, made.makes_topic, made.makes_grafana) == (
        "prometheus",
        True,
        True,
        False,
    )


def test_what_exists_is_not_made() -> None:
    there = Observability(
        workspace=ExistingWorkspace(arn=WORKSPACE), grafana=Grafana(workspace_id="g-1234567890")
    )
    assert (there.makes_workspace, there.makes_grafana) == (False, False)
    assert not Observability(kind="cloudwatch").makes_workspace


def test_metrics_go_to_the_workspace_s_own_region() -> None:
    assert remote_write_url(WORKSPACE) == (
        "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/"
        "ws-12345678-90ab-cdef-1234-567890abcdef/api/v1/remote_write"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "grafana"},
        {"retention_days": 0},
        {"retention_days": 1096},
        {"scrape_seconds": 14},
        {"scrape_seconds": 241},
        {"max_series": 0},
        {"budget_series_per_node": 0},
        {"monthly_budget_usd": 0},
        {"monthly_budget_usd": float("inf")},
        {"workspace": {"arn": "arn:aws:aps:us-east-1:111122223333:scraper/s-1"}},
        {"workspace": {"arn": WORKSPACE, "role_arn": "arn:aws:iam::111122223333:user/me"}},
        {"alerts": {"emails": ["oncall"]}},
        {"alerts": {"emails": ["a@example.com\nb@example.com"]}},
        {"alerts": {"topic_arn": "arn:aws:sqs:us-east-1:111122223333:queue"}},
        {"grafana": {"authentication": "IAM"}},
        {"grafana": {"saml_metadata_url": "http://id.example.com"}},
        {"grafana": {"workspace_id": "workspace"}},
        {"extension": {"version": "latest"}},
        {"exporters": True},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Observability.model_validate(wrong)
