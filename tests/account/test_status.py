"""How an environment is: every source asked side by side, what was changed by hand, and what is slow."""

from __future__ import annotations

from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from hyperpod_service import answer, refusal
from live_environment import CLUSTER, LUSTRE, NOW, Live, drifted, rule
from rules_support import environment_data, loaded

from ultracluster.account.status import Status, status
from ultracluster.account.status.rows import (
    CostState,
    Difference,
    GroupState,
    JobCounts,
    Lease,
    ReleaseState,
    StackDrift,
    StackState,
    StorageState,
)
from ultracluster.model import Cluster, resolve


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def ask(live: Live, cluster: Cluster = CLUSTER, **more: Any) -> Status:
    settings = {"now": lambda: NOW, "pause": lambda seconds: None, "budget": 60.0, **more}
    return status(live.account, cluster, **settings)


def test_a_healthy_environment_is_quiet() -> None:
    found = ask(Live(), jobs=lambda: ["running", "running", "waiting", "completed"])

    assert [one for one in found.found.sources if one.state == "not readable"] == []
    assert found.quiet and not found.of(Difference)
    assert {one.name for one in found.of(StackState)} == set(CLUSTER.environment.stack_names)
    groups = {one.name: (one.wanted, one.asked, one.running, one.images) for one in found.of(GroupState)}
    assert groups["gpu"] == (2, 2, 2, {"1.3.0": 2})
    assert found.of(JobCounts) == [JobCounts(2, 1, 0, "the scheduler")]
    storage = found.of(StorageState)
    assert [(one.id, one.fill) for one in storage] == [(LUSTRE, 0.5)]
    assert [one.per for one in found.of(CostState)] == ["hour"]
    assert found.of(ReleaseState)[0].release == "hyperpod-slurm-2026.09"
    assert all(row.source for row in found.rows), "each row has its source"


def grown(live: Live) -> None:
    live.service.cluster["InstanceGroups"][2] |= {"TargetCount": 5}


def foreign_group(live: Live) -> None:
    live.service.cluster["InstanceGroups"][2] |= {"InstanceGroupName": "by-hand"}


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (grown, "count", "the service is asked for 5"),
        (foreign_group, "group", "is missing"),
        (
            lambda live: live.rules.append(rule(9, port=22, CidrIpv4="0.0.0.0/0")),
            "rule",
            "tcp 22 from 0.0.0.0/0",
        ),
        (lambda live: live.drifts.update({"dev-network": [drifted()]}), "resource", "was deleted"),
    ],
    ids=["count", "group", "rule", "resource"],
)
def test_a_change_by_hand_is_shown(change: Any, kind: str, words: str) -> None:
    live = Live()
    change(live)

    found = ask(live)

    differences = found.of(Difference)
    assert any(one.kind == kind and words in one.actual for one in differences), differences
    assert all(one.source for one in differences) and not found.quiet


def test_stacks_that_were_not_compared_are_never_quiet() -> None:
    live = Live()
    live.detections = ["DETECTION_FAILED"]

    found = ask(live)

    assert not found.of(Difference) and all(one.state != "not readable" for one in found.found.sources)
    assert not found.quiet and all(one.why for one in found.of(StackDrift))


def test_a_group_that_scales_within_the_file_is_no_change() -> None:
    live = Live()
    live.service.cluster["InstanceGroups"][2] |= {"TargetCount": 1}
    live.service.nodes.pop()

    assert [one.kind for one in ask(live).of(Difference)] == ["count"], "the file has 2, without autoscaling"


def test_a_source_without_an_answer_after_ten_seconds_is_named_and_the_others_answer() -> None:
    never, passed = Event(), [0.0]

    def jobs() -> list[str]:
        never.wait(60)
        return []

    def clock() -> float:
        now, passed[0] = passed[0], 0.0  # ten seconds pass while the jobs are waited for
        return now

    def waits(source: str) -> None:
        passed[0] = 11.0 if source == "jobs" else 0.0

    found = ask(Live(), jobs=jobs, detect=False, clock=clock, progress=waits, budget=10.0)
    never.set()

    silent = {one.name: one.why for one in found.found.sources if one.state == "not readable"}
    assert silent == {"jobs": "no answer within 10 seconds: ask again, AWS may be throttling"}
    assert found.of(GroupState) and not found.of(JobCounts) and not found.quiet


@pytest.mark.parametrize(
    "call", ["DescribeStacks", "DetectStackDrift", "GetTemplate", "DescribeFileSystems", "DescribeAlarms"]
)
def test_a_refused_call_is_a_row_and_never_quiet(call: str) -> None:
    live = Live()
    live.refused[call] = refusal("AccessDeniedException", "no")

    found = ask(live)

    assert any("access denied" in one.why for one in found.found.sources) and not found.quiet
    assert found.of(GroupState), "the rest still answers"


def test_alarms_are_faults_and_others_alarms_are_not() -> None:
    live = Live()
    live.alarms = [
        {"AlarmName": "dev-volumes", "AlarmDescription": "Ultracluster dev: a volume is full"},
        {"AlarmName": "dev-web-5xx", "AlarmDescription": "of somebody else"},
    ]

    facts = [one for one in ask(live).found.facts if one.source == "CloudWatch alarms"]

    assert [(one.where, one.text, one.level) for one in facts] == [
        ("dev-volumes", "a volume is full", "warning")
    ]


def test_a_file_system_without_figures_has_no_fill() -> None:
    live = Live()
    live.used = 0

    assert [one.fill for one in ask(live).of(StorageState)] == [None], "unknown is not empty"


def test_an_environment_that_is_not_deployed() -> None:
    live = Live()
    live.stacks = {}
    live.service.raising["DescribeCluster"] = refusal("ResourceNotFound", "no cluster")

    found = ask(live)

    assert found.found.deployed is False and not found.quiet and not found.of(StackState)
    assert "DetectStackDrift" not in live.asked


@pytest.mark.parametrize(
    ("end", "level"), [(timedelta(days=30), "green"), (timedelta(days=2), "yellow"), (timedelta(-1), "red")]
)
def test_the_end_of_a_lease(end: timedelta, level: str) -> None:
    live = Live()
    block = {
        "CapacityReservationId": "cr-0123456789abcdef0", "State": "active", "InstanceType": "g6e.12xlarge",
        "AvailabilityZoneId": "usw2-az2", "TotalInstanceCount": 2, "AvailableInstanceCount": 2,
        "StartDate": NOW - timedelta(days=5), "EndDate": NOW + end, "InstanceMatchCriteria": "targeted",
        "InstancePlatform": "Linux/UNIX", "Tenancy": "default",
    }  # fmt: skip
    answer(
        live.account.client("ec2"),
        "DescribeCapacityReservations",
        lambda asked: {"CapacityReservations": [block]},
    )
    data = environment_data("dev")
    data["node_groups"]["gpu"]["capacity"] = {"kind": "reservation", "id": "cr-0123456789abcdef0"}

    found = ask(live, cluster=resolve(loaded(data).environment))

    (lease,) = [one for one in found.of(Lease) if f"{NOW + end:%Y-%m-%d}" in one.state]
    assert (lease.name, lease.level) == ("cr-0123456789abcdef0", level)
    assert lease.source == "EC2 DescribeCapacityReservations" and (level == "green" or not found.quiet)
