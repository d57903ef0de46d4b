"""The first boot of clusters that constructs made alone, with the cluster.json that they upload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from first_boot.rehearsal import METRICS_URL, Boot, Outcome, boots, rehearse
from foreign_clusters import MAKERS, Team, deployed, uploaded
from pcs_support import unjudged
from templates import app_in

from ultracluster.config.base import is_token
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.storage.lustre_file_system import LustreFileSystem
from ultracluster.storage.open_zfs_file_system import OpenZfsFileSystem

SLURM = ("hyperpod-slurm", "parallelcluster", "pcs")


@pytest.mark.parametrize("kind", MAKERS)
def test_nodes_of_constructs_boot(kind: str, tmp_path: Path) -> None:
    """With file systems and, on Slurm, metrics; its nodes are given here what is uploaded for their group.

    All groups have the file that the model has for them, and test_first_boot.py boots those of the others.
    """
    app = app_in(tmp_path / "app", validate=False)
    team = Team(app)
    lustre = LustreFileSystem(
        team.stack,
        "Lustre",
        vpc=team.vpc,
        subnet=team.subnet,
        capacity_gib=38_400,
        throughput_mbps_per_tib=125,
        efa=True,
    )
    home = OpenZfsFileSystem.from_open_zfs_attributes(
        team.stack,
        "Home",
        file_system_id="fs-0fedcba9876543210",
        dns_name="fs-0fedcba9876543210.fsx.us-east-2.amazonaws.com",
        root_volume_id="fsvol-0123456789abcdef0",
    )
    workspace = "arn:aws:aps:us-east-2:111122223333:workspace/ws-0123"
    metrics = MetricsDestination(workspace_arn=workspace, remote_write_url=METRICS_URL)
    more: dict[str, Any] = {"metrics": metrics} if kind in SLURM else {}
    cluster: Any = team.add(kind, lustre=lustre, open_zfs=home, **more)
    unjudged(app, tmp_path / "app")
    told = [deployed(files["cluster.json"]) for _, files in uploaded(tmp_path / "app")]
    given = {boot.group: as_given(boot, told) for boot in boots(cluster.cluster.environment)}
    outcome = rehearse(given["train"], tmp_path / "train")
    assert outcome.status == 0, outcome.log
    assert outcome.report[-1]["state"] in ("ready", "degraded"), outcome.log
    if kind in SLURM:
        _sends_metrics(outcome, tmp_path / "train")


def _sends_metrics(outcome: Outcome, folder: Path) -> None:
    steps = {line["step"]: line["state"] for line in outcome.report if "step" in line}
    assert steps["metrics"] == steps["node_exporter"] == "installed", outcome.log
    assert steps["dcgm_exporter"] == "installed", outcome.log
    (agent,) = folder.glob("root/opt/ultracluster/metrics_agent/told.json")
    assert json.loads(agent.read_text())["remote_write_url"] == METRICS_URL


def as_given(boot: Boot, told: list[dict[str, Any]]) -> Boot:
    """The boot with the file that was uploaded for the group, whose mounts are named only at deploy."""
    (mine,) = {
        str(one): one
        for one in told
        if "instance_type" in one["node_groups"].get(boot.group, {}) and own(one, boot.group)
    }.values()
    ours: Mapping[str, Any] = boot.node.cluster
    # names that are known at deploy only
    later = {"mounts": None, "state_uri": None}
    assert {**mine, **later} == {**ours, **later}
    assert mine.get("mounts", {}).keys() == ours.get("mounts", {}).keys()
    mounts = {kind: named(values) for kind, values in boot.node.mounts.items()}
    if boot.node.orchestrator in ("hyperpod-slurm", "parallelcluster"):
        mine = {**mine, "mounts": {kind: mounts[kind] for kind in mine["mounts"]}}
        assert mine.keys() == ours.keys()
        mine["state_uri"] = ours["state_uri"]
    return replace(boot, node=replace(boot.node, cluster=mine, mounts=mounts))


def named(values: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """What is told of a mount, with the names that FSx gives it at deploy."""
    given = {"dns_name": "fs-0123.fsx.example.amazonaws.com", "mount_name": "abcdefgh"}
    return {key: given.get(key, "") if is_token(value) else value for key, value in values.items()}


def own(told: Mapping[str, Any], group: str) -> bool:
    """Whether it is for nodes of this group, and not what tools for people read of all."""
    full = [name for name, facts in told["node_groups"].items() if "instance_type" in facts]
    return full == [group]
