"""Rules on AWS PCS, each broken and mended."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from botocore.session import get_session
from rules_support import changed, environment_data, findings, loaded
from rules_table import Case, found, table_tests

from ultracluster.catalog import region
from ultracluster.catalog.pcs import (
    pcs_name_limits,
    pcs_regions,
    pcs_settings,
    pcs_size_for,
    pcs_sizes,
    pcs_slurm_versions,
)
from ultracluster.config.pcs import PROLOG, Pcs
from ultracluster.config.slurm import Partition
from ultracluster.model import resolve
from ultracluster.rules import check, today
from ultracluster.rules.engine import run
from ultracluster.rules.pcs import cluster as pcs
from ultracluster.rules.pcs.cluster import ending
from ultracluster.rules.sets import PCS

BASE = "pcs-p6-b200"
IMAGE = "ami-0123456789abcdef0"
OTHER_IMAGE = "ami-0fedcba9876543210"
ID = "cr-0123456789abcdef0"
BLOCK = {"kind": "capacity-block", "id": ID}
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "more", "image": IMAGE}
GB200 = {
    "role": "compute",
    "instance_type": "p6e-gb200.36xlarge",
    "count": 18,
    "partition": "rack",
    "image": OTHER_IMAGE,
    "capacity": BLOCK,
}
SETTINGS = "orchestrator.slurm_settings"
QUEUE = "orchestrator.partitions.train.slurm_settings"
GRES = "node_groups.train.gres"
ASKED = "node_groups.train.slurm_settings"
GPUS = {"name": "gpu", "type": "b200", "file": "/dev/nvidia[0-7]"}
FOUND = {"auto_detect": "nvml"}
SHARD = {"name": "shard", "count": 64}
PARTS = {
    GRES: [GPUS, SHARD],
    ASKED: {"Gres": "gpu:b200:8,shard:64"},
    "orchestrator.partitions": {"train": {"exclusive": False}},
}
TRAIN = "node_groups.train"
COUNT = f"{TRAIN}.count"
CUT = {f"{TRAIN}.mig_profile": "1g.23gb"}
LENT = {"kind": "reservation", "id": ID, "interruptible": True}


def more(count: int, *, partitions: bool) -> dict[str, Any]:
    """So many further groups, each in a partition of its own or all in one."""
    return {
        f"node_groups.more{number}": GPU | ({"partition": f"more{number}"} if partitions else {})
        for number in range(count)
    }


CASES = [
    Case(
        "PCS001",
        {"region": "us-west-1"},
        "region",
        "no endpoint in us-west-1",
        "us-west-2",
        {"region": "us-west-2"},
    ),
    Case(
        "PCS002",
        {"region": "ca-central-1"},
        "region",
        "though CloudFormation's schemas have it there",
        "eu-central-1",
        {"region": "eu-central-1"},
    ),
    Case(
        "PCS005",
        {"node_groups.8gpus": GPU},
        "node_groups.8gpus",
        "a letter first",
        "n8gpus",
        {"node_groups.8gpus": ..., "node_groups.n8gpus": GPU},
    ),
    Case(
        "PCS010",
        {"node_groups.rack": {k: v for k, v in GB200.items() if k != "image"}},
        "node_groups.rack.image",
        "PCS has no default image",
        "dlami-base-ubuntu2404/arm64/latest/ami-id",
        {"node_groups.rack.image": OTHER_IMAGE},
    ),
    Case(
        "PCS022",
        {"node_groups.rack": GB200 | {"count": 36}},
        "node_groups.rack.count",
        "has 18",
        "a group for each further",
        {"node_groups.rack.count": 18},
    ),
    Case(
        "PCS023",
        {"node_groups.rack": GB200, "node_groups.cards": GPU | {"partition": "rack"}},
        "node_groups.cards.partition",
        "UltraServer of `rack`",
        "partition: cards",
        {"node_groups.cards.partition": "cards"},
    ),
    Case(
        "PCS023",
        {"node_groups.rack": GB200, "orchestrator.partitions.rack": {"exclusive": False}},
        "orchestrator.partitions.rack.exclusive",
        "whole nodes",
        "exclusive: true",
        {"orchestrator.partitions.rack.exclusive": True},
    ),
    Case(
        "PCS024",
        {"node_groups.rack": GB200 | {"count": 6}, "node_groups.rack2": GB200},
        "node_groups.rack2.count",
        "do not go with a group of 6",
        "12",
        {"node_groups.rack2.count": 12},
    ),
    Case(
        "PCS026",
        {"node_groups.rack": GB200},
        "node_groups.rack.instance_type",
        "take only `efa-only`",
        "try one node first",
        {"node_groups.rack": ...},
    ),
    Case(
        "PCS027",
        {"node_groups.rack": GB200, "orchestrator.imex": False},
        "orchestrator.imex",
        "jobs have no IMEX configuration",
        "true",
        {"orchestrator.imex": True},
    ),
    Case(
        "PCS027",
        {"node_groups.rack": GB200, "orchestrator.lifecycle": "none"},
        "orchestrator.lifecycle",
        "jobs have no IMEX configuration",
        "lifecycle: node-bootstrapped",
        {f"{SETTINGS}.prolog": "/opt/prolog.sh"},
    ),
    Case(
        "PCS027",
        {"node_groups.rack": GB200, f"{SETTINGS}.prolog": "/opt/prolog.sh"},
        f"{SETTINGS}.prolog",
        f"/opt/prolog.sh in place of the IMEX prolog, which is on every node as {PROLOG}",
        "remove prolog",
        {"orchestrator.imex": False},
    ),
    Case(
        "PCS027",
        {"node_groups.rack": GB200, f"{SETTINGS}.PrologFlags": "Alloc,Contain"},
        f"{SETTINGS}.PrologFlags",
        "Alloc,Contain without NoHold",
        "Alloc,NoHold",
        {f"{SETTINGS}.PrologFlags": "NoHold,alloc"},
    ),
    Case(
        "PCS027",
        {"node_groups.rack": GB200, "orchestrator.slurm_version": "24.11"},
        "orchestrator.slurm_version",
        "from Slurm 25.05 on",
        "25.11",
        {"orchestrator.slurm_version": "25.11"},
    ),
    Case(
        "PCS040",
        {f"{SETTINGS}.TopologyPlugin": "topology/tree"},
        f"{SETTINGS}.TopologyPlugin",
        "writes the topology itself",
        "remove TopologyPlugin",
        {f"{SETTINGS}.TopologyPlugin": ...},
    ),
    Case(
        "PCS040",
        {f"{QUEUE}.MaxTimes": "1-00:00:00"},
        f"{QUEUE}.MaxTimes",
        "MaxTimes for a queue",
        "MaxTime,",
        {f"{QUEUE}.MaxTimes": ...},
    ),
    Case(
        "PCS040",
        {f"{SETTINGS}.SchedulerParameter": "defer"},
        f"{SETTINGS}.SchedulerParameter",
        "SchedulerParameter for a cluster",
        "SchedulerParameters",
        {f"{SETTINGS}.SchedulerParameter": ..., f"{SETTINGS}.schedulerparameters": "defer"},
    ),
    Case(
        "PCS040",
        {f"{SETTINGS}.AccountingStorageHost": "db.example.com"},
        f"{SETTINGS}.AccountingStorageHost",
        "AccountingStorageHost for a cluster",
        "AccountingStor",
        {f"{SETTINGS}.AccountingStorageHost": ..., f"{SETTINGS}.AccountingStorageTRES": "gres/gpu"},
    ),
    Case(
        "PCS042",
        {"orchestrator.slurm_version": "25.11", f"{SETTINGS}.HealthCheckNodeState": "REBOOT_ONLY"},
        f"{SETTINGS}.HealthCheckNodeState",
        "PCS takes HealthCheckNodeState=REBOOT_ONLY from Slurm 26.05 on",
        '"26.05"',
        {"orchestrator.slurm_version": "26.05"},
    ),
    Case(
        "PCS042",
        {
            "orchestrator.slurm_version": "25.11",
            f"{QUEUE}.Exclusive": "NODE",
            "orchestrator.partitions.train.exclusive": False,
        },
        f"{QUEUE}.Exclusive",
        "PCS takes Exclusive from Slurm 26.05 on",
        '"26.05"',
        {"orchestrator.slurm_version": "26.05"},
    ),
    Case(
        "PCS045",
        {"orchestrator.slurm_version": "26.05", f"{QUEUE}.Exclusive": "NODE"},
        f"{QUEUE}.Exclusive",
        "which writes OverSubscribe=EXCLUSIVE",
        "exclusive: false",
        {"orchestrator.partitions.train.exclusive": False},
    ),
    Case(
        "PCS042",
        {"orchestrator.slurm_version": "25.05", f"{SETTINGS}.MetricsType": "metrics/openmetrics"},
        f"{SETTINGS}.MetricsType",
        "from Slurm 25.11 on",
        '"25.11"',
        {"orchestrator.slurm_version": "25.11"},
    ),
    Case(
        "PCS042",
        {"orchestrator.slurm_version": "25.05", f"{SETTINGS}.CommunicationParameters": "enable_http"},
        f"{SETTINGS}.CommunicationParameters",
        "from Slurm 25.11 on",
        '"25.11"',
        {f"{SETTINGS}.CommunicationParameters": "NoAddrCache"},
    ),
    Case(
        "PCS043",
        {GRES: [GPUS], ASKED: {"Gres": "gpu:b200:8,staging:4"}},
        f"{ASKED}.Gres",
        "declares no staging.",
        "remove Gres",
        {GRES: [GPUS, {"name": "staging", "count": 4}]},
    ),
    Case(
        "PCS082",
        {f"{SETTINGS}.SlurmctldParameters": "enable_stepmgr", f"{SETTINGS}.PrologFlags": "Alloc"},
        f"{SETTINGS}.PrologFlags",
        "requires PrologFlags that contain Contain",
        "Alloc,Contain",
        {f"{SETTINGS}.PrologFlags": "contain,x11"},
    ),
    Case(
        "PCS082",
        {f"{SETTINGS}.MetricsType": "metrics/openmetrics", f"{SETTINGS}.PrivateData": "jobs"},
        f"{SETTINGS}.PrivateData",
        "served without a password",
        "remove PrivateData",
        {f"{SETTINGS}.PrivateData": ...},
    ),
    Case(
        "PCS082",
        {
            f"{SETTINGS}.MetricsType": "metrics/openmetrics",
            f"{SETTINGS}.CommunicationParameters": "DisableIPv4",
        },
        f"{SETTINGS}.CommunicationParameters",
        "requires enable_http",
        "DisableIPv4,enable_http",
        {f"{SETTINGS}.CommunicationParameters": "enable_http"},
    ),
    Case(
        "PCS083",
        {GRES: [{"name": "gpu", "type": "b200"}], ASKED: {"Gres": "gpu:b200:1"}},
        f"{GRES}[0]",
        "requires `file`",
        "/dev/nvidia[0-7]",
        {GRES: [GPUS]},
    ),
    Case(
        "PCS085",
        {GRES: [FOUND], ASKED: {"Gres": "gpu:8"}},
        f"{GRES}[0].auto_detect",
        "INVALID_REG without `Sockets`",
        "Sockets: 2",
        {ASKED: {"Gres": "gpu:8", "sockets": 2}},
    ),
    Case(
        "PCS086",
        {ASKED: {"Parameters": "l3cache_as_socket"}},
        f"{ASKED}.Parameters",
        "requires Sockets",
        "remove Parameters",
        {ASKED: {"Parameters": "l3cache_as_socket", "Sockets": 24}},
    ),
    Case(
        "PCS087",
        {GRES: [GPUS], ASKED: {"Gres": "gpu:h100:8"}},
        f"{ASKED}.Gres",
        "its type is h100, and that of the record is b200",
        "remove Gres",
        {ASKED: {"Gres": "gpu:8"}},
    ),
    Case(
        "PCS098",
        {
            **PARTS,
            ASKED: {"Gres": "gpu:b200:8,shard:64,mps:800"},
            GRES: [GPUS, SHARD, {"name": "mps", "count": 800}],
        },
        f"{ASKED}.Gres",
        "jobs of both get the same GPU",
        "count one of the two",
        {ASKED: {"Gres": "gpu:b200:8,mps:800"}, GRES: [GPUS, {"name": "mps", "count": 800}]},
    ),
    Case(
        "PCS099",
        {**PARTS, ASKED: {"Gres": "gpu:b200:8,shard:60"}},
        f"{ASKED}.Gres",
        "60 shard on 8 GPUs",
        "shard:56",
        {ASKED: {"Gres": "gpu:b200:8,shard:64"}},
    ),
    Case(
        "PCS099",
        {**PARTS, ASKED: {"Gres": "shard:64"}},
        f"{ASKED}.Gres",
        "Gres counts no `gpu`",
        "gpu:<number>",
        {ASKED: {"Gres": "gpu:b200:8,shard:64"}},
    ),
    Case(
        "PCS100",
        {**PARTS, "orchestrator.partitions": {}},
        f"{ASKED}.Gres",
        "no two would share a GPU by shard",
        "exclusive: false",
        {ASKED: {"Gres": "gpu:b200:8"}, GRES: [GPUS]},
    ),
    Case(
        "PCS100",
        PARTS,
        f"{ASKED}.Gres",
        "p6-b200.48xlarge has EFA",
        "remove Gres",
        {ASKED: {"Gres": "gpu:b200:8"}, GRES: [GPUS]},
    ),
    Case(
        "PCS089",
        {**CUT, COUNT: 0, f"{TRAIN}.max_count": 4},
        COUNT,
        "keep their old profiles",
        "count: 4",
        {COUNT: 4},
    ),
    Case(
        "PCS112",
        {**CUT, "orchestrator.lifecycle": "none"},
        f"{TRAIN}.mig_profile",
        "nothing else cuts the GPUs",
        "lifecycle: node-bootstrapped",
        {"orchestrator.lifecycle": "node-bootstrapped"},
    ),
    Case(
        "PCS112",
        {"node_groups.login.instance_type": "p5.4xlarge", "node_groups.login.mig_profile": "1g.10gb"},
        "node_groups.login.mig_profile",
        "nodes of role login run no jobs",
        "remove mig_profile",
        {"node_groups.login.mig_profile": ...},
    ),
    Case(
        "PCS112",
        {**CUT, ASKED: {"Gres": "gpu:8"}},
        f"{ASKED}.Gres",
        "counted by mig_profile",
        "remove Gres",
        {ASKED: {}},
    ),
    Case(
        "PCS114",
        CUT,
        f"{TRAIN}.mig_profile",
        "one job would have all instances",
        "exclusive: false",
        {f"{TRAIN}.mig_profile": ...},
    ),
    Case(
        "PCS115",
        {f"{TRAIN}.mig_layout": {"1g.23gb": 2, "1g.23gb+me": 1}},
        f"{TRAIN}.mig_layout",
        "1g.23gb is part of 1g.23gb+me",
        "profiles of different sizes",
        {f"{TRAIN}.mig_layout": {"2g.45gb": 3}},
    ),
    Case(
        "PCS047",
        {"orchestrator.accounting": {"mode": "none"}, f"{SETTINGS}.AccountingStorageEnforce": "limits"},
        f"{SETTINGS}.AccountingStorageEnforce",
        "which is off",
        "mode: standard",
        {"orchestrator.accounting": {"mode": "standard"}},
    ),
    Case(
        "PCS060",
        {"orchestrator.slurm_version": "27.05"},
        "orchestrator.slurm_version",
        "does not offer Slurm 27.05",
        '"26.05"',
        {"orchestrator.slurm_version": "26.05"},
    ),
    Case(
        "PCS063",
        {"orchestrator.size": ..., "node_groups.train.max_count": 2047},
        "node_groups",
        "2049 nodes",
        "2048 nodes or fewer",
        {"node_groups.train.max_count": 2046},
    ),
    Case(
        "PCS067",
        {"orchestrator.accounting.purge_days": -1},
        "orchestrator.accounting.purge_days",
        "kept forever",
        "365",
        {"orchestrator.accounting.purge_days": 10_000},
    ),
    Case(
        "PCS070",
        {"orchestrator.agent_version": "1.4.2-1"},
        "orchestrator.agent_version",
        "1.5.0-1 of the PCS agent",
        "lifecycle: none",
        {"orchestrator.agent_version": "1.10.0"},
    ),
    Case(
        "PCS071",
        {"orchestrator.agent_version": "1.3.9-1"},
        "orchestrator.agent_version",
        "all nodes must be stopped",
        "1.5.0-1",
        {"orchestrator.agent_version": "1.4.0"},
    ),
    Case(
        "PCS072",
        {"orchestrator.lifecycle": "none"},
        "storage.lustre",
        "no lifecycle script mounts /fsx",
        "node-bootstrapped",
        {"storage.lustre": ..., "storage.openzfs": ...},
    ),
]


@pytest.fixture(autouse=True)
def that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcs, "today", lambda: date(2026, 11, 20))


test_breaks_and_is_mended, test_advice_works = table_tests(cases=[replace(case, base=BASE) for case in CASES])


def test_settings_and_groups_are_judged_without_a_file() -> None:
    settings = Pcs(
        kind="pcs",
        slurm_version="25.11",
        agent_version="1.3.9-1",
        partitions={"train": Partition(slurm_settings={"MaxTime": "1:00:00", "maxtime": "2:00:00"})},
    )
    group = resolve(loaded(changed(environment_data(BASE), {"node_groups.a1": GPU})).environment).groups["a1"]

    assert [(one.code, one.dotted) for one in check(settings)] == [
        ("PCS049", "partitions.train.slurm_settings.maxtime"),
        ("PCS070", "agent_version"),
        ("PCS071", "agent_version"),
    ]
    assert ("PCS005", ()) in [(one.code, one.path) for one in check(group, settings)]
    assert check(Pcs(kind="pcs", slurm_version="25.11")) == []


def test_a_changed_kind_says_all_that_is_to_change() -> None:
    """As a new user does: `kind: pcs` in a copy of dev.yaml."""
    said = findings({"orchestrator": {"kind": "pcs"}})
    mended = {
        "orchestrator": {"kind": "pcs"},
        "node_groups.controller": ...,
        "node_groups.login.image": IMAGE,
        "node_groups.gpu.image": IMAGE,
        "software.release": "pcs-2026.07",
    }

    assert {(one.code, one.dotted) for one in said if one.severity == "error"} == {
        ("IMG006", "software.release"),
        ("GRP010", "node_groups.controller.role"),
        ("PCS010", "node_groups.login.image"),
        ("PCS010", "node_groups.gpu.image"),
    }
    assert {one.code for one in findings(mended)} == {"IMG005"}  # nothing is known of an image of one's own


@pytest.mark.parametrize(
    ("version", "on", "left"),
    [
        ("25.05", date(2026, 11, 20), 10),
        ("25.05", date(2026, 11, 30), 0),
        ("25.05", date(2026, 12, 1), -1),
        ("26.05", date(2027, 11, 30), 0),
        ("19.05", date(2026, 1, 1), None),
    ],
)
def test_the_end_of_a_version(version: str, on: date, left: int | None) -> None:
    assert ending(version, on=on) == left


@pytest.mark.parametrize(
    ("on", "rule"),
    [
        (date(2026, 8, 31), ""),
        (date(2026, 9, 1), "PCS062"),
        (date(2026, 11, 30), "PCS062"),
        (date(2026, 12, 1), "PCS061"),
    ],
)
def test_what_is_said_of_a_version_depends_on_the_day(
    on: date, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pcs, "today", lambda: on)

    said = {one.code for one in found(PCS, {"orchestrator.slurm_version": "25.05"}, BASE)}

    assert said == ({rule} if rule else set())


def test_a_clock_that_is_behind_does_not_bring_an_old_version_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    class Early(date):
        @classmethod
        def today(cls) -> date:
            return date(2020, 1, 1)

    monkeypatch.setattr(today, "date", Early)

    assert today.today() == date(2026, 11, 20)


@pytest.mark.parametrize(
    ("nodes", "name"),
    [(1, "small"), (32, "small"), (33, "medium"), (513, "large"), (2048, "large"), (9999, "large")],
)
def test_the_smallest_size_that_holds_the_nodes(nodes: int, name: str) -> None:
    assert pcs_size_for(nodes).name == name


class TestBotocore:
    """The API's own model knows names, sizes and versions."""

    model = get_session().get_service_model("pcs")

    def test_names(self) -> None:
        shortest, longest, form = pcs_name_limits()
        for operation, field in (
            ("CreateComputeNodeGroup", "computeNodeGroupName"),
            ("CreateQueue", "queueName"),
        ):
            rule = self.model.shape_for(f"{operation}Request").members[field].metadata
            assert (rule["min"], rule["max"]) == (shortest, longest)
            assert rule["pattern"] == "(?!pcs_)" + form.rstrip("$")

    def test_sizes(self) -> None:
        assert {size.name.upper() for size in pcs_sizes()} == set(self.model.shape_for("Size").enum)

    def test_versions(self) -> None:
        said = self.model.shape_for("SchedulerRequest").members["version"].documentation
        assert all(f"{version} " in f"{said} ".replace("<", " ") for version in pcs_slurm_versions())
        assert said.count("|") + 1 == len(pcs_slurm_versions())


