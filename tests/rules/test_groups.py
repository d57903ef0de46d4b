"""Rules on node groups: each setting under an orchestrator that has it, and under one that does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rows import for_each
from rules_support import changed, environment_data, loaded
from rules_table import cases, found, table_tests

from ultracluster.catalog import instance_type
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES, SLURM
from ultracluster.model import resolve
from ultracluster.rules import check
from ultracluster.rules.sets import GRP

KINDS = sorted(SLURM | KUBERNETES)
GPU = "node_groups.gpu"
VALUES: dict[str, Any] = {
    "placement_group": "none",
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
    "mig_layout": "all-balanced",
    "mig_profile": "1g.10gb",
    "gpu_time_slices": 4,
    "root_volume_throughput_mbps": 500,
    "root_volume_iops": 3000,
    "ena_express": "tcp",
    "image_release": "2.1.0",
    "zone_id": "usw2-az1",
    "restricted": {},
    "gres": [{"auto_detect": "nvml"}],
    "scaledown_seconds": 300,
}
HAVE = {
    "placement_group": {"parallelcluster", "pcs", "eks"},
    "min_count": HYPERPOD,
    "max_count": {"parallelcluster", "pcs", "eks"},
    "volume_gib": HYPERPOD,
    "root_volume_gib": {"parallelcluster", "pcs", "eks"},
    "root_volume_throughput_mbps": {"parallelcluster", "pcs", "eks"},
    "root_volume_iops": {"parallelcluster", "pcs", "eks"},
    "ena_express": {"pcs", "eks"},
    "image_release": HYPERPOD,
    "deep_health_checks": HYPERPOD,
    "patching": HYPERPOD,
    "efa_interface": HYPERPOD | {"eks"},
    "partition": SLURM,
    "slurm_settings": {"parallelcluster", "pcs"},
    "labels": KUBERNETES,
    "taints": KUBERNETES,
    "instance_types": {"hyperpod-eks"},
    "mig_layout": KUBERNETES | {"pcs"},
    "mig_profile": KUBERNETES | {"pcs"},
    "gpu_time_slices": {"eks"},
    "zone_id": HYPERPOD,
    "restricted": {"hyperpod-eks"},
    "gres": {"pcs"},
    "scaledown_seconds": {"pcs"},
}
BOTH = {
    "kind": "reservation",
    "id": "cr-0123456789abcdef0",
    "resource_group_arn": "arn:aws:resource-groups:us-west-2:111122223333:group/training",
}


TRAIN, SYSTEM = "node_groups.train", {"role": "system", "instance_type": "m5.2xlarge", "count": 2}
IMAGE, ID = "ami-0123456789abcdef0", "cr-0123456789abcdef0"
BLOCK = {"kind": "capacity-block", "id": ID}


def kind(name: str) -> dict[str, Any]:
    return {"orchestrator": {"kind": name}}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("groups"))


@for_each("orchestrator", KINDS)
@for_each("setting", VALUES)
def test_a_setting_is_refused_where_its_orchestrator_is_not(setting: str, orchestrator: str) -> None:
    changes = {**kind(orchestrator), f"{GPU}.partition": ..., f"{GPU}.{setting}": VALUES[setting]}
    refused = {one.dotted for one in found(GRP, changes) if one.code == "GRP001"}
    assert refused == (set() if orchestrator in HAVE[setting] else {f"{GPU}.{setting}"})


def test_eks_launches_the_system_groups_of_hyperpod() -> None:
    system = {**kind("hyperpod-eks"), f"{GPU}.partition": ..., f"{GPU}.role": "system"}

    def settings(more: dict[str, Any]) -> list[str]:
        return [one.dotted for one in found(GRP, {**system, **more}) if one.code == "GRP001"]

    assert settings({f"{GPU}.root_volume_gib": 300}) == []
    assert settings({f"{GPU}.deep_health_checks": ["instance-stress"]}) == [f"{GPU}.deep_health_checks"]


def test_every_setting_of_a_group_was_thought_of() -> None:
    """A new field is either every orchestrator's, or in the table of the rule."""
    for_all = {"role", "instance_type", "count", "capacity", "threads_per_core", "image", "lifecycle_steps"}
    assert set(NodeGroup.model_fields) == for_all | set(VALUES)


def test_rules_of_one_orchestrator_are_silent_elsewhere() -> None:
    data = changed(environment_data(), kind("pcs"))
    assert not [one for one in check(loaded(data)) if one.code.startswith("HPS")]


@pytest.mark.parametrize("base", ["dev", "hyperpod-eks-p5"])
def test_a_reservation_named_twice_is_reported_on_hyperpod_too(base: str) -> None:
    """Where its capacity comes from cannot be told then: no rule but the one on the names speaks of it."""
    group = "gpu" if base == "dev" else "train"

    codes = {one.code for one in found(GRP, {f"node_groups.{group}.capacity": BOTH}, base)}

    assert codes == {"GRP004"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"node_groups.system.max_count": 1}, "GRP003"),
        ({"node_groups.system.capacity": BLOCK}, "GRP021"),
        (
            {"node_groups.system.instance_type": "g5.48xlarge", "node_groups.system.threads_per_core": 1},
            "GRP031",
        ),
    ],
)
def test_system_groups_of_hyperpod_are_held_to_what_eks_launches(changes: dict[str, Any], code: str) -> None:
    assert code in {one.code for one in found(GRP, changes, "hyperpod-eks-p5")}


def test_a_group_is_judged_without_a_file() -> None:
    cluster = resolve(
        loaded(
            changed(environment_data(), {f"{GPU}.threads_per_core": 2, f"{GPU}.capacity": BOTH})
        ).environment
    )

    findings = check(replace(cluster.groups["gpu"], type=instance_type("g7.48xlarge")))

    assert {(one.code, one.path) for one in findings if one.code.startswith("GRP")} == {
        ("GRP004", ("capacity", "resource_group_arn")),
        ("GRP031", ("threads_per_core",)),
    }


def test_nodes_that_are_always_there_are_deployed_when_their_block_begins() -> None:
    changes = {"acknowledge": [], f"{TRAIN}.role": "login", f"{TRAIN}.partition": ...}

    (finding,) = [one for one in found(GRP, changes, "pcs-p6-b200") if one.code == "GRP024"]

    assert not finding.remedy.options
    assert "deploy when it begins" in finding.instead
