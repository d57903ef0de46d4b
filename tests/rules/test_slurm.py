"""Rules on Slurm's settings, each broken and mended."""

from __future__ import annotations

import pytest
from rules_table import cases, found, table_tests

from ultracluster.catalog.slurm import hyperpod_slurm
from ultracluster.rules.sets import SLU

SETTINGS = "orchestrator.slurm_settings"
TEAMS = {"teams": {"research": {"users": ["alice"]}}}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("slurm"))


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
