"""HyperPod's nodes by the command: legal states, lists, replacing, refusals, and what cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as known
from hyperpod_service import HyperPod, account, node, refusal
from nodes_support import DEV, Slurm, node_id
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes.node import Node
from ultracluster.cli.main import app


@pytest.mark.parametrize(
    ("status", "action", "result", "why"),
    [
        ("Running", "replace", "would", ""),
        ("Failure", "replace", "would", ""),
        ("Failure", "reboot", "would", ""),
        ("Pending", "replace", "already", "being started or replaced"),
        ("Pending", "delete", "would", ""),
        ("Pending", "health-check", "refused", "still being started"),
        ("ShuttingDown", "replace", "already", "leaving the cluster"),
        ("ShuttingDown", "delete", "already", "leaving the cluster"),
        ("NotFound", "replace", "already", "leaving the cluster"),
        ("SystemUpdating", "replace", "refused", "software is being updated"),
        ("SystemUpdating", "delete", "refused", "software is being updated"),
        ("DeepHealthCheckInProgress", "reboot", "refused", "deep health check"),
        ("DeepHealthCheckInProgress", "delete", "would", ""),
        ("DeepHealthCheckInProgress", "health-check", "already", "being checked"),
        ("Failure", "health-check", "refused", "has failed: dead; replace it"),
        ("Quarantined", "replace", "refused", "status Quarantined is one that this release does not know"),
    ],
)
def test_only_legal_states(status: str, action: Any, result: str, why: str) -> None:
    cluster = hyperpod_nodes.LiveCluster("dev", "", "InService", "", True, False, ())
    outcome = hyperpod_nodes.judge(action, cluster, [Node(node_id(16), "gpu", status, message="dead")])[0]
    assert outcome.result == result and why in outcome.why


@pytest.mark.parametrize("action", ["reboot", "replace", "delete"])
@pytest.mark.parametrize("legacy", [False, True])
def test_controllers_are_protected(run: Callable[..., Any], action: str, legacy: bool) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    if legacy:  # roles from a file in S3: the API does not know them, the environment file does
        service.cluster["InstanceGroups"][0].pop("SlurmConfig")
    result = run(aws_account, action, node_id(1), "--yes")
    assert result.exit_code == 1 and "is the controller" in result.output
    assert not service.asked


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("Updating", "works when it is InService again"),
        ("SystemUpdating", "works when it is InService again"),
        ("RollingBack", "works when it is InService again"),
        ("Failed", "ultracluster doctor"),
        ("Hibernating", "which this release does not know"),
    ],
)
def test_a_cluster_in_another_state_is_left_alone(run: Callable[..., Any], status: str, why: str) -> None:
    aws_account = account()
    service = HyperPod(aws_account, ClusterStatus=status)
    result = run(aws_account, "replace", node_id(16), "--yes")
    assert result.exit_code == 1 and why in result.output
    assert not service.asked and "Traceback" not in result.output


def test_list_is_complete_over_pages_and_as_reviewed(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.nodes = service.nodes[:3]
    service.page = 1
    service.status(17, "Failure", "EFA health check failed")
    service.nodes.append(node(24, status="Pending", InstanceId="", PrivateDnsHostname="ip-10-1-0-24.x"))
    service.cluster["InstanceGroups"][1] |= {"CurrentCount": 2, "TargetCount": 3, "Status": "Updating"}
    result = run(aws_account, "list")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "group       node                 status   type         host          image  message",
        "controller  i-00000000000000001  Running  p5.48xlarge  ip-10-1-0-1",
        "gpu         gpu-24               Pending  p5.48xlarge  ip-10-1-0-24",
        "gpu         i-00000000000000010  Running  p5.48xlarge  ip-10-1-0-16",
        "gpu         i-00000000000000011  Failure  p5.48xlarge  ip-10-1-0-17         EFA health check failed",
        "gpu: 2 of 3 nodes, Updating",
        "4 nodes",
    ]
    described = json.loads(run(aws_account, "list", "--status", "failure", "--json").output)["nodes"]
    assert [(one["id"], one["group"], one["launched"]) for one in described] == [
        (node_id(17), "gpu", "2026-11-20T08:00:00+00:00")
    ]


def test_describe_by_any_name(run: Callable[..., Any]) -> None:
    aws_account = account()
    HyperPod(aws_account)
    result = run(aws_account, "list", "ip-10-1-0-16")
    assert result.exit_code == 0
    assert "InstanceId: i-00000000000000010" in result.output and "  Status: Running" in result.output
    assert (
        json.loads(run(aws_account, "list", "gpu-16", "--json").output)["node"]["PrivatePrimaryIp"]
        == "10.1.0.16"
    )
    nobody = run(aws_account, "list", "gpu-99")
    assert nobody.exit_code == 2 and "no such node in dev" in nobody.output


def test_replace_reports_each_node_and_waits(run: Callable[..., Any], slurm: Slurm) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.failing = {node_id(18): "shutting down"}
    service.status(19, "Pending")

    def begin() -> None:
        service.nodes = [one for one in service.nodes if one["InstanceId"] not in (node_id(16), node_id(17))]
        service.nodes += [node(32, status="Pending"), node(33, status="Pending")]

    def end() -> None:
        for number in (32, 33, 19):
            service.status(number, "Running")

    service.later = [lambda: None, begin, end]
    result = run(aws_account, "replace", node_id(16), "gpu-17", node_id(18), node_id(19), "--json", "--yes")
    assert [call for call, _ in service.asked] == ["replace"]
    assert result.exit_code == 1, result.output
    assert [(outcome["node"], outcome["result"]) for outcome in json.loads(result.stdout)["outcomes"]] == [
        (node_id(19), "already"),
        (node_id(16), "accepted"),
        (node_id(17), "accepted"),
        (node_id(18), "failed"),
    ]
    assert 'scontrol update nodename=ip-10-1-0-16 state=drain reason="replace"' in result.stderr
    assert not slurm.closed and sorted(slurm.opened) == ["10.1.0.16", "10.1.0.17", "10.1.0.18"]
    assert "ip-10-1-0-18 state=resume" not in result.stderr, "it was not replaced"
    assert not service.later, "it did not wait until the new nodes ran"


def test_replacing_again_is_no_error(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.nodes = service.nodes[2:]
    service.events = [
        {
            "EventId": "0a0a0a0a-0000-0000-0000-000000000000",
            "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl",
            "ClusterName": "dev",
            "ResourceType": "Instance",
            "InstanceId": node_id(16),
            "EventTime": node(1)["LaunchTime"],
            "Description": "Instance was replaced",
        }
    ]
    service.status(17, "ShuttingDown")
    result = run(aws_account, "replace", node_id(16), node_id(17), "--yes")
    assert result.exit_code == 0, result.output
    assert "has left the cluster: Instance was replaced" in result.output
    assert not service.asked
    unknown = run(aws_account, "replace", node_id(999), "--yes")
    assert unknown.exit_code == 1 and "nothing is left to do" in unknown.output and not service.asked


@pytest.mark.parametrize(("words", "answers"), [(["--dry-run"], None), ([], "n\n"), ([], "")])
@pytest.mark.parametrize("action", ["reboot", "replace", "delete", "health-check"])
def test_nothing_is_asked_without_a_yes(
    run: Callable[..., Any], action: str, words: list[str], answers: str | None
) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    result = run(aws_account, action, node_id(16), *words, answers=answers)
    assert not service.asked
    assert result.exit_code == (0 if words else 2)
    assert ("would" if words else "Not confirmed: nothing changed") in result.output


_ACTION = "sagemaker:BatchReplaceClusterNodes"
_NO = f"is not authorized to perform: {_ACTION} on resource: y"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (refusal("ThrottlingException", "Rate exceeded"), "is being throttled"),
        (refusal("AccessDeniedException", f"User: x {_NO}"), f"access denied: {_ACTION} is not allowed"),
        (refusal("ValidationException", "Update first"), "`ultracluster software update` has run once"),
        (refusal("ConflictException", "Cluster is Updating"), "something else is changing the same thing"),
        (refusal("ExpiredTokenException"), "the credentials have expired"),
    ],
)  # fmt: skip
def test_a_refused_request_is_a_row(run: Callable[..., Any], error: Exception, line: str) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.raising["BatchReplaceClusterNodes"] = error
    result = run(aws_account, "replace", node_id(16), node_id(17), "--yes")
    assert result.exit_code == 1
    assert result.stdout.count(line) == 2 and "Traceback" not in result.output


def test_a_refused_slurm_cluster_is_told_of_slurms_way(run: Callable[..., Any]) -> None:
    aws_account = account()
    service = HyperPod(aws_account)
    service.raising["BatchReplaceClusterNodes"] = refusal("ValidationException", "not patched")
    assert 'state=fail reason="Action:Replace"' in run(aws_account, "replace", node_id(16), "--yes").output


@pytest.mark.parametrize(
    ("operation", "error", "line"),
    [
        ("DescribeCluster", refusal("ResourceNotFound"), "there is no HyperPod cluster dev in us-west-2"),
        ("DescribeCluster", refusal("AccessDeniedException"), "access denied: DescribeCluster"),
        ("ListClusterNodes", refusal("ThrottlingException"), "ListClusterNodes is being throttled"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    run: Callable[..., Any], operation: str, error: Exception, line: str
) -> None:
    aws_account = account()
    HyperPod(aws_account).raising[operation] = error
    result = run(aws_account, "list")
    assert result.exit_code == 2 and line in result.output and len(result.output.splitlines()) == 1


def test_no_credentials_and_wrong_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(self: Account) -> None:
        raise AccountError(aws.explain(known.NoCredentialsError()))

    monkeypatch.setattr(Account, "identity", fail)
    result = CliRunner().invoke(app, ["nodes", "list", str(DEV)])
    assert result.exit_code == 2 and result.output.startswith("no AWS credentials")
    monkeypatch.undo()
    file = tmp_path / "other.yaml"
    file.write_text(DEV.read_text().replace("region:", 'account: "444455556666"\nregion:', 1))
    aws_account = account()
    monkeypatch.setattr(aws, "Account", lambda **_: aws_account)
    result = CliRunner().invoke(app, ["nodes", "list", str(file)])
    assert result.exit_code == 2 and "belongs to account 444455556666" in result.output


def test_a_bad_file_is_refused_with_its_findings(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: dev\n")
    result = CliRunner().invoke(app, ["nodes", "list", str(file)])
    assert result.exit_code == 2 and "orchestrator" in result.output
    assert CliRunner().invoke(app, ["nodes", "list", "nothing-of-this-name"]).exit_code == 2
