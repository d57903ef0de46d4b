"""Nodes of a deployed environment: legal states, chunks, partial failures, waiting, every route."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import exceptions as known
from botocore.validate import validate_parameters
from hyperpod_service import BORN, HyperPod, account, answer, group, node, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes import hyperpod_requests, hyperpod_restore
from ultracluster.account.nodes import hyperpod_wait as node_wait
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node, chunks, find
from ultracluster.cli import nodes as command
from ultracluster.config import Environment, load
from ultracluster.model import resolve

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"


def name(number: int) -> str:
    return f"i-{number:017x}"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs `ultracluster nodes ...` against an account; waiting takes no time."""

    wait = node_wait.wait

    def invoke(made: Account, *words: str, answers: str | None = None) -> Any:
        monkeypatch.setattr(aws, "Account", lambda **_: made)
        ticks = iter(range(0, 1_000_000, 60))
        monkeypatch.setattr(
            node_wait, "wait",
            lambda *a, **k: wait(*a, **k, sleep=lambda _: None, clock=lambda: float(next(ticks))),
        )  # fmt: skip
        return CliRunner().invoke(command.app, [words[0], str(DEV), *words[1:]], input=answers)

    return invoke


def other(kind: str) -> Environment:
    """The example of an orchestrator, under another name."""
    file = {"parallelcluster": "parallelcluster-p5", "pcs": "pcs-p6-b200", "eks": "eks-p5en"}[kind]
    return load(DEV.with_name(f"{file}.yaml")).environment.model_copy(update={"name": "hpc"})


@given(st.lists(st.text(min_size=1), unique=True, max_size=300), st.integers(1, 120))
def test_chunks_neither_lose_nor_repeat(names: list[str], limit: int) -> None:
    parts = list(chunks(names, limit))
    assert [one for part in parts for one in part] == names
    assert all(1 <= len(part) <= limit for part in parts)


@given(
    st.sets(st.integers(0x100, 0x2FF), min_size=1, max_size=130),
    st.sampled_from(["reboot", "replace", "delete"]),
    st.data(),
)
@settings(max_examples=25, deadline=None)
def test_every_node_is_asked_for_once_and_answered_once(numbers: set[int], action: Any, data: Any) -> None:
    made = account()
    service = HyperPod(made)
    service.nodes = [node(number) for number in sorted(numbers)]
    waiting = data.draw(st.sets(st.sampled_from(sorted(numbers))))
    if action == "delete":  # only places without an instance go by their logical id
        for entry in service.nodes:
            if int(entry["InstanceId"][2:], 16) in waiting:
                entry["InstanceId"] = ""
    names = [entry["InstanceId"] or entry["NodeLogicalId"] for entry in service.nodes]
    service.failing = dict.fromkeys(data.draw(st.sets(st.sampled_from(names))), "busy")
    cluster = hyperpod_nodes.read_cluster(made, "dev")
    nodes = hyperpod_nodes.list_nodes(made, cluster)
    outcomes = hyperpod_requests.act(made, action, cluster, nodes)
    asked = [
        one
        for _, call in service.asked
        for one in [*call.get("NodeIds", []), *call.get("NodeLogicalIds", [])]
    ]
    assert sorted(asked) == sorted(one.name for one in nodes)
    assert [one.node for one in outcomes] == [one.name for one in nodes]
    assert {one.node for one in outcomes if one.bad} == set(service.failing) & set(asked)
    limit = 99 if action == "delete" else 25
    assert all(
        len(ids) <= limit for _, call in service.asked for key, ids in call.items() if key != "ClusterName"
    )


def test_limits_are_those_of_the_api() -> None:
    made = account()
    service = HyperPod(made)
    assert hyperpod_requests.limit(made, "reboot", "NodeIds") == 25
    assert hyperpod_requests.limit(made, "replace", "NodeLogicalIds") == 25
    assert hyperpod_requests.limit(made, "delete", "NodeIds") == hyperpod_requests.DELETE_LIMIT
    model = service.client.meta.service_model.operation_model("BatchAddClusterNodes").input_shape
    step = model.members["NodesToAdd"].member.members["IncrementTargetCountBy"]
    assert step.metadata["max"] == hyperpod_requests.ADD_LIMIT
    shape = service.client.meta.service_model.shape_for("ClusterInstanceStatus")
    assert set(hyperpod_nodes.STATUSES) == set(shape.metadata["enum"])


