"""Each pattern of a metric filter, tried on lines as they are written: by our scripts, which are run for it,
by HyperPod's agent, PCS and FSx, as AWS documents them. The evaluator knows no pattern of ours."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest
from log_filters import matches
from project import ROOT

from ultracluster.account.doctor import logs as doctor
from ultracluster.observability.log_patterns import HYPERPOD, LUSTRE, PCS, LogWatch

BY_NAME = {("hyperpod", one.metric): one for one in HYPERPOD} | {("pcs", one.metric): one for one in PCS}
FOUND = {
    "level": "info",
    "ts": "2026-08-21T18:35:35Z",
    "msg": "NPD caught event: %v",
    "details: ": {
        "severity": "warn",
        "reason": "XidHardwareFailure",
        "message": 'Node condition NvidiaErrorReboot is now: True, message: "NVRM: Xid (PCI:0000:b9:00): 71"',
    },
    "HealthMonitoringAgentDetectionEvent": "HealthEvent",
}
"""SageMaker Developer Guide, Health Monitoring System."""


def scaling(status: str, reason: str) -> str:
    """A line of PCS's scaling log (AWS PCS User Guide, Scaling logs in AWS PCS)."""
    return json.dumps(
        {
            "resource_id": "pcs_abc123de45",
            "resource_type": "PCS_CLUSTER",
            "event_timestamp": 1789179816460,
            "compute_node_group_id": "pcs_abcdef01",
            "scheduler_node_id": "compute-2",
            "status_code": status,
            "reason_code": reason,
            "description": "Node did not get an instance because there was not enough capacity available.",
            "details": {"ec2_error_code": "InsufficientInstanceCapacity"},
        }
    )


LINES: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("hyperpod", "HealthEvents"): (
        [json.dumps(FOUND)],
        [
            json.dumps({**FOUND, "HealthMonitoringAgentDetectionEvent": "Heartbeat"}),
            json.dumps({"level": "info", "msg": "Initialize HMA"}),
            "HealthMonitoringAgentDetectionEvent: HealthEvent, in a line that is no JSON",
        ],
    ),
    ("hyperpod", "LifecycleFailures"): (
        [
            "FAILED efa: the installer ended with 1",
            "FAILED node: /opt/ml/config/resource_config.json has no group",
            "FAILED own-mount-data: a step of your own",
        ],
        [
            "DEGRADED efa: 1.44 in place of 1.47",
            "READY after 64 s: efa lustre",
            "2026-11-22T10:00:00Z ERROR efa: FAILED to fetch",
            "FAILED",
            "test_efa FAILED: 1",
            "Job for slurmd.service FAILED because the control process exited",
        ],
    ),
    ("hyperpod", "DegradedNodes"): (
        ["DEGRADED efa, gdrcopy: drains faults"],
        ["FAILED efa: it ended", "READY after 3 s: efa", "2026-11-22T10:00:00Z WARN  DEGRADED efa: x"],
    ),
    ("pcs", "LaunchFailures"): (
        [scaling("LAUNCH_FAILED", "INSUFFICIENT_CAPACITY"), scaling("LAUNCH_FAILED", "LIMIT_EXCEEDED")],
        [
            scaling("LAUNCHED", "SCHEDULER_REQUESTED"),
            scaling("TERMINATED", "BOOTSTRAP_FAILED"),
            "LAUNCH_FAILED",
        ],
    ),
    ("pcs", "LifecycleFailures"): (
        [scaling("TERMINATED", "BOOTSTRAP_FAILED")],
        [scaling("TERMINATED", "SCHEDULER_REQUESTED"), scaling("ACTIVE", "BOOTSTRAP_SUCCESS")],
    ),
    ("pcs", "UnhealthyNodes"): (
        [
            scaling("TERMINATED", "UNHEALTHY_NODE"),
            scaling("PENDING_REPLACEMENT", "EC2_HEALTH_CHECK_FAILED"),
            scaling("PENDING_REPLACEMENT", "EC2_SCHEDULED_EVENT"),
        ],
        [
            scaling("PENDING_REPLACEMENT", "NODE_GROUP_UPDATE"),
            scaling("LAUNCH_FAILED", "INSUFFICIENT_CAPACITY"),
            # the other log that PCS delivers into the same group
            json.dumps({"log_name": "slurmctld", "log_level": "info", "message": "Running as primary"}),
        ],
    ),
}


