"""`ultracluster job why`: over EC2's answers, HyperPod's file, and files that somebody saved."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from account_fixtures import keys
from hyperpod_service import HyperPod, account, answer, refusal
from nodes_support import DEV
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer
from ultracluster.cli.main import app
from ultracluster.jobs.placement import seats as placement

pytestmark = pytest.mark.slow  # starts programs or listens

__all__ = ["keys"]

PCLUSTER = DEV.with_name("parallelcluster-p5.yaml")
SCONTROL = r"""#!/bin/bash
case "$*" in
  '--oneliner show job 42') echo 'JobId=42 ReqNodeList=(null) NodeList=gpu-st-p5-[1-4] BatchHost=x' ;;
  '--oneliner show job 43') echo 'JobId=43 JobName=train NodeList=(null) NumNodes=4-4' ;;
  '--oneliner show node '*) printf 'NodeName=gpu-st-p5-%d NodeAddr=10.1.0.%d Port=1\n' 1 1 2 2 3 3 4 4 ;;
  *) echo 'slurm_load_jobs error: Invalid job id specified'; exit 1 ;;
esac
"""


class Scontrol:
    """A shell on a node of the cluster that runs what it is given, with a scontrol of our own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.path.mkdir()
        (self.path / "scontrol").write_text(SCONTROL)
        (self.path / "scontrol").chmod(0o755)
        self.config = folder / "resource_config.json"
        self.asked: list[str] = []

    def run(self, nodes: Sequence[Node], script: str, *, seconds: int = 90) -> Mapping[str, Answer]:
        (node,) = nodes
        self.asked.append(node.id)
        script = script.replace(placement.RESOURCE_CONFIG, str(self.config))
        environment = {"PATH": f"{self.path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        return {node.id: Answer(done.stdout, done.returncode)}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scontrol:
    scontrol = Scontrol(tmp_path)
    monkeypatch.setattr(placement, "shell_of", lambda fleet: scontrol)
    return scontrol


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, shell: Scontrol) -> Callable[..., Any]:
    def run(made: Any, *words: str) -> Any:
        monkeypatch.setattr(aws, "Account", lambda *_, **__: made)
        return CliRunner().invoke(app, ["job", "why", *words])

    return run


