"""What is said of an estimate: the headline, an idle node, and what is left out."""

from __future__ import annotations

import json

import pytest
from cost_support import TODAY, environment, estimated
from project import ENVIRONMENTS

from ultracluster.model import resolve
from ultracluster.plan.cost_summary import document as document_of
from ultracluster.plan.cost_summary import rough, summary
from ultracluster.plan.environment_plan import plan


def test_the_burn_of_an_idle_node() -> None:
    idle = estimated("parallelcluster-p5").idle

    assert idle is not None
    assert (idle.group, idle.job_groups, idle.job_nodes) == ("reserved", ("reserved", "more"), 8)
    assert (idle.node_per_hour, idle.job_per_hour, idle.prepaid) == (55.04, 8 * 55.04, False)
    unknown = estimated("dev", {"node_groups.gpu.instance_type": "p5e.48xlarge"}).idle
    assert unknown is not None
    assert (unknown.mark, unknown.node_per_hour, unknown.job_per_hour) == ("not priced", None, None)


def test_nothing_burns_without_compute_nodes() -> None:
    found = estimated("parallelcluster-p5", {"node_groups.reserved": ..., "node_groups.more.max_count": 0})

    assert found.idle is None
    assert summary(found).idle_line == ""


# The headline.


def test_the_headline() -> None:
    told = summary(estimated("dev"))

    assert told.text == (
        "about 19,900 USD/month, 27.3 USD/h (estimate; only 32.9 USD have a current price); 6 of 7 prices "
        "are derived, older than 90 days or of another Region; not priced: second volumes"
    )
    assert told.strict_line == ("current prices (this Region, last 90 days): 1 of 10, 32.9 USD/month")
    assert told.idle_line == (
        "If one g6e.12xlarge in group gpu fails: about 13.1 USD/h wasted (estimate); "
        "26.2 USD/h while a job on 2 nodes waits for it"
    )
    assert (told.priced, told.strict, told.things) == (7, 1, 10)


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "0"),
        (0.00012345, "0.0001"),
        (0.045, "0.0450"),
        (26.59, "26.6"),
        (99.96, "100.0"),
        (999.6, "1,000"),
        (19_414, "19,400"),
        (722_642, "723,000"),
        (5_394_270_000, "5,390,000,000"),
    ],
)
def test_an_estimate_is_told_in_three_digits(usd: float, text: str) -> None:
    assert rough(usd) == text


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_plan_and_cost_say_the_same(base: str) -> None:
    found = estimated(base)

    planned = plan(resolve(environment(base)), None, TODAY)
    assert planned.cost == summary(found)
    assert json.loads(json.dumps(planned.document()["cost"])) == json.loads(
        json.dumps(document_of(found)["summary"])
    )
