"""Waiting until terminated instances are gone and others run, by what the service asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hyperpod_service import account, answer
from nodes_support import DEV, Slurm, copied, node_id
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.nodes import ec2_wait
from ultracluster.account.nodes.node import Node
from ultracluster.account.services import Managed
from ultracluster.cli.main import app
from ultracluster.cli.terminal import PART
from ultracluster.config import load

PARALLELCLUSTER = DEV.with_name("parallelcluster-p5.yaml")


def node(number: int, status: str = "running", group: str = "gpu") -> Node:
    return Node(node_id(number), group, status)


@pytest.mark.parametrize(
    ("nodes", "wanted", "busy", "ready"),
    [
        ([node(16), node(17)], 2, ["gpu has 1 of 2 nodes running", "is still there"], 1),
        ([node(17), node(18, "pending")], 2, ["gpu has 1 of 2 nodes running"], 1),
        ([node(16, "shutting-down"), node(17), node(18)], 2, ["is still there"], 2),
        ([node(17), node(18)], 2, [], 2),
        ([node(17)], 1, [], 1),  # what a scheduler had started comes with the next job only
        ([node(17), node(18)], 8, [], 2),  # it never had eight
    ],
)
def test_one_look(nodes: list[Node], wanted: int, busy: list[str], ready: int) -> None:
    managed = [Managed("gpu", "gpu", ("gpu",), wanted)]
    seen = ec2_wait.look(managed, nodes, {"gpu": 2}, {node_id(16)})
    assert seen.ready == ready and len(seen.busy) == len(busy)
    assert all(part in line for part, line in zip(busy, seen.busy, strict=True))


def test_why_its_service_brings_none_is_said() -> None:
    managed = [Managed("gpu", "gpu", ("gpu",), 2, failed="the group is DEGRADED: no capacity")]
    seen = ec2_wait.look(managed, [node(17)], {"gpu": 2}, set())
    assert seen.busy == ("gpu has 1 of 2 nodes running: the group is DEGRADED: no capacity",)


class Instances:
    """ParallelCluster's instances: what is terminated goes, and after some looks another runs."""

    def __init__(self, made: Any, *, comes: bool = True) -> None:
        self.states = {node_id(16): "running", node_id(17): "running"}
        self.comes, self.looks, self.ended = comes, 0, False
        ec2 = made.client("ec2")
        answer(ec2, "DescribeInstances", self._describe)
        answer(made.client("ec2", once=True), "TerminateInstances", self._terminate)
        stack = {
            "StackName": "parallelcluster-p5", "StackStatus": "CREATE_COMPLETE",
            "CreationTime": "2026-11-20T08:00:00Z",
        }  # fmt: skip
        answer(made.client("cloudformation"), "DescribeStacks", lambda asked: {"Stacks": [stack]})

    def _describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.ended:
            self.looks += 1
            if self.looks == 2:
                self.states.pop(node_id(16))
            if self.looks == 3 and self.comes:
                self.states[node_id(40)] = "pending"
            if self.looks == 4 and self.comes:
                self.states[node_id(40)] = "running"
        return {"Reservations": [{"Instances": [self._one(*row) for row in self.states.items()]}]}

    def _one(self, name: str, state: str) -> dict[str, Any]:
        tags = {
            "parallelcluster:cluster-name": "parallelcluster-p5", "parallelcluster:node-type": "Compute",
            "parallelcluster:queue-name": "train",
        }  # fmt: skip
        return {
            "InstanceId": name, "State": {"Name": state},
            "PrivateDnsName": "ip-10-1-0-16.us-east-2.compute.internal",
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }  # fmt: skip

    def _terminate(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.ended = True
        self.states[node_id(16)] = "shutting-down"
        return {"TerminatingInstances": []}


@pytest.mark.parametrize("comes", [True, False])
def test_the_command_waits_for_the_new_instance(
    monkeypatch: pytest.MonkeyPatch, slurm: Slurm, comes: bool, tmp_path: Path
) -> None:
    aws_account = account(load(PARALLELCLUSTER).environment.region)
    service = Instances(aws_account, comes=comes)
    monkeypatch.setattr(aws, "Account", lambda **_: aws_account)
    ticks = iter(range(0, 1_000_000, 60))
    wait = ec2_wait.wait
    monkeypatch.setattr(
        ec2_wait, "wait",
        lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
    )  # fmt: skip
    words = ["replace", str(copied(tmp_path, PARALLELCLUSTER.stem)), node_id(16), "--timeout", "10", "--json"]
    monkeypatch.setenv(PART, "1")  # nobody asks for the account
    result = CliRunner().invoke(app, ["nodes", *words, "--yes"])
    assert result.exit_code == (0 if comes else 3), result.output
    assert json.loads(result.stdout)["outcomes"][0]["result"] == "accepted"
    if comes:
        assert service.looks == 4, "it went on looking, or ended before the new instance ran"
    else:
        assert "still under way: train has 1 of 2 nodes running" in result.stderr
