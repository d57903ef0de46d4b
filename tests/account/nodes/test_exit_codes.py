"""How `ultracluster nodes` ends where a request is accepted and not over, and where AWS refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hyperpod_service import HyperPod, account, group, refusal
from nodes_support import DEV, node_id
from typer.testing import CliRunner

from ultracluster.account.nodes import hyperpod, hyperpod_restore
from ultracluster.cli.main import app
from ultracluster.config import load

TWO = ("--group", "gpu", "--count", "2")


def emptied() -> list[dict[str, Any]]:
    """A group that HyperPod has set to 0."""
    scripts = {"SourceS3Uri": "s3://scripts/dev/0123456789ab", "OnInitComplete": "a.sh"}
    made = group("gpu", 0, MinCount=0, ExecutionRole="arn:aws:iam::111122223333:role/nodes")
    return [{**made, "LifeCycleConfig": scripts}]


@pytest.mark.parametrize(
    "words",
    [
        ["add", *TWO],
        ["delete", node_id(16)],
        ["reboot", node_id(16)],
        ["add", "--restore", "--group", "gpu"],
    ],
    ids=lambda words: "restore" if "--restore" in words else words[0],
)
def test_what_is_accepted_and_not_over_is_not_known(run: Callable[..., Any], words: list[str]) -> None:
    aws_account = account()
    service = HyperPod(aws_account, **({"InstanceGroups": emptied()} if "--restore" in words else {}))
    service.later = [lambda: service.raising.update(ListClusterNodes=refusal("ExpiredTokenException"))]

    result = run(aws_account, *words, "--yes", "--timeout", "5")

    assert result.exit_code == 3, result.output
    assert "the request is still running in AWS" in result.output and len(service.asked) == 1


CONFLICT = refusal("ConflictException")
LOST = ReadTimeoutError(endpoint_url="https://api.sagemaker")


@pytest.mark.parametrize(("error", "code"), [(CONFLICT, 1), (LOST, 3)], ids=["refused", "lost"])
@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("StartClusterHealthCheck", ["health-check", node_id(16)]),
        ("BatchAddClusterNodes", ["add", *TWO]),
        ("UpdateCluster", ["add", "--restore", "--group", "gpu"]),
    ],
    ids=["health-check", "add", "restore"],
)
def test_a_lost_answer_is_no_refusal(
    run: Callable[..., Any], operation: str, words: list[str], error: Exception, code: int
) -> None:
    aws_account = account()
    service = HyperPod(aws_account, **({"InstanceGroups": emptied()} if "--restore" in words else {}))
    service.raising[operation] = error
    result = run(aws_account, *words, "--yes", "--json")
    assert result.exit_code == code, result.output
    outcomes = json.loads(result.stdout)["outcomes"]
    assert {outcome["result"] for outcome in outcomes} == {"failed" if code == 1 else "unknown"}


def test_a_group_that_could_not_be_read_is_certainly_not_restored() -> None:
    aws_account = account()
    service = HyperPod(aws_account, InstanceGroups=emptied())
    live = hyperpod.read_cluster(aws_account, "dev")
    service.raising["DescribeCluster"] = LOST
    outcome = hyperpod_restore.restore(aws_account, live, "gpu", load(DEV).environment.node_groups["gpu"])
    assert outcome.result == "failed" and not service.asked


@pytest.mark.parametrize(
    ("reason", "code"), [("bad fan, ask Anna", 1), ("ultracluster:xid:79", 0)], ids=["person", "check"]
)
def test_the_reason_of_a_person_is_not_explained(reason: str, code: int) -> None:
    assert CliRunner().invoke(app, ["doctor", str(DEV), "--reason", reason]).exit_code == code