@pytest.mark.parametrize(
    "asked",
    [
        name(16),
        "gpu-16",
        "ip-10-1-0-16",
        "ip-10-1-0-16.us-west-2.compute.internal",
        "10.1.0.16",
        f"gpu-{name(16)}",
    ],
)
def test_a_node_answers_to_every_name_it_has(asked: str) -> None:
    made = account()
    HyperPod(made)
    nodes = hyperpod_nodes.list_nodes(made, hyperpod_nodes.read_cluster(made, "dev"))
    found, missing = find(nodes, [asked, asked])
    assert [one.id for one in found] == [name(16)] and not missing
    assert find(nodes, ["", "gpu"]) == ([], ["", "gpu"])


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
    outcome = hyperpod_nodes.judge(action, cluster, [Node(name(16), "gpu", status, message="dead")])[0]
    assert outcome.result == result and why in outcome.why


@pytest.mark.parametrize("action", ["reboot", "replace", "delete"])
@pytest.mark.parametrize("legacy", [False, True])
def test_controllers_are_protected(run: Callable[..., Any], action: str, legacy: bool) -> None:
    made = account()
    service = HyperPod(made)
    if legacy:  # roles from a file in S3: the API does not know them, the environment file does
        service.cluster["InstanceGroups"][0].pop("SlurmConfig")
    result = run(made, action, name(1), "--yes")
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
    made = account()
    service = HyperPod(made, ClusterStatus=status)
    result = run(made, "replace", name(16), "--yes")
    assert result.exit_code == 1 and why in result.output
    assert not service.asked and "Traceback" not in result.output


def test_list_is_complete_over_pages_and_as_reviewed(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    service.nodes = service.nodes[:3]
    service.page = 1
    service.status(17, "Failure", "EFA health check failed")
    service.nodes.append(node(24, status="Pending", InstanceId="", PrivateDnsHostname="ip-10-1-0-24.x"))
    service.cluster["InstanceGroups"][1] |= {"CurrentCount": 2, "TargetCount": 3, "Status": "Updating"}
    result = run(made, "list")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "group       node                 status   type         host          image",
        "controller  i-00000000000000001  Running  p5.48xlarge  ip-10-1-0-1",
        "gpu         gpu-24               Pending  p5.48xlarge  ip-10-1-0-24",
        "gpu         i-00000000000000010  Running  p5.48xlarge  ip-10-1-0-16",
        "gpu         i-00000000000000011  Failure  p5.48xlarge  ip-10-1-0-17         EFA health check failed",
        "gpu: 2 of 3 nodes, Updating",
        "4 nodes",
    ]
    described = json.loads(run(made, "list", "--status", "failure", "--json").output)["nodes"]
    assert [(one["id"], one["group"], one["launched"]) for one in described] == [
        (name(17), "gpu", "2026-11-20T08:00:00+00:00")
    ]


def test_describe_by_any_name(run: Callable[..., Any]) -> None:
    made = account()
    HyperPod(made)
    result = run(made, "describe", "ip-10-1-0-16")
    assert result.exit_code == 0
    assert "InstanceId: i-00000000000000010" in result.output and "  Status: Running" in result.output
    assert (
        json.loads(run(made, "describe", "gpu-16", "--json").output)["node"]["PrivatePrimaryIp"]
        == "10.1.0.16"
    )
    nobody = run(made, "describe", "gpu-99")
    assert nobody.exit_code == 2 and "no such node in dev" in nobody.output


