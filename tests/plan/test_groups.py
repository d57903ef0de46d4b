"""Node groups in figures: nodes, EFA, and where they are placed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.config import Environment
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import Plan, group_notes, plan

TODAY = dt.date(2026, 11, 21)


def environment(name: str, changes: dict[str, Any] | None = None) -> Environment:
    return loaded(changed(environment_data(name), changes or {})).environment


def planned(name: str, changes: dict[str, Any] | None = None, model: float | None = None) -> Plan:
    return plan(resolve(environment(name, changes)), model, TODAY)


# environment and group -> accelerators, their GiB, domain, EFA interfaces and Gbit/s of a node, Gbit/s of all
FIGURES = {
    ("dev", "gpu"): (8, 357.62, (1, ""), 1, 100, 200),
    ("prod", "train"): (128, 18_048, (8, "NVLink"), 16, 3200, 51_200),
    ("trainium", "trn2"): (128, 12_288, (16, "NeuronLink"), 16, 3200, 25_600),
    # an instance carries 3200 Gbit/s, of which EFA has 1600: AWS's 28,800 for the UltraServer of 18
    ("parallelcluster-gb200", "gb200"): (72, 13_320, (72, "NVLink"), 4, 1600, 28_800),
    # four that are reserved; four more that come for a job count, too
    ("parallelcluster-p5", "reserved"): (32, 2560, (8, "NVLink"), 32, 3200, 12_800),
    ("parallelcluster-p5", "more"): (32, 2560, (8, "NVLink"), 32, 3200, 12_800),
    ("pcs-p6-b200", "train"): (32, 5729.96, (8, "NVLink"), 8, 3200, 12_800),
}


@pytest.mark.parametrize("case", FIGURES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_figures_of_a_group(case: tuple[str, str]) -> None:
    group = next(one for one in planned(case[0]).groups if one.name == case[1])
    domain = (group.domain.size, group.domain.link) if group.domain else None

    assert (
        group.accelerators, round(group.accelerator_memory_gib, 2), domain,
        group.efa_interfaces, group.efa_gbps_per_node, group.efa_gbps,
    ) == FIGURES[case]  # fmt: skip


PLACEMENTS = {
    ("prod", "train"): "hyperpod",
    ("prod", "login"): "",
    ("parallelcluster-p5", "reserved"): "none",
    ("parallelcluster-p5", "more"): "cluster",
    ("eks-p5en", "train"): "none",
}


@pytest.mark.parametrize("case", PLACEMENTS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_placement_of_a_group(case: tuple[str, str]) -> None:
    assert next(one for one in planned(case[0]).groups if one.name == case[1]).placement == PLACEMENTS[case]


def test_a_reservation_in_a_group_is_placed_there() -> None:
    capacity = {"kind": "reservation", "id": "cr-0123456789abcdef0", "placement_group": "theirs"}
    found = planned("eks-p5en", {"node_groups.train.capacity": capacity})
    assert found.groups[1].placement == "reservation-group"


@pytest.mark.parametrize(("lent", "said"), [(True, "interruptible reservation"), (False, "reservation")])
def test_a_reservation_that_is_lent_is_said_so(lent: bool, said: str) -> None:
    capacity = {"kind": "reservation", "id": "cr-0123456789abcdef0", "interruptible": lent}
    found = planned("pcs-p6-b200", {"node_groups.train.capacity": capacity, "acknowledge": []})
    assert next(one for one in found.groups if one.name == "train").capacity == said


def test_a_group_may_decline_its_placement_group() -> None:
    changes: dict[str, Any] = {"node_groups.train.capacity": {"kind": "on-demand"}}
    assert planned("eks-p5en", changes).groups[1].placement == "cluster"
    changes["node_groups.train.placement_group"] = "none"
    assert planned("eks-p5en", changes).groups[1].placement == "none"


def test_what_is_special_about_a_group_is_a_line_each() -> None:
    made = planned("wishes/groups")
    notes = {group.name: group_notes(group, made.zone_id) for group in made.groups}

    assert notes["system"] == ()
    assert notes["train"] == ("train is pinned to 2.1.0 of HyperPod's image",)
    assert notes["spot-1"] == (
        "spot-1 is in use2-az1",
        "spot-1 may also be g6.12xlarge, in this order",
        "spot-1 is updated at cron(0 3 ? * SUN *) UTC, 50 % at a time, rolled back by groups-serving-errors",
    )
    assert "serve is patched when each node is idle" in notes["serve"]
    (tune,) = (group for group in planned("wishes/restricted-groups").groups if group.restricted)
    assert "restricted" in group_notes(tune, "use1-az6")[0]


def test_nodes_in_other_zones_take_addresses_there() -> None:
    made = planned("wishes/groups")

    assert {zone.zone_id: (zone.groups, zone.usable) for zone in made.further_zones} == {
        "use2-az1": (("spot-1",), 8187),
        "use2-az3": (("spot-3",), 8187),
    }
    assert not any("spot" in row.what for row in made.addresses.rows)
    assert planned("prod").further_zones == ()
