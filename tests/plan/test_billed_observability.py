"""What watching a cluster is billed for: each part with its price, tiers in their order, unknown never 0."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from cost_support import environment

from ultracluster.model import resolve
from ultracluster.plan.billed import billed
from ultracluster.plan.billed_observability import BATCH, TIERS, observability_items
from ultracluster.plan.cost import Estimate, estimate
from ultracluster.plan.observability import observability_plan

TODAY = dt.date(2026, 11, 21)
GRAFANA = {"authentication": "AWS_SSO", "admins": ["user-1"]}


def estimated(base: str, changes: dict[str, Any] | None = None, **observability: Any) -> Estimate:
    made = environment(base, {"observability": observability, **(changes or {})})
    return estimate(resolve(made), today=TODAY)


def lines(found: Estimate) -> dict[str, Any]:
    return {line.item.key: line for line in found.lines if line.item.area == "observability"}


def test_nothing_is_billed_where_nothing_watches() -> None:
    assert list(observability_items(resolve(environment("dev")))) == []


def test_a_workspace_is_billed_by_samples_and_storage() -> None:
    found = lines(estimated("dev", kind="prometheus", grafana=GRAFANA))
    plan = observability_plan(resolve(environment("dev", {"observability": {"kind": "prometheus"}})))
    assert plan is not None
    assert list(found) == ["amp.samples", "amp.storage", "amg.editor"]
    samples = found["amp.samples"]
    assert samples.mark == "" and samples.figure.usd == 0.9
    month = samples.per_hour * 730
    assert month == pytest.approx(plan.samples_per_month / BATCH * 0.9, rel=0.01)
    assert 0 < found["amp.storage"].per_hour < samples.per_hour
    assert found["amg.editor"].per_hour * 730 == pytest.approx(9)


def test_samples_fall_into_tiers() -> None:
    """1,000 nodes at the shortest interval: the second tier, and the sum is that of all samples."""
    change = {"node_groups.train.count": 1000}
    found = lines(estimated("prod", change, kind="prometheus", scrape_seconds=15))
    made = environment("prod", {"observability": {"kind": "prometheus", "scrape_seconds": 15}, **change})
    plan = observability_plan(resolve(made))
    assert plan is not None and plan.samples_per_month > 2e9
    first, second = found["amp.samples"], found["amp.samples-2"]
    assert first.item.quantity == 2e9 / BATCH
    total = (first.item.quantity + second.item.quantity) * BATCH
    assert total == pytest.approx(plan.samples_per_month, rel=1e-4)
    assert second.figure.usd < first.figure.usd
    assert "amp.samples-3" not in found


def test_the_tiers_follow_each_other() -> None:
    assert [above for _, _, above in TIERS] == sorted(above for _, _, above in TIERS)
    assert TIERS[-1][2] == float("inf")


def test_nodes_that_may_be_added_are_in_the_greatest_sum() -> None:
    found = estimated("parallelcluster-p5", kind="prometheus")
    samples = lines(found)["amp.samples"]
    assert samples.item.greatest >= samples.item.quantity


def test_a_region_without_a_record_has_another_ones_price_and_says_so() -> None:
    found = lines(estimated("prod", kind="prometheus"))
    assert found["amp.samples"].figure.region == "us-east-1"
    assert found["amp.samples"].mark == "elsewhere"


def test_a_managed_collector_is_billed_by_the_hour_and_by_what_it_collects() -> None:
    found = lines(estimated("eks-p5en", kind="prometheus", collector="managed"))
    assert found["amp.collector"].item.quantity == 1
    assert found["amp.collected"].item.quantity == pytest.approx(
        found["amp.samples"].item.quantity
        + (found["amp.samples-2"].item.quantity if "amp.samples-2" in found else 0),
        abs=0.2,
    )
    assert "amp.collector" not in lines(estimated("eks-p5en", kind="prometheus"))


def test_what_use_decides_is_named_with_its_price_or_without() -> None:
    made = environment("dev", {"observability": {"kind": "prometheus", "monthly_budget_usd": 10}})
    uses = {item.what: item.key for item in billed(resolve(made)) if item.area == "by use"}
    assert uses["CloudWatch alarms, each"] == "cloudwatch.alarm"
    assert uses["samples that rules and dashboards read, a billion"] == "amp.query"
    assert uses["AWS Budgets"] == ""


def test_other_kinds() -> None:
    alarms = estimated("dev", kind="cloudwatch")
    assert lines(alarms) == {}
    theirs = estimated("hyperpod-eks-p5", kind="hyperpod")
    assert lines(theirs) == {}
    assert any("HyperPod's collection" in line.item.what for line in theirs.by_use)
    existing = {"authentication": "AWS_SSO", "workspace_id": "g-0123456789"}
    assert "amg.editor" not in lines(estimated("dev", kind="prometheus", grafana=existing))


def test_an_existing_workspace_says_who_is_billed() -> None:
    arn = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
    found = lines(estimated("dev", kind="prometheus", workspace={"arn": arn}))
    assert arn in found["amp.samples"].item.note and "eu-west-1" in found["amp.samples"].item.note
