"""Slurm's settings in a plan."""

from __future__ import annotations

from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.model import resolve
from ultracluster.plan.slurm import SlurmPlan, slurm_lines, slurm_plan


def plan(base: str, changes: dict[str, Any] | None = None) -> SlurmPlan | None:
    return slurm_plan(resolve(loaded(changed(environment_data(base), changes or {})).environment))


def test_every_setting_is_told_with_whose_it_is() -> None:
    told = plan("pcs-p6-b200")
    assert told is not None
    lines = slurm_lines(told)

    assert "yours: UnkillableStepTimeout=300" in lines
    of = {one.name: one for one in told.settings}
    assert (
        of["PrologFlags"].value == "Alloc,Contain,DeferBatch" and of["PrologFlags"].origin == "ultracluster"
    )
    assert of["ConstrainDevices"].file == "cgroup.conf" and of["SelectType"].origin == "service"
    count = sum(one.origin == "ultracluster" for one in told.settings)
    assert lines[-1].startswith(f"{count} settings of ours")


def test_what_yours_takes_away_is_told() -> None:
    told = plan("prod", {"orchestrator.slurm_settings": {"SchedulerParameters": "bf_continue"}})

    assert told and any(
        "SchedulerParameters=bf_continue (without bf_window=10080" in one for one in slurm_lines(told)
    )


def test_a_cluster_whose_slurm_conf_is_the_services_has_none_of_ours() -> None:
    told = plan("dev", {"orchestrator": {
        "kind": "hyperpod-slurm", "provisioning": "classic", "slurm_config_strategy": "managed",
    }})  # fmt: skip

    assert told and slurm_lines(told)[0].startswith("none of ours: slurm_config_strategy is `managed`")
    assert {one.origin for one in told.settings} == {"service"}


def test_where_nodes_decide_it_is_said() -> None:
    told = plan("prod")
    assert told is not None
    notes = {one.name: one.note for one in told.settings}
    assert notes["MetricsType"] == "from Slurm 25.11 on"
    assert notes["RebootProgram"] == "unless the service has set it"
    assert plan("eks-p5en") is None
