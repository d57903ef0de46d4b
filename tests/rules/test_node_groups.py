"""Rules on node groups: each setting under an orchestrator that has it, and under one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from rules_table import Case, assert_breaks, assert_complete, assert_mended, found

from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM
from ultracluster.rules import check
from ultracluster.rules.node_groups import RULES

KINDS = sorted(SLURM | KUBERNETES)
GPU = "node_groups.gpu"
VALUES: dict[str, Any] = {
    "min_count": 2,
    "max_count": 4,
    "volume_gib": 600,
    "root_volume_gib": 300,
    "deep_health_checks": ["instance-stress"],
    "patching": {"kind": "when-idle"},
    "efa_interface": "efa",
    "partition": "gpu",
    "slurm_settings": {"Weight": 10},
    "labels": {"team": "a"},
    "taints": [{"key": "gpu", "effect": "NoSchedule"}],
    "instance_types": ["g6e.24xlarge"],
    "mig_profile": "1g.10gb",
}
HAVE = {
    "min_count": HYPERPOD,
    "max_count": {"parallelcluster", "pcs", "eks"},
    "volume_gib": HYPERPOD,
    "root_volume_gib": {"parallelcluster", "pcs", "eks"},
    "deep_health_checks": HYPERPOD,
    "patching": HYPERPOD,
    "efa_interface": HYPERPOD | {"eks"},
    "partition": SLURM,
    "slurm_settings": {"parallelcluster", "pcs"},
    "labels": KUBERNETES,
    "taints": KUBERNETES,
    "instance_types": {"hyperpod-eks"},
    "mig_profile": {"hyperpod-eks"},
}
SPOT = {"kind": "spot", "allocation": "capacity-optimized"}
BOTH = {
    "kind": "reservation",
    "id": "cr-0123456789abcdef0",
    "resource_group_arn": "arn:aws:resource-groups:us-west-2:111122223333:group/training",
}


def kind(name: str) -> dict[str, Any]:
    return {"orchestrator": {"kind": name}}


CASES = [
    Case(
        "GRP001",
        {f"{GPU}.max_count": 4},
        f"{GPU}.max_count",
        "says nothing to hyperpod-slurm",
        "remove max_count",
        {f"{GPU}.max_count": ...},
    ),
    Case(
        "GRP001",
        {**kind("eks"), f"{GPU}.partition": "gpu"},
        f"{GPU}.partition",
        "this is Kubernetes",
        "labels",
        {f"{GPU}.partition": ...},
    ),
    Case(
        "GRP001",
        {**kind("pcs"), f"{GPU}.volume_gib": 600},
        f"{GPU}.volume_gib",
        "HyperPod's",
        "root_volume_gib",
        {f"{GPU}.volume_gib": ..., f"{GPU}.root_volume_gib": 600},
    ),
    Case(
        "GRP001",
        {f"{GPU}.slurm_settings": {"Weight": 1}},
        f"{GPU}.slurm_settings",
        "writes slurm.conf itself",
        "remove slurm_settings",
        {f"{GPU}.slurm_settings": {}},
    ),
    Case(
        "GRP002",
        {f"{GPU}.capacity": SPOT},
        f"{GPU}.capacity.allocation",
        "cannot be told to hyperpod-slurm",
        "remove allocation",
        kind("pcs"),
    ),
    Case(
        "GRP003",
        {**kind("pcs"), f"{GPU}.max_count": 1},
        f"{GPU}.max_count",
        "1 nodes at the most, and 2",
        "max_count: 2",
        {f"{GPU}.max_count": 2},
    ),
    Case(
        "GRP004",
        {**kind("pcs"), f"{GPU}.capacity": BOTH},
        f"{GPU}.capacity.resource_group_arn",
        "not by both",
        "the one or the other",
        {f"{GPU}.capacity.id": ...},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_rule_speaks(case: Case) -> None:
    assert_breaks(RULES, case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_remedy_works(case: Case) -> None:
    assert_mended(RULES, case)


def test_every_rule_is_in_the_table() -> None:
    assert_complete(RULES, CASES)


@pytest.mark.parametrize("orchestrator", KINDS)
@pytest.mark.parametrize("setting", VALUES)
def test_a_setting_is_refused_where_its_orchestrator_is_not(setting: str, orchestrator: str) -> None:
    changes = {**kind(orchestrator), f"{GPU}.partition": ..., f"{GPU}.{setting}": VALUES[setting]}
    refused = {one.dotted for one in found(RULES, changes) if one.code == "GRP001"}
    assert refused == (set() if orchestrator in HAVE[setting] else {f"{GPU}.{setting}"})


def test_eks_launches_the_system_groups_of_hyperpod() -> None:
    system = {**kind("hyperpod-eks"), f"{GPU}.partition": ..., f"{GPU}.role": "system"}
    assert not found(RULES, {**system, f"{GPU}.root_volume_gib": 300})
    assert found(RULES, {**system, f"{GPU}.deep_health_checks": ["instance-stress"]})


def test_every_setting_of_a_group_was_thought_of() -> None:
    """A new field is either every orchestrator's, or in the table of the rule."""
    for_all = {"role", "instance_type", "count", "capacity", "threads_per_core", "image"}
    assert set(NodeGroup.model_fields) == for_all | set(VALUES)


def test_rules_of_one_orchestrator_are_silent_elsewhere() -> None:
    data = changed(environment_data(), kind("pcs"))
    assert not [one for one in check(loaded(data)) if one.code.startswith("HPS")]
