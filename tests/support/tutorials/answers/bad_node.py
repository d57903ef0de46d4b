"""The cluster of docs/tutorials/bad-node.md: prod, with a GPU of one node lost and a job on it.

Answers have the shape of AWS's own model; they are no recording of a real account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import BORN, HyperPod, account, answer, group, node

from ultracluster.account import aws
from ultracluster.account.aws import Account
from ultracluster.account.doctor import metrics
from ultracluster.account.metrics_query import Answer as Found
from ultracluster.account.metrics_query import Sample
from ultracluster.account.nodes import hyperpod_wait
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer
from ultracluster.jobs import on_nodes as jobs

BAD = 17
LOG = "/aws/sagemaker/Clusters/prod/abcdefghijkl"
WORKSPACE = "arn:aws:aps:us-east-2:111122223333:workspace/ws-12345678-90ab-cdef-1234-567890abcdef"
FOUND = {"HealthMonitoringAgentDetectionEvent": "HealthEvent", "reason": "XidHardwareFailure", "xid": 79}


class Metrics:
    """The workspace of prod's Prometheus: one XID, and the alert that tells of it."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def ask(self, expression: str) -> Found:
        if "count by (node) (last_over_time" in expression:
            return Found((Sample({}, 19),))
        if "ultracluster_xid_last_timestamp_seconds" in expression:
            return Found((Sample({"node": f"ip-10-1-0-{BAD}", "gpu": "5", "xid": "79"}, 240),))
        if expression.startswith("ALERTS") or "ALERTS{" in expression:
            labels = {"alertname": "GpuXidReboot", "severity": "page", "node": f"ip-10-1-0-{BAD}"}
            return Found((Sample(labels, 1),))
        return Found(())


class Night:
    """A controller, two login nodes and sixteen of P5en, of which one has lost a GPU."""

    def __init__(self) -> None:
        self.account: Account = account("us-east-2")
        sizes = {"controller": ("m5.4xlarge", 1), "login": ("m5.2xlarge", 2), "train": ("p5en.48xlarge", 16)}
        roles = {"controller": "Controller", "login": "Login", "train": "Compute"}
        groups = [
            group(
                name, count, roles[name], InstanceType=f"ml.{kind}",
                ExecutionRole="arn:aws:iam::111122223333:role/nodes",
                LifeCycleConfig={"SourceS3Uri": "s3://prod-scripts/lifecycle/", "OnInitComplete": "a.sh"},
            )
            for name, (kind, count) in sizes.items()
        ]  # fmt: skip
        self.service = HyperPod(
            self.account, ClusterName="prod", InstanceGroups=groups, NodeProvisioningMode="Continuous"
        )
        numbers = {"controller": [1], "login": [2, 3], "train": [*range(16, 32)]}
        self.service.nodes = [
            node(
                number, name, InstanceType=f"ml.{sizes[name][0]}",
                PrivateDnsHostname=f"ip-10-1-0-{number}.us-east-2.compute.internal",
            )
            for name, members in numbers.items()
            for number in members
        ]  # fmt: skip
        self.running = [("4711", "alice", "pretrain", f"ip-10-1-0-{number}") for number in range(16, 24)]
        cloudformation, logs = self.account.client("cloudformation"), self.account.client("logs")
        answer(cloudformation, "DescribeStackEvents", self._stack)
        answer(cloudformation, "DescribeStacks", self._stacks)
        answer(logs, "DescribeLogGroups", lambda _: {"logGroups": [{"logGroupName": LOG, "creationTime": 1}]})
        answer(logs, "DescribeLogStreams", lambda _: {"logStreams": []})
        answer(logs, "FilterLogEvents", self._filter)

    def _stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        event = {
            "StackId": "arn", "EventId": "1", "StackName": asked["StackName"], "Timestamp": BORN,
            "LogicalResourceId": asked["StackName"], "ResourceType": "AWS::CloudFormation::Stack",
            "ResourceStatus": "UPDATE_COMPLETE",
        }  # fmt: skip
        return {"StackEvents": [event]}

    def _stacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        output = {"OutputKey": "WorkspaceArn", "OutputValue": WORKSPACE}
        stack = {"StackName": asked["StackName"], "CreationTime": BORN, "StackStatus": "UPDATE_COMPLETE"}
        return {"Stacks": [{**stack, "Outputs": [output]}]}

    def _filter(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("logStreamNamePrefix") != "SagemakerHealthMonitoringAgent":
            return {"events": []}
        row = {
            "logStreamName": f"SagemakerHealthMonitoringAgent/train/i-{BAD:017x}",
            "message": json.dumps(FOUND),
            "timestamp": int(BORN.timestamp() * 1000),
        }
        return {"events": [row]}

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        """What the controller prints when it is asked for jobs."""
        lines = [
            f"node|{address}|{address}\njob|{address}|{number}|{user}|{name}"
            for number, user, name, address in self.running
        ]
        return {one.id: Answer("\n".join(lines), 0) for one in nodes}

    @contextmanager
    def answers(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setattr(aws, "Account", lambda **_: self.account)
        patch.setattr(jobs, "shell_of", lambda fleet: self)
        wait, ticks = hyperpod_wait.wait, iter(range(0, 1_000_000, 60))
        patch.setattr(
            hyperpod_wait, "wait",
            lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        patch.setattr(metrics, "MetricsQuery", Metrics)
        yield


@contextmanager
def night(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """HyperPod has seen it, and has not done anything yet."""
    with Night().answers(patch):
        yield


@contextmanager
def drained(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The job was queued again; a replacement takes three looks."""
    made = Night()
    made.running = []

    def replaced() -> None:
        for entry in made.service.nodes:
            if entry["InstanceId"] == f"i-{BAD:017x}":
                entry["InstanceId"] = f"i-{99:017x}"
                entry["InstanceStatus"] = {"Status": "Running"}

    made.service.later = [
        lambda: made.service.status(BAD, "Pending"),
        replaced,
    ]
    with made.answers(patch):
        yield


@contextmanager
def given_up(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A group that HyperPod has set to 0."""
    made = Night()
    made.service.cluster["InstanceGroups"][2] |= {"CurrentCount": 0, "TargetCount": 0}
    made.service.nodes = made.service.nodes[:3]
    with made.answers(patch):
        yield
