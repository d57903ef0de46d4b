"""Rules on Slurm's settings, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from rules_table import Case, found, table_tests

from ultracluster.catalog.slurm import hyperpod_slurm
from ultracluster.rules.sets import SLU

SETTINGS = "orchestrator.slurm_settings"
TEAMS = {"teams": {"research": {"users": ["alice"]}}}
CLASSIC = {"kind": "hyperpod-slurm", "provisioning": "classic", "slurm_config_strategy": "overwrite"}


def case(
    rule: str,
    settings: dict[str, Any],
    says: str,
    instead: str,
    mended: dict[str, Any],
    base: str,
    **broken: Any,
) -> Case:
    at = f"{SETTINGS}.{list(settings)[-1]}"
    return Case(rule, broken | {SETTINGS: settings}, at, says, instead, {SETTINGS: mended}, base)


CASES = [
    case("SLU001", {"taskplugin": "task/cgroup"}, "belongs to HyperPod", "auto-resume", {}, "prod"),
    case("SLU001", {"TopologyPlugin": "topology/tree"}, "belongs to", "the service writes", {}, "prod"),
    Case(
        "SLU002", {"orchestrator": CLASSIC | {"slurm_settings": {"KillWait": 90}}}, SETTINGS,
        "`overwrite`: slurm.conf belongs", "merge", {"orchestrator.slurm_config_strategy": "merge"}, "dev",
    ),
    Case(
        "SLU002", {"orchestrator.lifecycle": "none", SETTINGS: {"KillWait": 90}}, SETTINGS,
        "nothing of ours runs", "on-init-complete", {"orchestrator.lifecycle": "on-init-complete"}, "dev",
    ),
    case("SLU003", {"KillWait": 90, "killwait": 91}, "given already", "remove", {"KillWait": 90}, "prod"),
    case(
        "SLU004", {"PrologFlags": "Alloc,X11,NoHold"}, "does not start", "Alloc,X11",
        {"PrologFlags": "Alloc,X11"}, "pcs-p6-b200",
    ),
    case(
        "SLU005", {"PreemptMode": "REQUEUE"}, "PreemptType=preempt/none with PreemptMode=REQUEUE", "remove",
        {}, "pcs-p6-b200",
    ),
    case(
        "SLU005", {"PreemptType": "preempt/partition_prio"}, "with PreemptMode=OFF", "REQUEUE",
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL"}, "prod", **TEAMS,
    ),
    case(
        "SLU006", {"UnkillableStepTimeout": 200}, "MessageTimeout (60)", "300",
        {"UnkillableStepTimeout": 300}, "parallelcluster-p5",
    ),
]  # fmt: skip


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


@pytest.mark.parametrize("name", hyperpod_slurm().denied)
def test_what_hyperpod_keeps_to_itself_is_refused_in_any_case(name: str) -> None:
    broken = {SETTINGS: {name.upper(): "x"}}

    assert "SLU001" in {one.code for one in found(SLU, broken, "prod")}


@pytest.mark.parametrize(
    "settings",
    [
        {"PreemptMode": "OFF"},
        {"PreemptMode": "CANCEL"},
        {"PreemptType": "preempt/qos"},
        {"PreemptType": "preempt/none"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"},
        {},
    ],
)
def test_preemption_of_teams_may_be_changed(settings: dict[str, str]) -> None:
    assert "SLU005" not in {one.code for one in found(SLU, TEAMS | {SETTINGS: settings}, "prod")}
