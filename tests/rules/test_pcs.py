"""Rules on AWS PCS, each broken and mended."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from botocore.session import get_session
from rules_support import changed, environment_data, findings, loaded
from rules_table import cases, found, table_tests

from ultracluster.catalog import region
from ultracluster.catalog.pcs import (
    pcs_name_limits,
    pcs_regions,
    pcs_settings,
    pcs_size_for,
    pcs_sizes,
    pcs_slurm_versions,
)
from ultracluster.config.pcs import Pcs
from ultracluster.config.slurm import Partition
from ultracluster.model import resolve
from ultracluster.rules import check, today
from ultracluster.rules.engine import run
from ultracluster.rules.pcs import cluster as pcs
from ultracluster.rules.pcs.cluster import ending
from ultracluster.rules.sets import PCS

BASE = "pcs-p6-b200"
IMAGE = "ami-0123456789abcdef0"
GPU = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "more", "image": IMAGE}
SETTINGS = "orchestrator.slurm_settings"


def more(count: int, *, partitions: bool) -> dict[str, Any]:
    """So many further groups, each in a partition of its own or all in one."""
    return {
        f"node_groups.more{number}": GPU | ({"partition": f"more{number}"} if partitions else {})
        for number in range(count)
    }


@pytest.fixture(autouse=True)
def that_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcs, "today", lambda: date(2026, 11, 20))


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("pcs"))


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
