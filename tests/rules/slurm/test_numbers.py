"""Rules on what nodes are said to have: refused before slurmd refuses it, on each orchestrator."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from rules_table import assert_remedy_ends, found

from ultracluster.config import Finding
from ultracluster.rules import check
from ultracluster.rules.sets import SLU

PCL, PCS, HPS = "parallelcluster-p5", "pcs-p6-b200", "prod"
SETTINGS, TRAIN = "orchestrator.slurm_settings", "node_groups.train"
LINE, GRES = f"{TRAIN}.slurm_settings", f"{TRAIN}.gres"
P5 = {f"{TRAIN}.instance_type": "p5.48xlarge"}
NEWEST = {"orchestrator.slurm_version": "26.05"}
GPUS = {"name": "gpu", "type": "b200", "file": "/dev/nvidia[0-7]"}


def of(base: str, changes: dict[str, Any]) -> list[Finding]:
    findings = found(SLU, placed(base, changes), base)
    return [one for one in findings if one.code in ("SLU048", "SLU049", "SLU050")]


def placed(base: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, to the group that the environment has."""
    return {key.replace(TRAIN, group_of(base)): value for key, value in changes.items()}


def group_of(base: str) -> str:
    return "node_groups.reserved" if base == PCL else TRAIN


def errors(base: str, changes: dict[str, Any]) -> set[str]:
    data = changed(environment_data(base), placed(base, changes))
    return {one.code for one in check(loaded(data)) if one.blocks}


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        (PCL, {LINE: {"Sockets": 97}}),
        (PCL, {LINE: {"Sockets": 4, "CoresPerSocket": 48, "ThreadsPerCore": 2}}),
        (PCL, {LINE: {"Gres": "gpu:h100:16"}}),
        (PCS, {LINE: {"Sockets": 97}}),
        (PCS, {LINE: {"Gres": "gpu:b200:16"}, GRES: [GPUS | {"file": "/dev/nvidia[0-15]"}]}),
        (HPS, {LINE: {"Sockets": 4}}),
        (HPS, {LINE: {"Gres": "gpu:h100:16"}}),
        (HPS, {SETTINGS: {"NodeName": "n1"}}),
    ],
)
def test_more_sockets_or_gpus_than_the_type_has_are_refused(base: str, changes: dict[str, Any]) -> None:
    assert errors(base, changes) - errors(base, {})


@pytest.mark.parametrize(
    ("base", "code", "changes", "at", "says"),
    [
        (PCL, "SLU048", {LINE: {"RealMemory": 3_000_000}}, "slurm_settings.RealMemory", "Low RealMemory"),
        (PCL, "SLU048", {LINE: {"ThreadsPerCore": 4}}, "slurm_settings.ThreadsPerCore", "INVALID_REG"),
        (PCL, "SLU048", {LINE: {"TmpDisk": 500_000}}, "slurm_settings.TmpDisk", "Low TmpDisk"),
        (PCL, "SLU048", {LINE: {"Sockets": 2}}, "slurm_settings.Sockets", "resets the node to 2"),
        (PCL, "SLU048", {LINE: {"Sockets": 4, "CoresPerSocket": 48, "ThreadsPerCore": 2}},
         "slurm_settings.Sockets", "384 CPUs"),
        (PCL, "SLU049", {LINE: {"RealMemory": 2_200_000}}, "slurm_settings.RealMemory", "that is not there"),
        (PCL, "SLU049", {LINE: {"RealMemory": 1_000_000}}, "slurm_settings.RealMemory", "no job gets"),
        (PCS, "SLU048", {LINE: {"CpuSpecList": "0-3,400"}}, "slurm_settings.CpuSpecList", "Ignoring"),
        (PCS, "SLU048", {LINE: {"Gres": "gpu:b200:8"}, GRES: [GPUS | {"file": "/dev/nvidia[1-8]"}]},
         "gres[0].file", "can't stat gres.conf file /dev/nvidia8"),
        (PCS, "SLU049", {LINE: {"Gres": "gpu:b200:4"}, GRES: [GPUS]}, "slurm_settings.Gres", "4 of the 8"),
        (PCS, "SLU048", P5 | NEWEST | {LINE: {"Sockets": 8}},
         "slurm_settings.Sockets", "2 NUMA domains"),
    ],
)  # fmt: skip
def test_each_number_is_reported_where_it_is_and_the_remedy_ends_it(
    base: str, code: str, changes: dict[str, Any], at: str, says: str
) -> None:
    findings = of(base, changes)

    place = f"{group_of(base)}.{at}"
    assert [(one.code, one.dotted) for one in findings] == [(code, place)], findings
    assert says in findings[0].message
    assert_remedy_ends(code, place, changed(environment_data(base), placed(base, changes)))


@pytest.mark.parametrize("base", [PCL, HPS])
@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("DefMemPerNode", 2048 * 1024), ("DefMemPerGPU", 2048 * 1024 // 8),
        ("DefMemPerCPU", 2048 * 1024 // 192), ("DefCpuPerGPU", 24),
    ],
)  # fmt: skip
def test_defaults_that_no_node_has_are_reported(base: str, name: str, fits: int) -> None:
    changes: dict[str, Any] = P5 if base == HPS else {}
    assert not [one for one in of(base, changes | {SETTINGS: {name: fits}}) if one.code == "SLU050"]
    (finding,) = [one for one in of(base, changes | {SETTINGS: {name: fits + 1}}) if one.code == "SLU050"]
    assert finding.dotted == f"{SETTINGS}.{name}" and str(fits) in finding.instead


@pytest.mark.parametrize(
    ("base", "changes"),
    [
        (PCL, {LINE: {"Sockets": 2, "CoresPerSocket": 48, "ThreadsPerCore": 2}}),
        (PCL, {LINE: {"RealMemory": 1_990_000, "MemSpecLimit": 8192, "CoreSpecCount": 4}}),
        (PCS, {LINE: {"Sockets": 2, "MemSpecLimit": 8192}}),
        (PCS, {LINE: {"Gres": "gpu:b200:8"}, GRES: [GPUS]}),
        (PCS, P5 | {LINE: {"Sockets": 8}, "orchestrator.slurm_version": "25.11"}),  # slurmd detects nothing
        (PCS, P5 | NEWEST | {LINE: {"Sockets": 12, "Parameters": "l3cache_as_socket"}}),
        (HPS, {SETTINGS: {"DefMemPerGPU": 100_000}}),
    ],
)  # fmt: skip
def test_what_a_node_has_passes(base: str, changes: dict[str, Any]) -> None:
    assert not of(base, changes)
