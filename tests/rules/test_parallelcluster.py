"""Rules on ParallelCluster, each broken and mended; what they know compared with the package's own limits."""

from __future__ import annotations

from typing import Any

import pytest
from parallelcluster.cases import BASE, BLOCK, CAPACITY, CASES, PLAN, RESERVATION, TYPE
from parallelcluster.harness import package_limits
from project import ENVIRONMENTS
from rules_table import Case, assert_breaks, assert_complete, assert_mended, found

from ultracluster.catalog import instance_types
from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.compute.capacity import decide, placement_for
from ultracluster.config.capacity import CapacityBlock, OnDemand, Reservation, Spot, TrainingPlan
from ultracluster.rules.parallelcluster import RULES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_breaks(case: Case) -> None:
    assert_breaks(RULES, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_mended(case: Case) -> None:
    assert_mended(RULES, case)


def test_every_rule_is_broken_once() -> None:
    assert_complete(RULES, CASES)


def test_the_base_breaks_nothing() -> None:
    assert found(RULES, BASE) == []


@pytest.mark.parametrize("base", ENVIRONMENTS)
def test_shipped_environments_break_nothing(base: str) -> None:
    assert [one for one in found(RULES, {}, base) if not one.acknowledged] == []


def test_ids_and_titles_are_unique_and_sourced() -> None:
    assert len({rule.id for rule in RULES.rules}) == len(RULES.rules)
    assert len({rule.title for rule in RULES.rules}) == len(RULES.rules)
    assert all(rule.source and not rule.title.endswith(".") for rule in RULES.rules)


def test_types_that_nobody_knows_are_left_to_others() -> None:
    assert found(RULES, {**BASE, TYPE: "p99.metal", CAPACITY: {"kind": "spot"}}) == []


CAPACITIES = [
    OnDemand(),
    Spot(kind="spot"),
    Reservation(kind="reservation"),
    Reservation.model_validate(RESERVATION),
    Reservation.model_validate({**RESERVATION, "placement_group": "mine"}),
    Reservation.model_validate({"kind": "reservation", "resource_group_arn": "arn:aws:resource-groups:::g"}),
    CapacityBlock.model_validate(BLOCK),
    TrainingPlan.model_validate(PLAN),
]


@pytest.mark.parametrize("name", ["p5.48xlarge", "g6e.48xlarge", "p6e-gb200.36xlarge", "trn2.48xlarge"])
@pytest.mark.parametrize("capacity", CAPACITIES, ids=str)
def test_rules_say_what_the_table_says(capacity: Any, name: str) -> None:
    known = instance_types()[name]
    if getattr(capacity, "placement_group", None):
        placement = "reservation-group"
    else:
        placement = placement_for(capacity, instance_type=known, orchestrator="parallelcluster").kind
    decision = decide(capacity, orchestrator="parallelcluster", placement=placement, instance_type=known)

    said = found(RULES, {**BASE, TYPE: name, CAPACITY: capacity.model_dump(exclude_none=True)})

    hits = {(one.code, one.severity, one.message) for one in said if one.code in ("PCL020", "PCL021")}
    refusal = (decision.rule, decision.severity, decision.reason)
    assert hits == (set() if decision.legal else {refusal})


def test_the_catalogue_has_the_limits_of_the_package() -> None:
    theirs, ours = package_limits(), parallelcluster()
    names = {key: getattr(ours.names, key) for key in theirs["names"]}
    gb200 = ours.families["p6e-gb200"]

    assert theirs["version"] in ours.checked_versions
    assert names == theirs["names"]
    assert ours.counts == theirs["counts"]
    assert ours.root_volume_gib(theirs["version"]) == theirs["root_volume_gib"]
    assert list(ours.log_retention_days) == theirs["log_retention_days"]
    assert sorted(ours.systems_without_image) == sorted(theirs["systems_without_image"])
    assert sorted(gb200.systems) == sorted(theirs["systems_of_gb200"])
    assert {"p6e-gb200": list(gb200.block_sizes)} == theirs["block_sizes"]
    assert sorted(ours.small_sizes["systems"]) == sorted(theirs["systems_without_small_sizes"])
    assert ours.reserved_tag_prefix == theirs["reserved_tag_prefix"]
    assert sorted(ours.reserved_mount_paths) == sorted(theirs["reserved_mount_paths"])
    assert sorted(ours.regions) == sorted(filter(None, theirs["regions"]))
    assert ours.sssd == theirs["sssd"]
    assert {
        level: sorted(name.lower() for name in settings) for level, settings in ours.slurm_settings.items()
    } == {level: sorted(names) for level, names in theirs["slurm_settings"].items()}


def test_the_model_has_the_systems_of_the_package() -> None:
    from typing import get_args

    from ultracluster.config.parallelcluster import ParallelCluster

    systems = get_args(ParallelCluster.model_fields["os"].annotation)
    assert sorted(systems) == sorted(package_limits()["systems"])
