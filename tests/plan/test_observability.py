"""What watching a cluster comes to: series and samples on paper, beside what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from cost_support import environment

from ultracluster.cli.plan_markdown import as_markdown
from ultracluster.cli.plan_text import as_text
from ultracluster.model import Cluster, resolve
from ultracluster.plan.environment_plan import plan
from ultracluster.plan.observability import (
    ObservabilityPlan,
    observability_lines,
    observability_plan,
    stored_gb,
)

WORKSPACE = "arn:aws:aps:eu-west-1:222233334444:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"


def cluster(base: str, **observability: Any) -> Cluster:
    return resolve(environment(base, {"observability": observability}))


def planned(base: str, **observability: Any) -> ObservabilityPlan:
    found = observability_plan(cluster(base, **observability))
    assert found is not None
    return found


def test_without_observability_there_is_nothing_to_say() -> None:
    assert observability_plan(resolve(environment("dev"))) is None


@pytest.mark.parametrize(
    "base", ["dev", "prod", "parallelcluster-p5", "pcs-p6-b200", "trainium", "hyperpod-eks-p5", "eks-p5en"]
)
def test_every_node_is_within_its_budget(base: str) -> None:
    found = planned(base)
    assert found.within_budget
    assert {one.group for one in found.groups} == {
        group.name for group in cluster(base).groups.values() if group.most_nodes
    }
    assert all(one.series_per_node > 100 for one in found.groups)
    assert not any("TOO MANY" in line for line in observability_lines(found))


def test_samples_are_series_times_scrapes_of_a_month_of_730_hours() -> None:
    slow, fast = planned("dev", scrape_seconds=60), planned("dev", scrape_seconds=15)
    assert slow.series == fast.series > 1000
    assert fast.samples_per_month == slow.series * 730 * 3600 // 15
    assert fast.samples_per_month == 4 * slow.samples_per_month


def test_what_is_told_once_is_counted_once() -> None:
    """The controller's series of Slurm are in its own row, and once in the sum, however many nodes ask."""
    found = planned("dev")
    rows = {one.group: one for one in found.groups}
    each = sum(one.nodes * one.series_per_node for one in found.groups)
    assert rows["controller"].nodes == 1
    assert found.series == each
    assert found.cluster_series > 0
    eks = planned("eks-p5en")
    assert eks.series == eks.cluster_series + sum(one.nodes * one.series_per_node for one in eks.groups)


def test_too_many_are_named() -> None:
    found = planned("prod", budget_series_per_node=600, max_series=5000)
    assert not found.within_budget
    (over,) = [one for one in found.groups if not one.within_budget]
    assert over.group == "train"
    text = "\n".join(observability_lines(found))
    assert "train: " in text and "600 allowed: TOO MANY" in text
    assert "5,000 allowed (TOO MANY" in text


def test_storage_is_full_when_the_retention_is() -> None:
    month = 365 * 24 / 12
    assert stored_gb(2**30, 365) == pytest.approx(2 * 365 * 24 / month)
    assert stored_gb(0, 150) == 0


def test_words_of_other_kinds() -> None:
    elsewhere = planned("dev", workspace={"arn": WORKSPACE}, alerts={"emails": ["a@example.com"]})
    assert elsewhere.workspace_region == "eu-west-1"
    assert WORKSPACE in observability_lines(elsewhere)[0]
    assert "alerts to a@example.com" in observability_lines(elsewhere)[0]
    assert elsewhere.alerts_to == ("a@example.com",)
    alarms = planned("dev", kind="cloudwatch")
    assert (alarms.series, alarms.groups, alarms.workspace_region) == (0, (), "")
    assert "no metrics of nodes" in observability_lines(alarms)[0]
    theirs = planned("hyperpod-eks-p5", kind="hyperpod")
    assert (theirs.series, theirs.samples_per_month) == (0, 0)
    assert "not reckoned here" in observability_lines(theirs)[0]


def test_text_and_markdown_of_a_plan_show_the_budget() -> None:
    made = plan(cluster("prod", max_series=5000))
    text, page = as_text(made, terminal=False), as_markdown(made)
    for shown in (text, page):
        assert "5,000 allowed (TOO MANY" in " ".join(shown.split())
    found = made.observability
    assert found is not None
    for one in found.groups:
        assert f"{one.group}: {one.series_per_node:,} series a node" in text
        assert f"| {one.group} | {one.series_per_node:,} | {one.budget_per_node:,} | {one.nodes} |" in page
    assert made.document()["observability"]["within_budget"] is False
    without = plan(resolve(environment("prod", {"observability": None})))
    assert without.observability is None
    assert "watched" not in as_text(without, terminal=False)
