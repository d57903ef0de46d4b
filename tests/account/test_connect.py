"""The right target of Session Manager for each kind of node."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
import typer
from account_fixtures import keys
from hyperpod_service import HyperPod, account, answer, node, refusal
from moto import mock_aws
from ruamel.yaml import YAML
from typer.testing import CliRunner

from ultracluster.account import aws, sessions
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node, entrance
from ultracluster.account.services.parallelcluster import LOGIN
from ultracluster.cli import connect as command
from ultracluster.config import load
from ultracluster.model import resolve

__all__ = ["keys"]

DEV = Path(__file__).parents[2] / "environments" / "dev.yaml"


class Deployed:
    def __init__(self) -> None:
        self.account = account()
        self.service = HyperPod(self.account)
        self.refused: Exception | None = None
        self.documented = True
        answer(self.account.client("cloudformation"), "ListStackResources", self._resources)

    def _resources(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.refused:
            raise self.refused
        if "NextToken" not in asked:
            return {"StackResourceSummaries": [], "NextToken": "more"}
        document = {
            "LogicalResourceId": "Session",
            "PhysicalResourceId": "dev-cluster-Session-1A2B3C",
            "ResourceType": "AWS::SSM::Document",
            "LastUpdatedTimestamp": node(1)["LaunchTime"],
            "ResourceStatus": "CREATE_COMPLETE",
        }
        admin = document | {
            "LogicalResourceId": "AdminSession",
            "PhysicalResourceId": "dev-cluster-AdminSession-4D5E6F",
        }
        there = self.documented and asked["StackName"] == "dev-cluster"
        documents = [admin, document] if there else []
        return {"StackResourceSummaries": documents}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def invoke(deployed: Deployed, *words: str) -> Any:
        monkeypatch.setattr(aws, "Account", lambda **_: deployed.account)
        app = typer.Typer()
        app.command()(command.connect)
        return CliRunner().invoke(app, [str(DEV), *words])

    return invoke


def test_administrators_have_a_document_of_their_own(run: Callable[..., Any]) -> None:
    people, admin = run(Deployed(), "ip-10-1-0-16"), run(Deployed(), "ip-10-1-0-16", "--admin")

    assert "--document-name dev-cluster-Session-1A2B3C" in people.stdout
    assert "--document-name dev-cluster-AdminSession-4D5E6F" in admin.stdout


TARGET = "sagemaker-cluster:abcdefghijkl_gpu-i-00000000000000010"


def test_a_hyperpod_node_has_a_target_of_its_own(run: Callable[..., Any]) -> None:
    result = run(Deployed(), "ip-10-1-0-16")
    assert result.exit_code == 0
    assert result.stdout == (
        "aws ssm start-session --region us-west-2 --document-name dev-cluster-Session-1A2B3C "
        f"--target {TARGET}\n"
    )
    described = json.loads(run(Deployed(), "gpu-16", "--json").stdout)
    assert described["target"] == TARGET and shlex.join(described["command"]) == result.stdout.strip()


def test_the_way_in_is_a_login_node_else_the_controller(run: Callable[..., Any]) -> None:
    deployed = Deployed()
    assert "_controller-i-00000000000000001\n" in run(deployed).stdout
    deployed.service.nodes.append(node(2, "login"))
    assert "_login-i-00000000000000002\n" in run(deployed).stdout
    deployed.service.nodes = []
    nobody = run(deployed)
    assert nobody.exit_code == 2 and "no node to log in to yet" in nobody.output


def test_without_the_document_the_default_one_is_used(run: Callable[..., Any]) -> None:
    deployed = Deployed()
    deployed.refused = refusal("AccessDenied")
    result = run(deployed, "gpu-16")
    assert result.exit_code == 0 and result.stdout.strip().endswith(f"--target {TARGET}")
    assert "access denied: ListStackResources" in result.stderr and "the default one is used" in result.stderr


def test_no_session_as_another_user_is_opened_without_a_word(run: Callable[..., Any]) -> None:
    """A cluster of a release without session documents."""
    deployed = Deployed()
    deployed.documented = False
    result = run(deployed, "gpu-16")

    assert result.exit_code == 0 and "--document-name" not in result.stdout
    assert "ssm-user, who may sudo" in result.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpu-99", "no such node"),
        ("i-00000000000000099", "did you mean i-0000000000000001"),
        ("gpu-30", "has no instance yet (Pending)"),
        ("gpu-17", "is ShuttingDown"),
    ],
)
def test_there_is_no_session_on(run: Callable[..., Any], name: str, line: str) -> None:
    deployed = Deployed()
    deployed.service.nodes.append(node(30, status="Pending", InstanceId=""))
    deployed.service.status(17, "ShuttingDown")
    result = run(deployed, name)
    assert result.exit_code == 2 and line in result.output and "Traceback" not in result.output


@pytest.mark.parametrize("code", [1, 3, 7])
def test_exec_runs_the_command_and_passes_its_exit_code(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    program = tmp_path / "aws"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    result = run(Deployed(), "gpu-16", "--exec")
    assert result.exit_code == code
    assert (
        (tmp_path / "asked")
        .read_text()
        .startswith("ssm start-session --region us-west-2 --document-name dev-cluster-")
    )
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    missing = run(Deployed(), "gpu-16", "--exec")
    assert missing.exit_code == 2 and "the AWS CLI is not installed" in missing.output


def test_the_profile_goes_with_the_command() -> None:
    session = sessions.Session("i-1", "", "us-west-2", "lab")
    assert session.command[-2:] == ["--profile", "lab"]
    assert "--profile" not in sessions.Session("i-1", "", "us-west-2", "default").command


def test_parallelclusters_way_in_is_a_login_node() -> None:
    head = Node("i-2", "HeadNode", "running", controller=True)
    nodes = [
        Node("i-1", "gpu", "running"),
        head,
        Node("i-3", LOGIN, "running"),
        Node("i-0", LOGIN, "pending"),
    ]
    assert entrance(nodes, {LOGIN}) == nodes[2] and entrance(nodes[:2], {LOGIN}) == head
    assert entrance([], set()) is None


@mock_aws
def test_moto_an_instance_is_its_own_target() -> None:
    aws_account = account()
    ec2 = boto3.client("ec2", "us-west-2")
    tags = [{"Key": "eks:cluster-name", "Value": "hpc"}, {"Key": "eks:nodegroup-name", "Value": "gpu"}]
    answered = ec2.run_instances(
        ImageId="ami-12345678", MinCount=1, MaxCount=1, InstanceType="c5.large",
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )  # fmt: skip
    environment = load(DEV.with_name("eks-p5en.yaml")).environment.model_copy(update={"name": "hpc"})
    fleet = Fleet(aws_account, resolve(environment))
    session = sessions.open_session(aws_account, environment.stack_names, fleet.nodes[0], None)
    assert session.target == answered["Instances"][0]["InstanceId"] and session.document == ""
    assert "does not exist" in session.note


def test_as_one_user_of_the_environment(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name that policies know, so nothing has to be looked up."""
    data = YAML(typ="safe").load(DEV)
    data["users"] = {
        "alice": {"uid": 2001, "principals": ["arn:aws:iam::111122223333:role/alice"]},
        "bob": {"uid": 2002},
    }
    file = tmp_path / "dev.yaml"
    with file.open("w") as out:
        YAML(typ="safe").dump(data, out)
    monkeypatch.setattr(f"{__name__}.DEV", file)

    assert (
        "--document-name dev-cluster-as-alice --target" in run(Deployed(), "gpu-16", "--as", "alice").stdout
    )
    for words, why in (
        (["--as", "bob"], "`bob` has no principals"),
        (["--as", "alic"], "there is no user `alic`, but alice"),
        (["--as", "alice", "--admin"], "exclude each other"),
    ):
        refused = run(Deployed(), "gpu-16", *words)
        assert refused.exit_code == 2 and why in refused.output
