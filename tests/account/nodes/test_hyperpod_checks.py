"""Deep health checks on demand: who is asked for, in one request, and who is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hyperpod_service import HyperPod, account, refusal
from nodes_support import node_id
from project import ROOT
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes import hyperpod_checks
from ultracluster.account.nodes.hyperpod_checks import CONNECTIVITY, STRESS
from ultracluster.account.nodes.node import Node
from ultracluster.cli.main import app
from ultracluster.config import load
from ultracluster.model import Cluster, resolve

TRN, GPU, CPU = "trn2.48xlarge", "p5.48xlarge", "m5.2xlarge"


def cluster_of(name: str) -> Cluster:
    return resolve(load(ROOT / "environments" / f"{name}.yaml").environment)


def node(number: int, group: str, kind: str = GPU, **more: Any) -> Node:
    return Node(node_id(number), group, "Running", kind, **more)


@pytest.mark.parametrize(
    ("environment", "eks", "one", "checks", "says"),
    [
        ("wishes/groups", True, node(1, "train"), [STRESS], ""),
        ("wishes/groups", True, node(1, "serve", CPU), [STRESS], "HyperPod skips it"),
        ("wishes/groups", True, node(1, "unknown", "p99.metal"), [STRESS], ""),
        ("eks-trn2", True, node(1, "train", TRN), [STRESS], ""),
        ("trainium", False, node(1, "train", TRN), [STRESS], "checks of GPUs only"),
        ("dev", False, node(1, "login", CPU), [STRESS], "is a login node: only workers"),
        ("dev", False, node(1, "controller", CPU, controller=True), [STRESS], "is a controller node"),
        ("wishes/groups", True, node(1, "train"), [STRESS, CONNECTIVITY], "name a second one"),
    ],
)
def test_who_is_checked(environment: str, eks: bool, one: Node, checks: list[str], says: str) -> None:
    aws_account = account()
    HyperPod(aws_account)
    live = replace(hyperpod_nodes.read_cluster(aws_account, "dev"), eks=eks)
    (outcome,) = hyperpod_checks.judge(cluster_of(environment), live, [one], checks)
    assert (outcome.result, says in outcome.why) == ("refused" if says else "would", True)


def test_two_nodes_of_one_type_are_tested_against_each_other() -> None:
    aws_account = account()
    HyperPod(aws_account)
    live = replace(hyperpod_nodes.read_cluster(aws_account, "dev"), eks=True)
    nodes = [node(1, "train"), node(2, "train"), node(3, "train", "p4d.24xlarge")]
    results = [
        one.result for one in hyperpod_checks.judge(cluster_of("wishes/groups"), live, nodes, [CONNECTIVITY])
    ]
    assert results == ["would", "would", "refused"]


def test_all_goes_out_in_one_request_within_limits() -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    live = hyperpod_nodes.read_cluster(aws_account, "dev")
    whole = [node(number, "whole") for number in range(700)]
    many = [node(10_000 + number, "many") for number in range(700)]
    some = [node(20_000 + number, "some") for number in range(500)]
    rest = [node(30_000 + number, "many") for number in range(3)] + [node(40_000, "some")]
    few = [node(50_000 + number, f"few{number}") for number in range(100)]
    chosen = [*whole, *many, *some, *few]

    outcomes = hyperpod_checks.start(aws_account, live, chosen, [STRESS], everyone=[*chosen, *rest])

    assert [outcome.node for outcome in outcomes] == [one.name for one in chosen]
    ((_, asked),) = service.asked
    entries = {entry["InstanceGroupName"]: entry for entry in asked["DeepHealthCheckConfigurations"]}
    assert len(entries) == 99 and "many" not in entries
    assert "InstanceIds" not in entries["whole"] and len(entries["some"]["InstanceIds"]) == 500
    by_group = {outcome.group: outcome for outcome in outcomes}
    assert "at most 500 nodes of a group" in by_group["many"].why and by_group["many"].result == "refused"
    assert "99 groups" in by_group["few99"].why
    assert by_group["whole"].result == by_group["few0"].result == "accepted"


def test_a_refusal_is_the_outcome_of_each_node() -> None:
    aws_account = account()
    HyperPod(aws_account)
    live = hyperpod_nodes.read_cluster(aws_account, "dev")

    def refuse(**_: Any) -> None:
        raise refusal("ConflictException", "a health check is in progress")

    aws_account.client("sagemaker").start_cluster_health_check = refuse
    (outcome,) = hyperpod_checks.start(aws_account, live, [node(1, "gpu")], [STRESS])
    assert outcome.result == "failed" and "one such request at a time" in outcome.why


def test_from_the_command(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    result = run(aws_account, "health-check", node_id(16), node_id(17), "--connectivity", "--yes")
    assert result.exit_code == 0 and "InstanceStress, InstanceConnectivity" in result.output
    ((_, asked),) = service.asked
    (entry,) = asked["DeepHealthCheckConfigurations"]
    assert entry["InstanceGroupName"] == "gpu"
    assert entry["DeepHealthChecks"] == ["InstanceStress", "InstanceConnectivity"]
    assert run(aws_account, "health-check", node_id(16), "--no-stress").exit_code == 2
    assert run(aws_account, "health-check").exit_code == 2
    assert run(aws_account, "health-check", node_id(16), "--group", "gpu").exit_code == 2


def test_a_group_is_meant_as_a_whole(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    dry = run(aws_account, "health-check", "--group", "gpu", "--dry-run")
    assert dry.exit_code == 0 and "would" in dry.output and not service.asked
    result = run(aws_account, "health-check", "--group", "gpu", "--yes")
    assert result.exit_code == 0, result.output
    assert [
        (entry["InstanceGroupName"], "InstanceIds" in entry)
        for _, asked in service.asked
        for entry in asked["DeepHealthCheckConfigurations"]
    ] == [("gpu", False)]
    unknown = run(aws_account, "health-check", "--group", "gpus")
    assert unknown.exit_code == 2 and "no nodes in group gpus" in unknown.output


@pytest.mark.parametrize(
    ("name", "says"),
    [("pcs-p6-b200", "srun --nodelist=<node> dcgmi diag"), ("eks-p5en", "EKS checks its nodes itself")],
)
def test_what_the_file_says_needs_no_credentials(
    monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    def opened(**_: Any) -> Any:
        raise AssertionError("the account was asked for")

    monkeypatch.setattr(aws, "Account", opened)
    file = str(ROOT / "environments" / f"{name}.yaml")
    ended = CliRunner().invoke(app, ["nodes", "health-check", file, node_id(16)])
    assert ended.exit_code == 2 and says in ended.output