def test_what_is_late_is_taken_at_all() -> None:
    for level in ("cluster", "group", "partition"):
        taken = pcs_settings(level)
        assert not [name for name in (*taken.since, *taken.values_since) if name not in taken]


def test_acknowledging_a_warning_works_as_everywhere() -> None:
    data = changed(
        environment_data(BASE),
        {
            "orchestrator.efa_interface": "efa-only",
            "acknowledge": [{"rule": "PCS026", "reason": "One node came up with it in our account."}],
        },
    )
    (said,) = run(PCS.rules, loaded(data))

    assert (said.code, said.acknowledged) == ("PCS026", "One node came up with it in our account.")


@pytest.mark.parametrize(
    "name",
    [
        "AuthAltParameters",
        "DefMemPerCPU",
        "PrivateData",
        "SlurmctldParameters",
        "TrackWCKey",
        "priorityflags",
    ],
)
def test_settings_that_the_guide_lists_are_taken(name: str) -> None:
    said = found(PCS, {f"{SETTINGS}.{name}": "1"}, BASE)
    assert not {one.code for one in said} & {"PCS040", "PCS042"}


def test_every_region_of_the_guide_is_one_and_cloudformation_has_pcs_there() -> None:
    for name in pcs_regions():
        known = region(name)
        assert known and known.pcs, name
