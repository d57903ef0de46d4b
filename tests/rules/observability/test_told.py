"""Rules on what events, logs and budgets can tell, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from observability_cases import asks
from rules_table import Case, assert_breaks, assert_mended, assert_remedy_works, found

from ultracluster.rules.sets import OBS

OURS, THEIRS = (f"arn:aws:sns:us-west-2:{account}:alerts" for account in ("111122223333", "444455556666"))


def budget(topic: str | None, **more: Any) -> dict[str, Any]:
    alerts = {"topic_arn": topic} if topic else {"emails": ["oncall@example.com"]}
    return {
        "observability": {"alerts": alerts, "monthly_budget_usd": 50_000},
        "account": "111122223333",
        **more,
    }


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "OBS035", budget(None, region="eu-north-1"), "observability.monthly_budget_usd", "eu-north-1",
            "remove", {"region": "us-west-2"},
        ),
        Case(
            "OBS033", asks() | {"storage.lustre.log_level": ...}, "storage.lustre.log_level", "exported",
            "warn-error",
            {"storage.lustre.log_level": "warn-error"}, "prod",
        ),
        Case(
            "OBS034", asks() | {"orchestrator.monitoring.alarms": False}, "orchestrator.monitoring.alarms",
            "head node", "true", {"orchestrator.monitoring.alarms": True}, "parallelcluster-p5",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_breaking_it_is_found_and_the_remedy_works(case: Case) -> None:
    assert_breaks(OBS, case)
    assert_mended(OBS, case)
    assert_remedy_works(case)


@pytest.mark.parametrize("base", ["prod", "dev", "parallelcluster-p5"])
def test_without_observability_nothing_is_said(base: str) -> None:
    quiet = {"orchestrator.monitoring.alarms": False} if base.startswith("parallel") else {}
    assert found(OBS, quiet, base) == []


@pytest.mark.parametrize("changes", [budget(OURS), budget(None), asks(alerts={"topic_arn": THEIRS})])
def test_a_topic_of_the_same_account_or_no_budget_is_well(changes: dict[str, Any]) -> None:
    assert "OBS032" not in {one.code for one in found(OBS, changes, "dev")}


def test_of_an_account_that_is_not_named_nothing_is_said() -> None:
    changes = budget(THEIRS)
    del changes["account"]
    assert "OBS032" not in {one.code for one in found(OBS, changes, "dev")}
