"""What an environment is billed for, and which prices are summed."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded

from ultracluster.catalog import price
from ultracluster.catalog.prices import Figure, figure, hyperpod_premium
from ultracluster.config import Environment
from ultracluster.operations.billed import billed
from ultracluster.operations.cost import Estimate, Line, estimate

TODAY = dt.date(2026, 11, 21)
FILE = ROOT / "constructs/ultracluster/catalog/service_prices.json"
TABLES: list[dict[str, Any]] = json.loads(FILE.read_text())["tables"]


def environment(base: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(base), changes or {})).environment


def estimated(base: str, changes: dict[str, Any] | None = None, **options: Any) -> Estimate:
    today: dt.date = options.pop("today", TODAY)
    return estimate(environment(base, changes), today=today, **options)


def line(found: Estimate, what: str) -> Line:
    (only,) = [one for one in found.lines if one.item.what.startswith(what)]
    return only


def made_up(key: str, usd: float, **changes: Any) -> Figure:
    figure = Figure(
        key=key, region="us-west-2", usd=usd, unit="hour", source="this test", date=TODAY,
        expires=TODAY + dt.timedelta(days=90), expired=False, verified=True, live=True,
    )  # fmt: skip
    return replace(figure, **changes)


EAST = {"region": "us-east-1", "network.zone_id": "use1-az6"}
NETWORK = ["nat", "ipv4"]
FAST = ["ebs.gp3", "ebs.gp3-throughput", "ebs.gp3-iops"]
"""Root volumes of nodes with accelerators."""
BILLED = {
    "dev": [
        "hyperpod.m5.2xlarge", "hyperpod-volume", "hyperpod.m5.xlarge", "hyperpod-volume",
        "hyperpod.g6e.12xlarge", "hyperpod-volume", "lustre.persistent-2-ssd.250", *NETWORK, "kms.key",
    ],
    "prod": [
        "hyperpod.m5.4xlarge", "hyperpod-volume", "hyperpod.m5.2xlarge", "hyperpod-volume",
        "training-plan.p5en.48xlarge", "hyperpod-volume", "lustre.persistent-2-ssd.500",
        "lustre.persistent-2-ssd.metadata", "openzfs.single-az-ha-2.storage",
        "openzfs.single-az-ha-2.throughput", "rds.mysql-multi-az.m7g.large", "rds.storage-multi-az",
        "endpoint", "kms.key", "secret",
    ],
    "hyperpod-eks-p5": [
        "ec2.m5.2xlarge", "ebs.gp3", "training-plan.p5.48xlarge", "hyperpod-volume", "eks.standard",
        "lustre.persistent-2-ssd.500", "lustre.persistent-2-ssd.metadata", *NETWORK, "kms.key",
    ],
    "eks-p5en": [
        "ec2.m5.2xlarge", "ebs.gp3", "capacity-block.p5en.48xlarge", *FAST, "eks.standard",
        "lustre.persistent-2-ssd.500", "lustre.persistent-2-ssd.metadata", "openzfs.single-az-ha-2.storage",
        "openzfs.single-az-ha-2.throughput", *NETWORK, "kms.key",
    ],
    "parallelcluster-p5": [
        "ec2.m7i.4xlarge", "ebs.gp3", "ec2.m7i.xlarge", "ebs.gp3", "ec2.p5.48xlarge", *FAST,
        "ec2.p5.48xlarge", *FAST, "lustre.persistent-2-ssd.125", "openzfs.single-az-2.storage",
        "openzfs.single-az-2.throughput", "rds.mysql.m7g.large", "rds.storage", *NETWORK, "kms.key", "secret",
    ],
    "pcs-p6-b200": [
        "ec2.m7i.2xlarge", "ebs.gp3", "capacity-block.p6-b200.48xlarge", *FAST, "pcs.controller.small",
        "pcs.node", "pcs.accounting", "lustre.persistent-2-ssd.250", "lustre.persistent-2-ssd.metadata",
        "openzfs.single-az-ha-2.storage", "openzfs.single-az-ha-2.throughput", *NETWORK, "kms.key",
    ],
}  # fmt: skip


@pytest.mark.parametrize("base", BILLED)
def test_everything_that_is_billed(base: str) -> None:
    items = [item for item in billed(environment(base)) if item.area != "by use"]

    assert [item.key for item in items] == BILLED[base]


THEIRS = {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}
CHANGES: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    # the parts of an environment that exist cost nothing here
    ("dev", {"network.vpc": THEIRS}, {"nat": 0, "ipv4": 0, "kms.key": 1}),
    ("dev", {"storage.key": {"arn": "arn:aws:kms:us-west-2:111122223333:key/x"}}, {"kms.key": 1}),
    ("dev", {"network.egress": "closed"}, {"nat": 0, "ipv4": 0, "endpoint": 10}),
    ("dev", {"network.extra_endpoints": ["athena"]}, {"nat": 1, "endpoint": 1}),
    ("dev", {"storage.lustre": None}, {"lustre.persistent-2-ssd.250": 0}),
    (
        "dev",
        {"storage.lustre": {"deployment": "scratch-2", "capacity_gib": 2400}},
        {"lustre.scratch-2": 2400},
    ),
    (
        "dev",
        {
            "storage.lustre": {
                "deployment": "persistent-1-hdd", "capacity_gib": 6000, "throughput_mbps_per_tib": 12,
                "drive_cache": "read",
            }
        },
        {"lustre.persistent-1-hdd.12-cached": 6000},
    ),
    (
        "dev",
        {
            "storage.lustre": {
                "deployment": "intelligent-tiering", "throughput_mbps": 8000, "metadata_iops": 6000,
                "read_cache": {"mode": "sized", "gib": 512},
            }
        },
        {
            "lustre.intelligent-tiering.throughput": 8000,
            "lustre.intelligent-tiering.metadata": 6000,
            "lustre.intelligent-tiering.cache": 512,
        },
    ),
    ("parallelcluster-p5", {"storage.accounting_database": None}, {"rds.mysql.m7g.large": 0, "secret": 0}),
    ("eks-p5en", {"orchestrator.scaling_tier": "2xl"}, {"eks.standard": 1, "eks.tier.2xl": 1}),
    ("eks-p5en", {"orchestrator.capabilities": {"kro": True}}, {"eks.capability.kro": 1}),
    ("pcs-p6-b200", {"orchestrator.size": ...}, {"pcs.controller.small": 1, "pcs.node": 6}),
    ("pcs-p6-b200", {"orchestrator.accounting": {"mode": "none"}}, {"pcs.accounting": 0}),
    ("dev", {"node_groups.gpu.count": 5}, {"hyperpod.g6e.12xlarge": 5}),
]  # fmt: skip


@pytest.mark.parametrize(("base", "changes", "quantities"), CHANGES)
def test_quantities(base: str, changes: dict[str, Any], quantities: dict[str, float]) -> None:
    items = list(billed(environment(base, changes)))

    assert {key: sum(one.quantity for one in items if one.key == key) for key in quantities} == quantities


def test_a_figure_expires_after_its_last_day() -> None:
    last = dt.date(2026, 12, 18)
    states = {
        day: line(estimated("parallelcluster-p5", today=day), "reserved: p5").state
        for day in (last, last + dt.timedelta(days=1))
    }

    assert list(states.values()) == ["counted", "expired"]
    stale = estimated("parallelcluster-p5", today=last + dt.timedelta(days=1))
    assert stale.per_hour == pytest.approx(0.045 + 0.4 / 730)  # NAT gateway and secret
    assert not stale.complete
    assert "reserved: p5.48xlarge (price expired on 2026-12-18)" in stale.left_out


def test_expired_figures_are_summed_on_request_and_named() -> None:
    late = dt.date(2027, 6, 1)
    found = estimated("parallelcluster-p5", today=late, accept_expired=True)

    file_systems = (38_400 * 0.145 + 512 * 0.09 + 160 * 0.26) / 730
    rest = 0.168 + 0.045 + 0.4 / 730  # database, NAT gateway, secret
    assert found.per_hour == pytest.approx(4 * 55.04 + file_systems + rest)
    assert [one.item.what for one in found.expired_accepted] == [
        "reserved: p5.48xlarge", "more: p5.48xlarge", "Lustre persistent-2-ssd, 125/TiB",
        "OpenZFS single-az-2", "OpenZFS throughput", "RDS MySQL db.m7g.large", "NAT gateway",
        "secret of the database",
    ]  # fmt: skip


def test_a_figure_without_a_date_is_never_summed() -> None:
    for accepted in (False, True):
        found = line(estimated("eks-p5en", accept_expired=accepted), "system: m5")

        assert (found.state, found.figure and found.figure.usd) == ("indicative", 0.384)
        assert found.per_hour == 2 * 0.384


def test_hyperpod_is_not_priced_with_ec2_figures() -> None:
    found = estimated("dev", {**EAST, "node_groups.gpu.instance_type": "p5.48xlarge"})

    gpu = line(found, "gpu: p5")
    assert (gpu.state, gpu.per_hour) == ("counted", 2 * 66.048)
    assert gpu.premium == pytest.approx(0.2)
    controller = line(found, "controller: m5")
    assert (controller.state, controller.figure, controller.per_hour) == ("unknown", None, None)
    assert controller.around == (pytest.approx(0.384 * 1.18), pytest.approx(0.384 * 1.25))
    assert found.per_hour == pytest.approx(2 * 66.048 + 0.005)
    elsewhere = line(estimated("dev", {"node_groups.gpu.instance_type": "p5.48xlarge"}), "gpu: p5")
    assert (elsewhere.state, elsewhere.figure) == ("unknown", None)
    assert elsewhere.elsewhere is not None
    assert elsewhere.elsewhere.region == "us-east-1"


def test_system_groups_of_hyperpod_on_eks_are_ec2_nodes() -> None:
    found = estimated("hyperpod-eks-p5", live={"ec2.m5.2xlarge": made_up("ec2.m5.2xlarge", 0.5)})

    assert line(found, "system: m5").per_hour == 1.0


def test_a_capacity_block_is_a_fee_beside_the_sum() -> None:
    without = estimated("pcs-p6-b200")
    block = line(without, "train: p6-b200")
    assert (block.state, block.fee, without.upfront) == ("upfront", None, None)
    assert any("train: p6-b200.48xlarge (paid upfront" in one for one in without.left_out)

    found = estimated("pcs-p6-b200", days=30)
    assert found.upfront == pytest.approx(113.664 * 4 * 24 * 30)
    assert not any("train: p6-b200" in one for one in found.left_out)
    assert found.per_hour == without.per_hour == 0
    assert [one.item.what for one in found.unverified] == ["train: p6-b200.48xlarge"]

    before = estimated("pcs-p6-b200", days=30, today=dt.date(2026, 10, 6))
    assert before.upfront == pytest.approx(98.84 * 4 * 24 * 30)


def test_a_fee_of_a_price_that_does_not_hold_is_not_given() -> None:
    assert estimated("eks-trn2", days=10).upfront is None
    assert estimated("eks-trn2", days=10, accept_expired=True).upfront == pytest.approx(35.7608 * 4 * 24 * 10)


def test_a_training_plan_has_no_dated_price() -> None:
    found = estimated("prod", days=30, accept_expired=True)

    plan = line(found, "train: p5en")
    assert (plan.state, plan.fee, found.upfront) == ("indicative", None, None)
    assert plan.per_hour == pytest.approx(16 * 1452.63 / 24)


def test_a_block_of_ultraservers_is_priced_by_the_ultraserver() -> None:
    found = estimated("parallelcluster-gb200", days=1, accept_expired=True)

    block = line(found, "gb200: p6e")
    assert (block.item.unit, block.item.quantity) == ("UltraServer", 1)
    assert found.upfront == pytest.approx(761.904 * 24)
    assert found.idle is not None
    assert found.idle.node_per_hour == pytest.approx(761.904 / 18)
    odd = estimated("parallelcluster-gb200", {"node_groups.gb200.count": 20}, days=1)
    assert line(odd, "gb200: p6e").state == "unknown"


def test_a_local_zone_has_prices_of_its_own() -> None:
    found = estimated("parallelcluster-gb200", accept_expired=True)

    for what in ("head: m7g", "NAT gateway"):
        local = line(found, what)
        assert (local.state, local.figure) == ("unknown", None)
        assert local.elsewhere is not None
        assert local.elsewhere.region == "us-east-1"
    assert line(found, "KMS keys").state == "counted"


def test_spot_has_a_price_only_when_asked() -> None:
    spot = {"node_groups.more.capacity": {"kind": "spot"}, "node_groups.more.count": 2}
    assert line(estimated("parallelcluster-p5", spot), "more: p5").state == "unknown"

    asked = {"spot.p5.48xlarge": made_up("spot.p5.48xlarge", 20.5)}
    found = line(estimated("parallelcluster-p5", spot, live=asked), "more: p5")
    assert (found.state, found.per_hour, found.greatest_per_hour) == ("counted", 41.0, 82.0)
    hyperpod = estimated("dev", {"node_groups.gpu.capacity": {"kind": "spot"}})
    assert line(hyperpod, "gpu: g6e").item.key == "hyperpod-spot.g6e.12xlarge"


def test_what_was_asked_of_aws_wins_over_the_table() -> None:
    asked = {"ec2.p5.48xlarge": made_up("ec2.p5.48xlarge", 50.0)}

    assert line(estimated("parallelcluster-p5", live=asked), "reserved: p5").per_hour == 200.0


def test_what_may_be_added_makes_a_second_total() -> None:
    found = estimated("parallelcluster-p5")

    assert found.grows
    assert (found.per_hour, found.greatest_per_hour) == (
        pytest.approx(4 * 55.04 + 0.045 + 0.4 / 730),
        pytest.approx(8 * 55.04 + 0.045 + 0.4 / 730),
    )
    assert found.greatest_left_out == tuple(
        f"more: root volumes{what} (no price known)" for what in ("", ", MB/s", ", IOPS")
    )
    assert not estimated("dev").grows


def test_karpenter_fills_empty_groups() -> None:
    changes = {
        "orchestrator.autoscaling": {"max_nodes": 6},
        "node_groups.train.count": 0,
        "node_groups.train.capacity": {"kind": "on-demand"},
    }
    found = estimated("hyperpod-eks-p5", changes)

    item = line(found, "train: p5").item
    assert (item.quantity, item.greatest) == (0, 6)


def test_a_reservation_is_billed_whether_or_not_nodes_run() -> None:
    assert line(estimated("parallelcluster-p5"), "reserved: p5").item.note == (
        "billed whether or not nodes run in it"
    )


def test_the_burn_of_a_failed_node() -> None:
    idle = estimated("parallelcluster-p5").idle

    assert idle is not None
    assert (idle.group, idle.job_groups, idle.job_nodes) == ("reserved", ("reserved", "more"), 8)
    assert (idle.node_per_hour, idle.job_per_hour) == (55.04, 8 * 55.04)
    stale = estimated("eks-trn2").idle
    assert stale is not None
    assert (stale.state, stale.node_per_hour, stale.job_per_hour) == ("expired", 35.7608, None)
    unknown = estimated("dev").idle
    assert unknown is not None
    assert (unknown.node_per_hour, unknown.job_per_hour) == (None, None)


def test_nothing_burns_without_compute_nodes() -> None:
    found = estimated("parallelcluster-p5", {"node_groups.reserved": ..., "node_groups.more.max_count": 0})

    assert found.idle is None


# The order of magnitude beside the sums.


def test_the_orientation_takes_every_figure_there_is() -> None:
    found = estimated("dev")
    parts = found.orientation.parts

    nodes = 1.215 * (0.384 + 0.192 + 2 * 10.49264)  # the middle of 18-25 % over EC2
    assert parts["derived"] == pytest.approx(nodes, rel=1e-5)
    assert parts["expired"] == pytest.approx(1200 * 0.21 / 730)
    assert parts["elsewhere"] == pytest.approx(0.005 + 2 / 730)  # address and keys of us-east-1
    assert parts["counted"] == found.per_hour == pytest.approx(0.045)
    assert found.orientation.per_hour == pytest.approx(sum(parts.values()))
    assert found.orientation.missing == (
        "controller: second volumes", "login: second volumes", "gpu: second volumes",
    )  # fmt: skip
    assert found.idle is not None
    assert found.idle.node_about == pytest.approx(1.215 * 10.49264, rel=1e-5)
    assert found.idle.job_about == pytest.approx(2 * 1.215 * 10.49264, rel=1e-5)


def test_the_orientation_has_the_hours_of_what_is_paid_upfront() -> None:
    found = estimated("pcs-p6-b200").orientation

    assert found.parts["upfront"] == pytest.approx(4 * 113.664)
    assert found.missing == ("PCS fee for each node", "PCS accounting")


def test_a_database_in_two_zones_follows_from_one_in_one_zone() -> None:
    database = line(estimated("prod"), "RDS MySQL")

    assert (database.state, database.figure, database.basis) == ("unknown", None, "derived")
    assert database.about_per_hour == pytest.approx(2 * 0.168)
    assert database.derived is not None
    assert (database.derived.region, database.derived.verified) == ("us-west-2", False)


def test_what_was_asked_of_aws_needs_nothing_derived() -> None:
    asked = {"hyperpod.m5.2xlarge": made_up("hyperpod.m5.2xlarge", 0.5)}
    controller = line(estimated("dev", live=asked), "controller: m5")

    assert (controller.basis, controller.about_per_hour, controller.derived) == ("own", 0.5, None)


def test_groups_that_may_grow_weigh_nothing_in_the_orientation() -> None:
    few = {"node_groups.more.max_count": 0}

    grown = estimated("parallelcluster-p5").orientation.per_hour
    assert grown == estimated("parallelcluster-p5", few).orientation.per_hour


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_the_orientation_stands_beside_the_sums(base: str, accepted: bool) -> None:
    found = estimated(base, accept_expired=accepted)
    about = found.orientation

    assert about.parts.get("counted", 0) == pytest.approx(found.per_hour)
    assert about.per_hour >= found.per_hour
    assert about.per_month == pytest.approx(730 * about.per_hour)
    assert found.per_hour == pytest.approx(sum(one.per_hour or 0 for one in found.counted))
    assert set(about.missing) <= {one.item.what for one in found.lines if one.state == "unknown"}
    assert all(one.basis == "own" for one in found.lines if one.state in ("counted", "upfront"))


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_a_total_is_complete_or_says_what_it_lacks(base: str) -> None:
    found = estimated(base, days=30)
    summed = [one for one in found.lines if one.state in ("counted", "upfront")]
    by_use = [one for one in found.lines if one.state == "by use"]

    named = len(found.left_out) + len(found.greatest_left_out)
    assert len(summed) + len(by_use) + named == len(found.lines)
    assert found.complete == (not found.left_out)


def test_complete_once_everything_has_a_price() -> None:
    config = environment("dev")
    asked = {item.key: made_up(item.key, 1.0) for item in billed(config)}
    found = estimate(config, today=TODAY, live=asked)

    assert found.complete
    assert found.per_hour == sum(item.quantity for item in billed(config))


@settings(deadline=None, max_examples=60)
@given(
    gpu=st.integers(0, 200),
    more=st.integers(0, 50),
    usd=st.floats(0.01, 500, allow_nan=False),
    accepted=st.booleans(),
    today=st.dates(dt.date(2026, 1, 1), dt.date(2027, 12, 31)),
)
def test_more_nodes_are_never_cheaper_and_sums_are_of_lines(
    gpu: int, more: int, usd: float, accepted: bool, today: dt.date
) -> None:
    asked = {
        "ec2.m7i.4xlarge": made_up("ec2.m7i.4xlarge", usd),
        "ebs.gp3": made_up("ebs.gp3", usd, unit="month"),
    }

    def of(count: int) -> Estimate:
        groups = {"node_groups.reserved.count": count, "node_groups.more.max_count": more}
        return estimated("parallelcluster-p5", groups, today=today, accept_expired=accepted, live=asked)

    small, large = of(gpu), of(gpu + 1)
    assert large.per_hour >= small.per_hour
    assert large.greatest_per_hour >= small.greatest_per_hour
    for found in (small, large):
        assert found.per_hour == pytest.approx(sum(one.per_hour or 0 for one in found.counted))
        assert found.greatest_per_hour >= found.per_hour - 1e-9
        assert found.per_day == pytest.approx(24 * found.per_hour)
        assert found.per_month == pytest.approx(730 * found.per_hour)
        assert all(one.figure and (accepted or not one.figure.expired) for one in found.counted)
        assert all(one.figure and one.figure.date for one in found.counted)


# The table itself.


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table['region']} {next(iter(table['usd']))}")
def test_every_figure_has_a_source(table: dict[str, Any]) -> None:
    assert len(table["source"]) > 10
    assert table["unit"] in ("hour", "day", "month", "gb")
    assert table["date"] is None or dt.date.fromisoformat(table["date"]) <= TODAY
    assert isinstance(table["verified"], bool)
    assert all(usd > 0 for usd in table["usd"].values())
    for key, usd in table["usd"].items():
        found = figure(key, table["region"] or "us-east-2", today=TODAY)
        assert found is not None
        assert (found.usd, found.indicative) == (usd, table["date"] is None)


@pytest.mark.parametrize("place", ["us-east-1", "us-east-2", "us-west-2", "eu-west-1"])
def test_file_systems_are_known_where_clusters_stand(place: str) -> None:
    lustre = [f"lustre.persistent-2-ssd.{tier}" for tier in (125, 250, 500, 1000)]
    found = [figure(key, place, today=TODAY) for key in (*lustre, "openzfs.single-az-ha-2.throughput")]

    assert all(one is not None and one.date and one.region == place for one in found)
    costs = [one.usd for one in found[:4] if one]
    assert costs == sorted(costs)


def test_no_figure_stands_twice() -> None:
    keys = [(key, table["region"]) for table in TABLES for key in table["usd"]]

    assert len(keys) == len(set(keys))
    # what prices.csv has is not repeated
    assert not [key for key, region in keys if key.startswith("ec2.") and price(key[4:], region)]


def test_the_premium_is_what_the_figures_say() -> None:
    low, high = hyperpod_premium()
    premiums: list[float] = []
    for table in TABLES:
        for key, usd in table["usd"].items():
            ec2 = figure(key.replace("hyperpod.", "ec2."), table["region"] or "us-east-1")
            if key.startswith("hyperpod.") and ec2:
                premiums.append(usd / ec2.usd)

    assert len(premiums) == 6
    assert (round(min(premiums), 2), round(max(premiums), 2)) == (low, high)