def test_replace_reports_each_node_and_waits(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    service.failing = {name(18): "shutting down"}
    service.status(19, "Pending")

    def begin() -> None:
        service.nodes = [one for one in service.nodes if one["InstanceId"] not in (name(16), name(17))]
        service.nodes += [node(32, status="Pending"), node(33, status="Pending")]

    def end() -> None:
        for number in (32, 33, 19):
            service.status(number, "Running")

    service.later = [lambda: None, begin, end]
    result = run(made, "replace", name(16), "gpu-17", name(18), name(19), "--json", "--yes")
    assert [call for call, _ in service.asked] == ["replace"]
    assert result.exit_code == 1, result.output
    assert [(one["node"], one["result"]) for one in json.loads(result.stdout)["outcomes"]] == [
        (name(19), "already"),
        (name(16), "accepted"),
        (name(17), "accepted"),
        (name(18), "failed"),
    ]
    assert 'scontrol update nodename=ip-10-1-0-16 state=drain reason="replace"' in result.stderr
    assert "scontrol update nodename=ip-10-1-0-17 state=resume" in result.stderr
    assert "ip-10-1-0-18 state=resume" not in result.stderr, "it was not replaced"
    assert not service.later, "it did not wait until the new nodes ran"


def test_replacing_again_is_no_error(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    service.nodes = service.nodes[2:]
    service.events = [
        {
            "EventId": "0a0a0a0a-0000-0000-0000-000000000000",
            "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl",
            "ClusterName": "dev",
            "ResourceType": "Instance",
            "InstanceId": name(16),
            "EventTime": node(1)["LaunchTime"],
            "Description": "Instance was replaced",
        }
    ]
    service.status(17, "ShuttingDown")
    result = run(made, "replace", name(16), name(17), "--yes")
    assert result.exit_code == 0, result.output
    assert "has left the cluster: Instance was replaced" in result.output
    assert not service.asked
    unknown = run(made, "replace", name(999), "--yes")
    assert unknown.exit_code == 1 and "nothing is left to do" in unknown.output and not service.asked


def test_a_node_that_aws_does_not_mention_has_failed() -> None:
    made = account()
    HyperPod(made)
    cluster = hyperpod_nodes.read_cluster(made, "dev")
    silent = account()
    answer(silent.client("sagemaker"), "BatchRebootClusterNodes", lambda asked: {})
    outcome = hyperpod_requests.act(silent, "reboot", cluster, [Node(name(16), "gpu", "Running")])[0]
    assert outcome.result == "failed" and "AWS did not say what became of it" in outcome.why


@pytest.mark.parametrize(("words", "answers"), [(["--dry-run"], None), ([], "n\n"), ([], "")])
@pytest.mark.parametrize("action", ["reboot", "replace", "delete", "health-check"])
def test_nothing_is_asked_without_a_yes(
    run: Callable[..., Any], action: str, words: list[str], answers: str | None
) -> None:
    made = account()
    service = HyperPod(made)
    result = run(made, action, name(16), *words, answers=answers)
    assert not service.asked
    assert result.exit_code == (0 if words else 2)
    assert ("would" if words else "Not confirmed: nothing changed") in result.output


def test_a_node_that_fails_while_waiting_is_told(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)

    def replaced() -> None:
        service.nodes[1] = node(40, status="Failure")

    service.later = [replaced]
    result = run(made, "replace", name(16), "--yes")
    assert result.exit_code == 3
    assert f"{name(40)} has failed, and HyperPod does not retry by itself" in result.output


def test_waiting_ends_in_time_and_survives_a_lost_permission(run: Callable[..., Any]) -> None:
    made = account()
    HyperPod(made)
    result = run(made, "replace", name(16), "--yes", "--timeout", "5")
    assert result.exit_code == 3 and f"still under way: {name(16)} is still there" in result.output
    made = account()
    service = HyperPod(made)
    service.later = [lambda: service.raising.update(ListClusterNodes=refusal("ExpiredTokenException"))]
    result = run(made, "replace", name(16), "--yes")
    assert result.exit_code == 3
    assert "the request is still running in AWS: the credentials have expired" in result.output


def test_a_reboot_is_believed_only_after_it_has_shown() -> None:
    made = account()
    service = HyperPod(made)
    seen: list[node_wait.Seen] = []
    times = iter([0.0, 0.0, 60.0, 120.0, 180.0, 240.0])
    service.later = [lambda: service.status(16, "Pending"), lambda: service.status(16, "Running")]
    last = node_wait.wait(
        made,
        "dev",
        groups={"gpu"},
        settle=180,
        report=seen.append,
        sleep=lambda _: None,
        clock=lambda: next(times),
    )
    assert [one.ready for one in seen] == [8, 7, 8] and last.busy == ()


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
    made = account()
    service = HyperPod(made)
    service.raising["BatchReplaceClusterNodes"] = error
    result = run(made, "replace", name(16), name(17), "--yes")
    assert result.exit_code == 1
    assert result.stdout.count(line) == 2 and "Traceback" not in result.output


def test_a_refused_slurm_cluster_is_told_of_slurms_way(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    service.raising["BatchReplaceClusterNodes"] = refusal("ValidationException", "not patched")
    assert 'state=fail reason="Action:Replace"' in run(made, "replace", name(16), "--yes").output


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
    made = account()
    HyperPod(made).raising[operation] = error
    result = run(made, "list")
    assert result.exit_code == 2 and line in result.output and len(result.output.splitlines()) == 1


def test_no_credentials_and_wrong_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(self: Account) -> None:
        raise AccountError(aws.explain(known.NoCredentialsError()))

    monkeypatch.setattr(Account, "identity", fail)
    result = CliRunner().invoke(command.app, ["list", str(DEV)])
    assert result.exit_code == 2 and result.output.startswith("no AWS credentials")
    monkeypatch.undo()
    file = tmp_path / "other.yaml"
    file.write_text(DEV.read_text().replace("region:", 'account: "444455556666"\nregion:', 1))
    made = account()
    monkeypatch.setattr(aws, "Account", lambda **_: made)
    result = CliRunner().invoke(command.app, ["list", str(file)])
    assert result.exit_code == 2 and "belongs to account 444455556666" in result.output


def test_a_bad_file_is_refused_with_its_findings(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: dev\n")
    result = CliRunner().invoke(command.app, ["list", str(file)])
    assert result.exit_code == 2 and "orchestrator" in result.output
    assert CliRunner().invoke(command.app, ["list", "nothing-of-this-name"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "steps"), [(["--count", "3"], [3]), (["--to", "120"], [50, 50, 12]), (["--to", "8"], [])]
)
def test_add_in_steps(run: Callable[..., Any], words: list[str], steps: list[int]) -> None:
    made = account()
    service = HyperPod(made)
    result = run(made, "add", "--group", "gpu", *words, "--yes", "--no-wait")
    assert result.exit_code == 0, result.output
    asked = [call for _, call in service.asked]
    assert [call["NodesToAdd"][0]["IncrementTargetCountBy"] for call in asked] == steps


def test_a_second_try_adds_nodes_once_and_a_second_wish_adds_them_again() -> None:
    made = account()
    service = HyperPod(made)
    cluster = hyperpod_nodes.read_cluster(made, "dev")
    for seconds in (0, 300, 900):
        hyperpod_requests.add(made, cluster, "gpu", 120, now=lambda seconds=seconds: float(seconds))
    tokens = [call["ClientToken"] for _, call in service.asked]
    assert tokens[:3] == tokens[3:6] and len(set(tokens)) == 6


@pytest.mark.parametrize(
    ("changes", "words", "line"),
    [
        ({"NodeProvisioningMode": None}, ["--group", "gpu"], "raise `count` in the environment file"),
        ({}, ["--group", "gpus"], "no group gpus; there are controller, gpu"),
        ({}, ["--group", "controller"], "exactly one controller"),
        ({"ClusterStatus": "Updating"}, ["--group", "gpu"], "works when it is InService again"),
        (
            {"InstanceGroups": [group("gpu", 8, Status="Updating", MinCount=8)]},
            ["--group", "gpu"],
            "towards its minimum count",
        ),
    ],
)
def test_add_is_refused(
    run: Callable[..., Any], changes: dict[str, Any], words: list[str], line: str
) -> None:
    made = account()
    service = HyperPod(made)
    service.cluster = {
        key: value for key, value in {**service.cluster, **changes}.items() if value is not None
    }
    result = run(made, "add", *words, "--count", "2", "--yes")
    assert result.exit_code == 1 and line in result.output and not service.asked


def test_add_failures_are_rows(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    service.failing["add"] = "InvalidInstanceGroupStatus"
    result = run(made, "add", "--group", "gpu", "--count", "60", "--yes")
    assert result.exit_code == 1 and "InvalidInstanceGroupStatus" in result.output
    assert len(service.asked) == 1, "it went on after a failure"
    assert run(made, "add", "--group", "gpu").exit_code == 2


def test_health_check_goes_out_by_group_within_limits() -> None:
    made = account()
    service = HyperPod(made)
    cluster = hyperpod_nodes.read_cluster(made, "dev")
    nodes = [Node(name(number), "a", "Running") for number in range(1100)]
    nodes += [Node(name(9000 + number), f"b{number}", "Running") for number in range(120)]
    outcomes = hyperpod_requests.start_health_check(made, cluster, nodes, ["InstanceStress"])
    assert len(outcomes) == len(nodes) == len({one.node for one in outcomes})
    entries = [entry for _, call in service.asked for entry in call["DeepHealthCheckConfigurations"]]
    assert sorted(one for entry in entries for one in entry["InstanceIds"]) == sorted(one.id for one in nodes)
    assert max(len(entry["InstanceIds"]) for entry in entries) == 500
    assert max(len(call["DeepHealthCheckConfigurations"]) for _, call in service.asked) <= 99


def test_health_check_from_the_command(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made)
    result = run(made, "health-check", name(16), "--connectivity", "--yes")
    assert result.exit_code == 0 and "InstanceStress, InstanceConnectivity" in result.output
    assert service.asked[0][1]["DeepHealthCheckConfigurations"] == [
        {
            "InstanceGroupName": "gpu",
            "InstanceIds": [name(16)],
            "DeepHealthChecks": ["InstanceStress", "InstanceConnectivity"],
        }
    ]
    assert run(made, "health-check", name(16), "--no-stress").exit_code == 2


@mock_aws
def test_moto_knows_clusters_and_nodes() -> None:
    # fewer than a page: moto 5.2.5 gives the same token twice for nodes
    made = account()
    sagemaker = made.client("sagemaker")
    sagemaker.create_cluster(
        ClusterName="dev",
        InstanceGroups=[
            {
                "InstanceGroupName": name,
                "InstanceType": "ml.p5.48xlarge",
                "InstanceCount": count,
                "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "run.sh"},
                "ExecutionRole": "arn:aws:iam::111122223333:role/node",
                "ThreadsPerCore": 1,
            }
            for name, count in (("controller", 1), ("gpu", 90))
        ],
    )
    fleet = Fleet(made, resolve(load(DEV).environment))
    assert len(fleet.nodes) == 91 and {one.status for one in fleet.nodes} == {"Running"}
    assert fleet.cluster and [(one.name, one.current) for one in fleet.cluster.groups] == [
        ("controller", 1),
        ("gpu", 90),
    ]
    found, _ = fleet.find(["gpu-7"])
    assert fleet.describe(found[0])["InstanceGroupName"] == "gpu"
    assert [one.result for one in fleet.judge("replace", fleet.nodes)].count("refused") == 1


@mock_aws
@pytest.mark.parametrize(
    ("kind", "tags", "group"),
    [
        (
            "parallelcluster",
            {
                "parallelcluster:cluster-name": "hpc",
                "parallelcluster:node-type": "Compute",
                "parallelcluster:queue-name": "gpu",
            },
            "gpu",
        ),
        ("eks", {"eks:cluster-name": "hpc", "eks:nodegroup-name": "gpu"}, "gpu"),
    ],
)
def test_instances_take_their_own_route(kind: str, tags: dict[str, str], group: str) -> None:
    made = account()
    ids = _instances(tags, 3)
    _instances({"eks:cluster-name": "another", "parallelcluster:cluster-name": "another"}, 2)
    fleet = Fleet(made, resolve(other(kind)))
    assert {(one.id, one.group, one.status) for one in fleet.nodes} == {
        (one, group, "running") for one in ids
    }
    assert [one.result for one in fleet.act("reboot", fleet.nodes)] == ["accepted"] * 3
    assert fleet.describe(fleet.nodes[0])["StatusChecks"]
    assert [one.result for one in fleet.act("replace", fleet.nodes[:1])] == ["accepted"]
    later = Fleet(made, resolve(other(kind)))
    assert len(later.nodes) == 2
    assert later.absent(fleet.nodes[0].id).result == "already"
    assert later.absent("i-00000000000000000").result == "refused"


@mock_aws
def test_the_command_replaces_instances_and_says_what_to_run_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"parallelcluster:cluster-name": "parallelcluster-p5", "parallelcluster:node-type": "Compute"}
    node = _instances({**names, "parallelcluster:queue-name": "gpu"}, 1)[0]
    head = _instances({**names, "parallelcluster:node-type": "HeadNode"}, 1)[0]
    file = DEV.with_name("parallelcluster-p5.yaml")
    made = account(load(file).environment.region)
    monkeypatch.setattr(aws, "Account", lambda **_: made)
    ec2 = made.client("ec2", "us-west-2")  # where the instances of this test are
    made._clients["ec2", made.region] = ec2
    result = CliRunner().invoke(command.app, ["replace", str(file), node, head, "--yes", "--json"])
    assert result.exit_code == 1, result.output
    assert {one["node"]: one["result"] for one in json.loads(result.stdout)["outcomes"]} == {
        head: "refused",
        node: "accepted",
    }
    assert "sinfo -N -h" in result.stderr and "only nodes within the minimum count" in result.stderr
    states = ec2.describe_instances(InstanceIds=[node])["Reservations"][0]["Instances"][0]["State"]
    assert states["Name"] == "terminated"
    again = CliRunner().invoke(command.app, ["replace", str(file), node, "--yes"])
    assert again.exit_code == 0 and "is terminated" in again.output
    added = CliRunner().invoke(command.app, ["add", str(file), "--group", "gpu", "--count", "1"])
    assert added.exit_code == 2 and "change `count` in the environment file" in added.output


def _instances(tags: dict[str, str], count: int) -> list[str]:
    ec2 = boto3.client("ec2", "us-west-2")
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    answered = ec2.run_instances(
        ImageId="ami-12345678",
        MinCount=count,
        MaxCount=count,
        InstanceType="c5.large",
        TagSpecifications=[{"ResourceType": "instance", "Tags": listed}],
    )
    return [one["InstanceId"] for one in answered["Instances"]]


def test_pcs_nodes_are_found_by_their_groups() -> None:
    made = account()
    answer(made.client("pcs"), "ListComputeNodeGroups", lambda asked: _pcs_page(asked))
    asked_of_ec2: list[dict[str, Any]] = []
    tags = [{"Key": "aws:pcs:compute-node-group-id", "Value": "pcs_2"}]
    instance = {
        "InstanceId": name(16),
        "State": {"Name": "running"},
        "Tags": tags,
        "InstanceLifecycle": "capacity-block",
        "PrivateDnsName": "ip-10-1-0-16.us-west-2.compute.internal",
    }

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        asked_of_ec2.append(asked)
        return {"Reservations": [{"Instances": [instance]}]}

    answer(made.client("ec2"), "DescribeInstances", describe)
    fleet = Fleet(made, resolve(other("pcs")))
    assert [(one.id, one.group, one.reserved) for one in fleet.nodes] == [(name(16), "gpu", True)]
    assert asked_of_ec2[0]["Filters"][0] == {
        "Name": "tag:aws:pcs:compute-node-group-id",
        "Values": ["pcs_1", "pcs_2"],
    }
    before = "\n".join(fleet.before("replace", fleet.nodes))
    assert "a block that is about to end gives no node back" in before
    assert '$2 == "10.1.0.16"' in before


def _pcs_page(asked: dict[str, Any]) -> dict[str, Any]:
    first = "nextToken" not in asked
    entry = {
        "name": "login" if first else "gpu",
        "id": "pcs_1" if first else "pcs_2",
        "arn": "arn:aws:pcs:us-west-2:111122223333:cluster/x/computenodegroup/y",
        "clusterId": "pcs_x",
        "createdAt": node(1)["LaunchTime"],
        "modifiedAt": node(1)["LaunchTime"],
        "status": "ACTIVE",
    }
    return {"computeNodeGroups": [entry], **({"nextToken": "more"} if first else {})}


@pytest.mark.parametrize(
    ("action", "kind", "changes", "result", "why"),
    [
        ("replace", "parallelcluster", {"controller": True}, "refused", "is the head node"),
        ("reboot", "parallelcluster", {"controller": True}, "would", ""),
        ("replace", "eks", {"status": "shutting-down"}, "already", "is shutting-down"),
        ("replace", "eks", {"status": "pending"}, "already", "being started"),
        ("reboot", "pcs", {"status": "stopped"}, "refused", "replace it instead"),
        ("replace", "pcs", {"status": "stopped"}, "would", ""),
        ("replace", "pcs", {"status": "hibernated"}, "refused", "this release does not know"),
        ("delete", "pcs", {}, "refused", "change `count` in the environment file"),
        ("health-check", "eks", {}, "refused", "AcceleratedHardwareReady"),
        ("health-check", "pcs", {}, "refused", "dcgmi diag"),
    ],
)
def test_instances_in_legal_states_only(
    action: Any, kind: str, changes: dict[str, Any], result: str, why: str
) -> None:
    one = Node(**{"id": name(16), "group": "gpu", "status": "running", **changes})
    outcome = ec2_nodes.judge(action, resolve(other(kind)), [one])[0]
    assert outcome.result == result and why in outcome.why


def test_a_refused_instance_is_a_row() -> None:
    made = account()

    def refuse(asked: dict[str, Any]) -> dict[str, Any]:
        raise refusal("UnauthorizedOperation", "You are not authorized to perform this operation.")

    answer(made.client("ec2"), "TerminateInstances", refuse)
    outcome = ec2_nodes.act(made, "replace", [Node(name(16), "gpu", "running")])[0]
    assert outcome.result == "failed" and "access denied: TerminateInstances" in outcome.why


# A group that HyperPod has set to 0


SCRIPTS = "s3://example-scripts/dev/0123456789ab"


def emptied(**more: Any) -> dict[str, Any]:
    """DescribeCluster's entry of a group, with everything that it may tell."""
    return group(
        "gpu",
        0,
        MinCount=0,
        InstanceType="ml.g6e.12xlarge",
        ExecutionRole="arn:aws:iam::111122223333:role/nodes",
        LifeCycleConfig={"SourceS3Uri": SCRIPTS, "OnInitComplete": "a.sh"},
        InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        NetworkInterface={"InterfaceType": "efa-only"},
        CurrentImageId="ami-0123456789abcdef0",
        CurrentImageReleaseVersion="2.1.0",
        TrainingPlanStatus="Active",
        **more,
    )


def with_roles(*groups: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"ExecutionRole": "arn:aws:iam::111122223333:role/nodes", **entry} for entry in groups]


def test_restore_brings_one_group_back_and_leaves_the_others(run: Callable[..., Any]) -> None:
    made = account()
    others = (group("controller", 1, "Controller"), group("login", 1, "Login"), group("more", 3, MinCount=2))
    service = HyperPod(made, InstanceGroups=with_roles(*others, emptied()))
    result = run(made, "restore", "gpu", "--yes", "--no-wait")

    assert result.exit_code == 0, result.output
    ((operation, asked),) = service.asked
    sent = {entry["InstanceGroupName"]: entry for entry in asked["InstanceGroups"]}
    assert operation == "update-cluster" and set(sent) == {"controller", "login", "more", "gpu"}
    assert sent["gpu"] == {
        "InstanceGroupName": "gpu",
        "InstanceCount": 2,
        "InstanceType": "ml.g6e.12xlarge",
        "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
        "LifeCycleConfig": {
            "SourceS3Uri": SCRIPTS,
            "OnInitComplete": "a.sh",
        },
        "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        "NetworkInterface": {"InterfaceType": "efa-only"},
        "SlurmConfig": {"NodeType": "Compute"},
    }
    assert (sent["more"]["InstanceCount"], sent["more"]["MinInstanceCount"]) == (3, 2)
    assert sent["login"]["InstanceCount"] == 1 and "MinInstanceCount" not in sent["login"]
    again = run(made, "restore", "gpu", "--yes")
    assert again.exit_code == 0 and "already" in again.output and len(service.asked) == 1


def test_restore_waits_for_the_nodes(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made, InstanceGroups=with_roles(group("controller", 1, "Controller"), emptied()))
    service.nodes = [node(1, "controller")]

    def come_up() -> None:
        service.nodes += [node(number) for number in (16, 17)]

    service.later = [lambda: None, lambda: None, come_up]
    result = run(made, "restore", "gpu", "--yes")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("groups", "name", "line"),
    [
        ([emptied()], "gpus", "the environment file has no group gpus; it has controller, login, gpu"),
        ([group("controller", 1, "Controller")], "gpu", "dev has no group gpu yet: deploy makes it"),
        ([{**emptied(), "TargetCount": 5}], "gpu", "this command ends no node"),
    ],
)
def test_restore_is_refused(
    run: Callable[..., Any], groups: list[dict[str, Any]], name: str, line: str
) -> None:
    made = account()
    service = HyperPod(made, InstanceGroups=with_roles(*groups))
    result = run(made, "restore", name, "--yes")
    assert result.exit_code == 1 and line in result.output and not service.asked


def test_restore_asks_first_and_can_be_tried(run: Callable[..., Any]) -> None:
    made = account()
    service = HyperPod(made, InstanceGroups=with_roles(emptied()))

    tried = run(made, "restore", "gpu", "--dry-run")
    refused = run(made, "restore", "gpu", answers="n\n")
    busy = run(hyperpod_account(ClusterStatus="Updating"), "restore", "gpu", "--yes")

    assert tried.exit_code == 0 and "from a target of 0 to 2 nodes" in tried.output
    assert refused.exit_code == 2 and not service.asked
    assert busy.exit_code == 1 and "works when it is InService again" in busy.output


def hyperpod_account(**cluster: Any) -> Account:
    made = account()
    HyperPod(made, InstanceGroups=with_roles(emptied()), **cluster)
    return made


def test_a_group_is_sent_in_the_form_that_the_update_takes() -> None:
    """The SDK's own check of both: what DescribeCluster gives in another form is turned round."""
    described = emptied(
        InstanceRequirements={
            "CurrentInstanceTypes": ["ml.p4d.24xlarge"],
            "DesiredInstanceTypes": ["ml.p5.48xlarge"],
        },
        KubernetesConfig={"CurrentLabels": {"a": "b"}, "DesiredLabels": {"a": "c"}, "DesiredTaints": []},
        AutoPatchConfig={"PatchingStrategy": "WhenIdle", "DesiredPatchSchedule": {"NextPatchDate": BORN}},
        ThreadsPerCore=1,
        Status="InService",
    ) | {"MinCount": 3}
    sent = hyperpod_restore.specification(described)
    model = account().client("sagemaker").meta.service_model

    validate_parameters(sent, model.shape_for("ClusterInstanceGroupSpecification"))
    assert sent["InstanceRequirements"] == {"InstanceTypes": ["ml.p5.48xlarge"]}
    assert sent["KubernetesConfig"] == {"Labels": {"a": "c"}}
    assert sent["MinInstanceCount"] == 3
    # every field of the update but counts and image comes from what is described
    fields = set(model.shape_for("ClusterInstanceGroupSpecification").members)
    left = fields - {"InstanceCount", "MinInstanceCount", "ImageId", "ImageReleaseVersion"}
    assert left == hyperpod_restore._AS_IT_IS | hyperpod_restore._DETAILED.keys()