def instance(number: int, name: str) -> dict[str, Any]:
    tags = {"parallelcluster:cluster-name": "parallelcluster-p5", "parallelcluster:node-type": name}
    if name == "Compute":
        tags |= {"parallelcluster:queue-name": "gpu", "parallelcluster:compute-resource-name": "gpu"}
    return {
        "InstanceId": f"i-{number:017x}",
        "State": {"Name": "running"},
        "InstanceType": "p5.48xlarge",
        "PrivateDnsName": f"ip-10-1-0-{number}.us-west-2.compute.internal",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


LEAVES = {1: "nn-3", 2: "nn-3", 3: "nn-4", 4: "nn-5", 5: "nn-3", 6: "nn-3"}


def parallelcluster(
    leaves: Mapping[int, str] = LEAVES, *, denied: bool = False
) -> tuple[Any, list[list[str]]]:
    """An account with a head node and six nodes, and the ids of each question for places."""
    aws_account = account()
    asked: list[list[str]] = []
    nodes = [instance(9, "HeadNode"), *(instance(number, "Compute") for number in range(1, 7))]
    answer(aws_account.client("ec2"), "DescribeInstances", lambda _: {"Reservations": [{"Instances": nodes}]})

    def places(request: dict[str, Any]) -> dict[str, Any]:
        if denied:
            raise refusal("UnauthorizedOperation", "no", "DescribeInstanceTopology")
        asked.append(request["InstanceIds"])
        rows = [
            {"InstanceId": f"i-{number:017x}", "NetworkNodes": ["nn-1", "nn-2", leaf]}
            for number, leaf in leaves.items()
        ]
        return {"Instances": rows}

    answer(aws_account.client("ec2"), "DescribeInstanceTopology", places)
    return aws_account, asked


def test_a_job_by_its_number(explain: Callable[..., Any]) -> None:
    made, asked = parallelcluster()
    result = explain(made, str(PCLUSTER), "42", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [node["name"] for node in document["nodes"]] == [f"gpu-st-p5-{number}" for number in range(1, 5)]
    assert document["layers"][2] == {
        "layer": "layer-3",
        "switches": {"nn-3": 2, "nn-4": 1, "nn-5": 1},
        "best": [4],
    }
    assert document["topology"]["kind"] == "tree"
    assert len(asked[0]) == 7
    told = explain(made, str(PCLUSTER), "42").stdout
    assert "On layer-3 it spans 3 where 1 would do, were those nodes free." in told


def test_nodes_by_slurms_names_and_by_ids(explain: Callable[..., Any], shell: Scontrol) -> None:
    made, _ = parallelcluster()
    assert explain(made, str(PCLUSTER), "--nodes", f"i-{1:017x},10.1.0.2").exit_code == 0
    assert not shell.asked
    assert explain(made, str(PCLUSTER), "--nodes", "gpu-st-p5-[1-2]").exit_code == 0
    assert explain(made, str(PCLUSTER), "--nodes", "gpu-st-p5-[2-3]").exit_code == 1


def test_a_node_of_which_ec2_tells_nothing(explain: Callable[..., Any]) -> None:
    made, _ = parallelcluster({1: "nn-3"})
    result = explain(made, str(PCLUSTER), "42")
    assert result.exit_code == 3
    assert "Nobody says where these are: gpu-st-p5-2, gpu-st-p5-3, gpu-st-p5-4" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "pass the number of a job, or --nodes"),
        (("42", "--nodes", "a"), "pass the number of a job, or --nodes"),
        (("x; reboot",), "`x; reboot` is no number of a Slurm job"),
        (("43",), "job 43 has no nodes"),
        (("44",), "Invalid job id specified"),
        (("--nodes", "n[1-"), "`n[1-` has a bracket"),
        (("--nodes", "i-none"), "not among the nodes of parallelcluster-p5: i-none"),
        (("--nodes", "a", "--topology", "/none.json"), "it cannot be read"),
    ],
)
def test_what_cannot_be_asked(explain: Callable[..., Any], words: tuple[str, ...], said: str) -> None:
    result = explain(parallelcluster()[0], str(PCLUSTER), *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_right_that_is_missing(explain: Callable[..., Any]) -> None:
    result = explain(parallelcluster(denied=True)[0], str(PCLUSTER), "42")
    assert result.exit_code == 2
    assert "DescribeInstanceTopology" in result.output


def resource_config(leaves: Sequence[str | None]) -> str:
    rows = [
        {
            "InstanceName": f"gpu-{number}",
            "InstanceId": f"i-{number:017x}",
            "CustomerIpAddress": f"10.1.0.{number}",
            "InstanceLabel": leaf
            and {f"network-node-layer-{n}": f"{leaf}{n}" if n == 3 else "nn" * n for n in (1, 2, 3)},
        }
        for number, leaf in enumerate(leaves, start=1)
    ]
    return json.dumps({"InstanceGroups": [{"Name": "gpu", "Instances": rows}]})


def test_hyperpod_is_asked_on_its_controller(explain: Callable[..., Any], shell: Scontrol) -> None:
    aws_account = account()
    HyperPod(aws_account)
    shell.config.write_text(resource_config(["nn-a", "nn-a", "nn-b", "nn-b", "nn-b", "nn-b"]))
    result = explain(aws_account, str(DEV), "42", "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["layers"][2]["switches"] == {"nn-a3": 2, "nn-b3": 2}
    shell.config.write_text("not JSON")
    result = explain(aws_account, str(DEV), "42")
    assert result.exit_code == 2
    assert "--topology" in result.output


def test_a_saved_file_needs_no_account(explain: Callable[..., Any], shell: Scontrol, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    file.write_text(resource_config(["nn-a", "nn-b", "nn-b", None]))
    words = [str(DEV), "--topology", str(file), "--nodes"]
    assert explain(None, *words, "ip-10-1-0-[2-3]").exit_code == 0
    assert explain(None, *words, "gpu-[1-2]").exit_code == 1
    assert explain(None, *words, "10.1.0.4").exit_code == 3
    assert explain(None, *words, "gpu-9").exit_code == 2
    rows = [{"InstanceId": f"i-{n}", "NetworkNodes": ["nn-0", f"nn-{n}"][:n]} for n in (0, 1, 2)]
    file.write_text(json.dumps({"Instances": rows}))
    assert explain(None, *words, "i-2").exit_code == 0
    assert explain(None, *words, "i-0").exit_code == 3
    file.write_text("[]")
    assert "it has no nodes" in " ".join(explain(None, *words, "i-1").output.split())
    assert not shell.asked


def test_slurm_is_asked_here(
    explain: Callable[..., Any], shell: Scontrol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{shell.path}:{os.environ['PATH']}")
    file = tmp_path / "saved.json"
    file.write_text(resource_config(["nn-a"] * 4))
    assert explain(None, str(DEV), "42", "--here", "--topology", str(file)).exit_code == 0
    result = explain(None, str(DEV), "44", "--here", "--topology", str(file))
    assert result.exit_code == 2
    assert "Invalid job id" in result.output


def test_a_job_of_kubernetes_has_no_number(explain: Callable[..., Any]) -> None:
    result = explain(None, str(DEV.with_name("eks-p5en.yaml")), "42")
    assert result.exit_code == 2
    assert "--nodes" in result.output