def test_every_pattern_is_tried() -> None:
    assert LINES.keys() == BY_NAME.keys()


@pytest.mark.parametrize("at", LINES, ids="/".join)
def test_a_filter_counts_what_it_is_for_and_nothing_else(at: tuple[str, str]) -> None:
    counted, others = LINES[at]
    pattern = BY_NAME[at].pattern
    for line in counted:
        assert matches(pattern, line), line
    for line in others:
        assert not matches(pattern, line), line


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("Failed to export file because access was denied to S3 object with key k in S3 bucket b.", True),
        ("Failed to import S3 object with key k in S3 bucket b because the file system is full.", True),
        ("Failed to restore file because there was no available storage space on the file system.", True),
        ("Failed to list S3 objects in S3 bucket b with prefix p.", True),
        ("Automatic export encountered an internal error while exporting a file system object", True),
        ("Export skipped: local file does not belong to a data repository linked file system path.", True),
        ("Data repository task finished.", False),
    ],
)
def test_what_lustre_says_of_s3_is_counted_in_text_and_in_json(line: str, counted: bool) -> None:
    """The words are FSx's (User Guide, Data repository event logs); what stands around them is unknown."""
    for whole in (
        line,
        f"2026-11-22T10:00:00Z ERROR {line}",
        json.dumps({"level": "ERROR", "message": line}),
    ):
        assert matches(LUSTRE.pattern, whole) is counted


def printed(function: str, *arguments: str) -> str:
    """The last line that our own scripts print."""
    script = f'source lib/log.sh; {function} "$@"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *arguments],
        cwd=ROOT / "lifecycle_scripts",
        env={"PATH": "/usr/bin:/bin", "ULTRACLUSTER_LOG": "/dev/null"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()[-1]


def test_the_last_line_of_a_real_run_is_what_the_filters_look_for() -> None:
    failures, degraded = BY_NAME["hyperpod", "LifecycleFailures"], BY_NAME["hyperpod", "DegradedNodes"]
    failed = printed("log::failed", "efa", "the installer\nended with 1")
    assert matches(failures.pattern, failed) and not matches(degraded.pattern, failed)
    lacks = printed("log::degraded", "efa, gdrcopy", "drivers cannot (x)")
    assert matches(degraded.pattern, lacks) and not matches(failures.pattern, lacks)
    for line in (printed("log::ready", "after 64 s: efa"), printed("log::error", "FAILED efa: no")):
        assert not matches(failures.pattern, line) and not matches(degraded.pattern, line)


def test_doctor_looks_for_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Pages:
        def paginate(self, **request: Any) -> list[dict[str, Any]]:
            asked.append(request["filterPattern"])
            return []

    class Logs:
        def get_paginator(self, _: str) -> Pages:
            return Pages()

    class Account:
        def client(self, _: str) -> Logs:
            return Logs()

    doctor.health_facts(Account(), "group", datetime.now(UTC))  # type: ignore[arg-type]
    assert BY_NAME["hyperpod", "HealthEvents"].pattern in asked


@pytest.mark.parametrize("watch", [*HYPERPOD, *PCS, LUSTRE], ids=lambda one: one.metric)
def test_an_alarm_says_what_to_run(watch: LogWatch) -> None:
    assert "Run: ultracluster " in watch.text.format(name="dev")


@pytest.mark.parametrize("pattern", ["%ERROR%", "{ $.a IS NULL }", "-INFO", '?a "b"', "[a, b!=c, ...]"])
def test_the_evaluator_refuses_what_it_does_not_know(pattern: str) -> None:
    with pytest.raises((ValueError, IndexError, KeyError)):
        matches(pattern, '{"a": 1}' if pattern.startswith("{") else "a b c")
