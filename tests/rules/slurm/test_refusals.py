"""Rules on what Slurm refuses, on each orchestrator: what is said, where, and what is left to other rules."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data
from rules_table import assert_remedy_ends, found

from ultracluster.config import Finding
from ultracluster.rules.sets import SLU

SETTINGS = "orchestrator.slurm_settings"
TRAIN = "node_groups.train.slurm_settings"
GRES = "node_groups.train.gres"
PARTITION = "orchestrator.partitions"


def of(base: str, changes: dict[str, Any]) -> list[Finding]:
    return [one for one in found(SLU, changes, base) if one.code in ("SLU046", "SLU047")]


PCL, PCS, HPS = "parallelcluster-p5", "pcs-p6-b200", "prod"


@pytest.mark.parametrize(
    ("base", "code", "place", "name", "value", "says"),
    [
        (PCL, "SLU046", SETTINGS, "KillWeight", 60, "unrecognized key"),
        (
            PCL,
            "SLU046",
            SETTINGS,
            "MetricsParameters",
            "ignore_private_data",
            "slurmctld 25.11 does not start",
        ),
        (PCL, "SLU046", SETTINGS, "DefMemPerNode", "100G", "not a valid number"),
        (PCL, "SLU046", SETTINGS, "SelectTypeParameters", "CR_Memory", "You need at least"),
        (PCL, "SLU046", SETTINGS, "TaskPluginParam", "autobind=numa", "Bad TaskPluginParam"),
        (PCL, "SLU046", SETTINGS, "SlurmSchedLogLevel", 1, "requires SlurmSchedLogFile"),
        (PCL, "SLU047", SETTINGS, "PowerPlugin", "power/none", "ignores"),
        (HPS, "SLU046", SETTINGS, "PrologFlags", "Alloc,Wait", "PrologFlags invalid"),
        (HPS, "SLU046", SETTINGS, "HealthCheckTimeout", 30, "slurmctld 25.11 does not start"),
        (HPS, "SLU046", SETTINGS, "TaskPluginParam", "SlurmdSpecOverride", "Bad TaskPluginParam"),
        (HPS, "SLU047", SETTINGS, "CliFilterParameters", "x", "slurmctld 24.11 does not start"),
        (PCS, "SLU046", SETTINGS, "PriorityMaxAge", "14d", "Bad value"),
        (PCS, "SLU046", SETTINGS, "Licenses", "matlab:many", "Invalid configured licenses"),
        (PCL, "SLU046", SETTINGS, "DebugFlags", "Backfill,GPU", "DebugFlags invalid"),
        (HPS, "SLU047", SETTINGS, "DebugFlags", "AuditTLS", "slurmctld 24.11 does not start"),
        (PCS, "SLU046", TRAIN, "RealMemory", "1900G", "not a valid number"),
        (PCS, "SLU046", "orchestrator.cgroup_settings", "ConstrainCores", "always", "slurmd 25.11 does not"),
        (PCS, "SLU046", f"{GRES}[0]", "count", 9, "count does not match File value"),
        (PCS, "SLU046", f"{GRES}[0]", "multiple_files", "/dev/a,/dev/b", "mutually exclusive"),
        (PCS, "SLU046", f"{PARTITION}.train.slurm_settings", "MaxTime", "7d", "Bad value"),
    ],
)
def test_a_daemons_own_words_are_the_reason(
    base: str, code: str, place: str, name: str, value: str | int, says: str
) -> None:
    changes: dict[str, Any] = {place: {name: value}}
    if place.startswith(PARTITION):
        changes = {PARTITION: {"train": {"slurm_settings": {name: value}}}}
    if place.startswith(GRES):
        changes = {
            GRES: [{"name": "gpu", "file": "/dev/nvidia[0-7]", name: value}],
            TRAIN: {"Gres": "gpu:8"},
        }
    at = f"{place}.{name}"
    findings = of(base, changes)

    assert [(one.code, one.dotted) for one in findings] == [(code, at)]
    assert says in findings[0].message
    assert_remedy_ends(code, at, changed(environment_data(base), changes))


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        ("prod", {SETTINGS: {"TaskPlugin": "no/such"}}),  # SLU001
        ("prod", {"orchestrator.lifecycle": "none", SETTINGS: {"NoSuchKey": 1}}),  # SLU002
        ("prod", {SETTINGS: {"MCSParameters": "ondemand"}}),  # the image may set a plugin
        ("prod", {SETTINGS: {"FirstJobId": 100}}),
        ("parallelcluster-p5", {SETTINGS: {"Prolog": "/x"}}),  # PCL040
        ("parallelcluster-p5", {SETTINGS: {"PrologFlags": "Alloc,Contain,NoHold"}}),  # SLU004
        ("pcs-p6-b200", {SETTINGS: {"NoSuchKey": 1}}),  # PCS040
        ("pcs-p6-b200", {SETTINGS: {"CliFilterParameters": "x"}, "orchestrator.slurm_version": "25.05"}),
        ("pcs-p6-b200", {"orchestrator.slurmdbd_settings": {"PurgeJobEnvAfter": "12months"}}),
        ("pcs-p6-b200", {"orchestrator.slurm_version": "27.05", SETTINGS: {"PriorityMaxAge": "14d"}}),
        ("hyperpod-eks-p5", {}),
    ],
)  # fmt: skip
def test_what_others_report_and_what_cannot_be_judged_passes(base: str, changes: dict[str, Any]) -> None:
    assert not of(base, changes)
