"""What an environment is estimated to cost: prices of the place and the day, or what stands in for them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from cost_support import TODAY, environment, estimated, line, made_up, own
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from project import ENVIRONMENTS

from ultracluster.cli.json_rows import plain
from ultracluster.model import resolve
from ultracluster.plan.billed import billed
from ultracluster.plan.cost import Estimate, estimate
from ultracluster.plan.cost_summary import document as document_of
from ultracluster.plan.cost_summary import summary

EAST = {"region": "us-east-1", "network.zone_id": "use1-az6"}


def test_the_estimate_has_everything_that_has_a_price() -> None:
    found = estimated("parallelcluster-p5")

    nodes = 0.8064 + 0.2016 + 4 * 55.04
    volumes = sum(one.per_hour or 0 for one in found.lines if "root volumes" in one.item.what)
    file_systems = (38_400 * 0.145 + 512 * 0.09 + 160 * 0.26) / 730
    rest = 0.168 + (100 * 0.115 + 2 * 1 + 3 * 0.4) / 730 + 0.045 + 0.005
    theirs = 0.0225 + (3 + 5 * 0.1) / 730  # load balancer of the login pool, dashboard, alarms
    assert found.per_hour == pytest.approx(nodes + volumes + file_systems + rest + theirs)
    (reserved,) = [one for one in found.lines if one.item.what == "reserved: root volumes"]
    assert reserved.per_hour == pytest.approx(800 * 0.08 / 730)
    assert len(found.priced) == len(found.standing)
    assert not found.not_priced


def test_age_marks_a_price_and_removes_none() -> None:
    last = dt.date(2026, 12, 18)  # the 90th day of EC2's price of 2026-09-19
    young, old = (estimated("parallelcluster-p5", today=last + dt.timedelta(days=one)) for one in (0, 1))

    assert [(line(one, "reserved: p5").mark, line(one, "reserved: p5").days_old) for one in (young, old)] == [
        ("", 90),
        ("old", 91),
    ]
    assert young.per_hour == old.per_hour
    # and NAT gateway, secrets
    assert young.strict_per_hour == pytest.approx(4 * 55.04 + 0.045 + 3 * 0.4 / 730)
    assert old.strict_per_hour == pytest.approx(0.045 + 3 * 0.4 / 730)
    decades_later = estimated("parallelcluster-p5", today=dt.date(2056, 1, 1))
    assert decades_later.per_hour == young.per_hour
    assert decades_later.strict_per_hour is None


def test_an_undated_price_is_in_the_estimate_only() -> None:
    found = estimated("eks-p5en")
    system = line(found, "system: m5")

    assert (system.mark, system.days_old, system.per_hour) == ("undated", None, 2 * 0.384)
    assert system in found.priced
    assert system not in found.strict


def test_hyperpod_is_priced_by_its_own_list() -> None:
    found = estimated("dev", {**EAST, "node_groups.gpu.instance_type": "p5.48xlarge"})

    gpu, controller = line(found, "gpu: p5"), line(found, "controller: m5")
    assert (gpu.mark, gpu.per_hour) == ("", 2 * 66.048)
    assert (controller.mark, controller.per_hour) == ("", 0.461)


def test_hyperpod_elsewhere_is_ec2_times_the_factor_of_the_family() -> None:
    found = estimated("dev")

    gpu = line(found, "gpu: g6e")
    assert gpu.mark == "derived"
    assert gpu.per_hour == pytest.approx(2 * 1.25 * 10.49264)
    assert gpu.figure is not None
    assert (gpu.figure.region, gpu.figure.verified) == ("us-west-2", False)
    # where the price list of the Region has it, that counts: p4d in us-west-2
    p4d = line(estimated("dev", {"node_groups.gpu.instance_type": "p4d.24xlarge"}), "gpu: p4d")
    assert (p4d.mark, p4d.per_hour) == ("", 2 * 25.91001756)


def test_a_price_of_another_region_stands_in_where_nothing_is_known_here() -> None:
    found = estimated("dev", {"region": "eu-south-2", "network.zone_id": "eus2-az1"})

    nat = line(found, "NAT gateway")
    assert nat.mark == "elsewhere"
    assert nat.figure is not None
    assert (nat.figure.region, nat.per_hour) == ("us-east-1", 0.045)
    assert not found.strict


def test_system_groups_of_hyperpod_on_eks_are_ec2_nodes() -> None:
    found = estimated("hyperpod-eks-p5", own=own(made_up("ec2.m5.2xlarge", 0.5, region="us-east-2")))

    assert line(found, "system: m5").per_hour == 1.0


def test_a_capacity_block_is_in_the_estimate_by_the_hour_and_has_a_fee() -> None:
    without = estimated("pcs-p6-b200")
    block = line(without, "train: p6-b200")
    assert (block.prepaid, block.mark, without.upfront) == (True, "", None)
    assert block in without.strict

    found = estimated("pcs-p6-b200", days=30)
    assert found.upfront == pytest.approx(113.664 * 4 * 24 * 30)
    assert found.per_hour == without.per_hour

    before = estimated("pcs-p6-b200", days=30, today=dt.date(2026, 10, 6))
    assert before.upfront == pytest.approx(98.84 * 4 * 24 * 30)


def test_a_fee_is_unknown_where_one_of_several_is() -> None:
    found = estimated("parallelcluster-gb200", {"node_groups.gb200.count": 20}, days=1)

    assert line(found, "gb200: p6e").mark == "not priced"
    assert found.upfront is None
    assert estimated("dev", days=3).upfront is None  # nothing is paid upfront


def test_a_training_plan_has_no_date() -> None:
    plan = line(estimated("prod"), "train: p5en")

    assert (plan.mark, plan.prepaid) == ("undated", True)
    assert plan.per_hour == pytest.approx(16 * 1452.63 / 24)


def test_a_training_plan_of_another_type_follows_from_capacity_blocks() -> None:
    plan = line(estimated("trainium"), "trn2: trn2")

    assert plan.mark == "derived"
    assert plan.per_hour == pytest.approx(8 * 1.102 * 35.7608)


def test_a_block_of_ultraservers_is_priced_by_the_ultraserver() -> None:
    found = estimated("parallelcluster-gb200", days=1)

    block = line(found, "gb200: p6e")
    assert (block.item.unit, block.item.quantity) == ("UltraServer", 1)
    assert found.upfront == pytest.approx(761.904 * 24)
    assert found.idle is not None
    assert found.idle.node_per_hour == pytest.approx(761.904 / 18)


def test_a_local_zone_has_prices_of_its_own() -> None:
    found = estimated("parallelcluster-gb200")

    for what in ("head: m7g", "NAT gateway"):
        local = line(found, what)
        assert local.mark == "elsewhere"
        assert local.figure is not None
        assert local.figure.region == "us-east-1"


def test_spot_costs_what_on_demand_does_at_the_most() -> None:
    spot = {"node_groups.more.capacity": {"kind": "spot"}, "node_groups.more.count": 2}
    ceiling = line(estimated("parallelcluster-p5", spot), "more: p5")
    assert (ceiling.mark, ceiling.per_hour) == ("derived", 2 * 55.04)
    assert "at the most" in (ceiling.figure.source if ceiling.figure else "")

    asked = own(made_up("spot.p5.48xlarge", 20.5, region="usw2-az2"))
    zone = {"network.zone_id": "usw2-az2"}
    found = line(estimated("parallelcluster-p5", spot | zone, own=asked), "more: p5")
    assert (found.mark, found.per_hour, found.most_per_hour) == ("", 41.0, 82.0)
    other = line(
        estimated("parallelcluster-p5", spot | {"network.zone_id": "usw2-az1"}, own=asked), "more: p5"
    )
    assert other.mark == "derived"  # Spot has a price in each zone
    hyperpod = estimated("dev", {"node_groups.gpu.capacity": {"kind": "spot"}})
    assert line(hyperpod, "gpu: g6e").per_hour == pytest.approx(2 * 1.25 * 10.49264)


def test_extended_support_has_its_own_price() -> None:
    extended = {"orchestrator.kubernetes_version": "1.33", "orchestrator.support": "extended"}

    def eks(changes: dict[str, Any], today: dt.date) -> dict[str, float | None]:
        found = estimated("eks-trn2", changes, today=today)
        return {one.item.what: one.per_hour for one in found.lines if one.item.key.startswith("eks.")}

    first = dt.date(2026, 7, 29)
    assert eks(extended, first) == {"EKS 1.33": 0.1, "extended support of 1.33": 0.5}
    assert eks(extended, first - dt.timedelta(days=1)) == {"EKS 1.33": 0.1}
    # standard support upgrades the control plane by itself
    assert eks({"orchestrator.kubernetes_version": "1.33"}, first) == {"EKS 1.33": 0.1}
    soon = dt.date(2026, 12, 2)
    assert eks(extended | {"orchestrator.kubernetes_version": "1.34"}, soon) == {
        "EKS 1.34": 0.1,
        "extended support of 1.34": 0.5,
    }


def test_what_may_be_added_makes_a_second_sum() -> None:
    found = estimated("parallelcluster-p5")
    volumes = sum(one.most_per_hour or 0 for one in found.lines if one.item.what.startswith("more: root"))

    assert found.grows
    assert found.per_hour is not None
    assert found.most_per_hour == pytest.approx(found.per_hour + 4 * 55.04 + volumes)
    assert summary(found).most_per_month == pytest.approx(730 * (found.most_per_hour or 0), abs=0.01)
    assert not estimated("dev").grows
    assert summary(estimated("dev")).most_per_month is None


def test_groups_that_may_grow_weigh_nothing_in_the_estimate() -> None:
    few = {"node_groups.more.max_count": 0}

    assert estimated("parallelcluster-p5").per_hour == estimated("parallelcluster-p5", few).per_hour


def test_a_commitment_of_one_year_is_named_where_its_rate_is_known() -> None:
    changes = {
        "node_groups.reserved.capacity": {"kind": "on-demand"},
        "node_groups.reserved.instance_type": "p4d.24xlarge",
    }
    (only,) = estimated("parallelcluster-p5", changes).committed

    assert (only.group, only.on_demand.usd) == ("reserved", 21.957642)
    assert only.figure.usd == pytest.approx(13.92, abs=0.01)
    assert only.figure.date == dt.date(2026, 1, 21)
    assert not estimated("dev").committed  # EC2's commitments do not count for HyperPod


def test_savings_plans_are_those_of_who_bills_the_nodes() -> None:
    on_demand = {"node_groups.reserved.capacity": {"kind": "on-demand"}}

    found = estimated("parallelcluster-p5", on_demand).savings_plans
    assert {(one.name, one.most_percent) for one in found} == {
        ("EC2 Instance Savings Plan", 72),
        ("Compute Savings Plan", 66),
    }
    (hyperpod,) = estimated("dev").savings_plans
    assert hyperpod.name == "SageMaker AI Savings Plan" and "not HyperPod" in hyperpod.note
    rate = own(made_up("savings-1y.p4d.24xlarge", 12))
    changes = {**on_demand, "node_groups.reserved.instance_type": "p4d.24xlarge"}
    assert [one.by for one in estimated("parallelcluster-p5", changes, own=rate).committed] == [
        "an EC2 Reserved Instance",
        "a Compute Savings Plan",
    ]


def test_a_database_in_two_zones_follows_from_one_in_one_zone() -> None:
    database = line(estimated("prod"), "RDS MySQL")

    assert database.mark == "derived"
    assert database.per_hour == pytest.approx(2 * 0.168)
    assert database.figure is not None
    assert (database.figure.region, database.figure.verified) == ("us-west-2", False)


# What wins.


def test_what_the_team_asked_for_wins_over_the_tables() -> None:
    asked = own(made_up("ec2.p5.48xlarge", 50.0))
    assert line(estimated("parallelcluster-p5", own=asked), "reserved: p5").per_hour == 200.0

    needs_nothing_derived = own(made_up("hyperpod.m5.2xlarge", 0.5))
    controller = line(estimated("dev", own=needs_nothing_derived), "controller: m5")
    assert (controller.mark, controller.per_hour) == ("", 0.5)


def test_an_old_price_of_the_team_still_wins_and_is_marked() -> None:
    asked = own(made_up("ec2.p5.48xlarge", 50.0, date=dt.date(2026, 1, 1), live=False))
    found = line(estimated("parallelcluster-p5", own=asked), "reserved: p5")

    assert (found.mark, found.per_hour) == ("old", 200.0)


def test_complete_once_everything_has_a_price() -> None:
    cluster = resolve(environment("dev"))
    asked = own(*(made_up(item.key, 1.0) for item in billed(cluster, TODAY)))
    found = estimate(cluster, today=TODAY, own=asked)

    assert found.complete
    assert found.per_hour == found.strict_per_hour == sum(item.quantity for item in billed(cluster, TODAY))
    assert summary(found).text.endswith("(estimate; every price is current)")
    assert not estimate(cluster, today=TODAY, own=asked, faults=["a line that cannot be used"]).complete


# What has no price.


def test_a_type_without_any_price_is_named_and_is_no_zero() -> None:
    found = estimated("dev", {"node_groups.gpu.instance_type": "p5e.48xlarge"})
    told = summary(found)

    assert line(found, "gpu: p5e").per_hour is None
    assert told.nodes_not_priced == ("gpu",)
    assert " WITHOUT the nodes of gpu" in told.text
    assert " WITHOUT the nodes of gpu" in told.short


def test_without_any_price_the_cost_is_unknown_and_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ultracluster.plan.cost.figure", lambda *_, **__: None)
    monkeypatch.setattr("ultracluster.plan.cost.derived_figure", lambda *_, **__: None)
    found = estimated("parallelcluster-p5")
    told = summary(found)

    assert (found.per_hour, found.most_per_hour, found.strict_per_hour) == (None, None, None)
    assert (told.per_hour, told.per_month, told.most_per_month, told.strict_per_month) == (None,) * 4
    assert told.text == f"unknown: none of the {told.things} billed items has a price"
    assert told.short == "cost unknown"
    document = plain(document_of(found))
    assert (document["estimate"], document["at_most"], document["strict"]) == (None, None, None)
    assert document["lines"][0]["cost"] is None


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_every_line_is_in_the_estimate_or_named(base: str) -> None:
    found = estimated(base, days=30)

    assert {*found.priced, *found.not_priced} == {*found.standing}
    assert set(found.strict) <= set(found.priced)
    absent = [one for one in found.lines if not one.item.quantity and one.mark != "by use"]
    assert len(found.standing) + len(found.by_use) + len(absent) == len(found.lines)
    assert found.per_hour == pytest.approx(sum(one.per_hour or 0 for one in found.priced))
    assert (found.strict_per_hour or 0) <= (found.per_hour or 0)
    assert found.per_hour
    assert all(one.figure and one.figure.source for one in found.priced)


@settings(deadline=None, max_examples=examples(10))
@given(
    gpu=st.integers(0, 5000),
    more=st.integers(0, 50),
    usd=st.floats(0.01, 500, allow_nan=False),
    today=st.dates(dt.date(2026, 1, 1), dt.date(2036, 12, 31)),
)
def test_more_nodes_are_never_cheaper_and_sums_are_of_lines(
    gpu: int, more: int, usd: float, today: dt.date
) -> None:
    asked = own(made_up("ec2.m7i.4xlarge", usd), made_up("ebs.gp3", usd, unit="month"))

    def of(count: int) -> Estimate:
        groups = {"node_groups.reserved.count": count, "node_groups.more.max_count": more}
        return estimated("parallelcluster-p5", groups, today=today, own=asked)

    small, large = of(gpu), of(gpu + 1)
    assert (large.per_hour or 0) >= (small.per_hour or 0)
    assert (large.most_per_hour or 0) >= (small.most_per_hour or 0)
    for found in (small, large):
        assert found.per_hour == pytest.approx(sum(one.per_hour or 0 for one in found.priced))
        assert (found.most_per_hour or 0) >= (found.per_hour or 0) - 1e-9
        assert (found.strict_per_hour or 0) <= (found.per_hour or 0) + 1e-9
        assert all(one.figure and one.figure.date and not one.figure.old(today) for one in found.strict)
        assert summary(found).text.startswith("about ")
