"""Nodes of every orchestrator by one way: HyperPod's, PCS's, and instances by their tags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from hyperpod_service import account, answer, node
from moto import mock_aws
from nodes_support import DEV, Slurm, copied, node_id, other
from typer.testing import CliRunner

from ultracluster.account import aws
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.cli import node_actions
from ultracluster.cli.main import app
from ultracluster.cli.terminal import PART
from ultracluster.config import load
from ultracluster.config.kubernetes import Karpenter
from ultracluster.model import resolve


@mock_aws
def test_moto_knows_clusters_and_nodes() -> None:
    # fewer than a page: moto 5.2.5 gives the same token twice for nodes
    aws_account = account()
    sagemaker = aws_account.client("sagemaker")
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
    fleet = Fleet(aws_account, resolve(load(DEV).environment))
    assert len(fleet.nodes) == 91 and {one.status for one in fleet.nodes} == {"Running"}
    assert fleet.cluster and [(group.name, group.current) for group in fleet.cluster.groups] == [
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
    aws_account = account()
    ids = _instances(tags, 3)
    _instances({"eks:cluster-name": "another", "parallelcluster:cluster-name": "another"}, 2)
    fleet = Fleet(aws_account, resolve(other(kind)))
    assert {(one.id, one.group, one.status) for one in fleet.nodes} == {
        (identifier, group, "running") for identifier in ids
    }
    assert [one.result for one in fleet.act("reboot", fleet.nodes)] == ["accepted"] * 3
    assert fleet.describe(fleet.nodes[0])["StatusChecks"]
    assert [one.result for one in fleet.act("replace", fleet.nodes[:1])] == ["accepted"]
    later = Fleet(aws_account, resolve(other(kind)))
    assert len(later.nodes) == 2
    assert later.absent(fleet.nodes[0].id).result == "already"
    assert later.absent("i-00000000000000000").result == "refused"


@mock_aws
def test_nodes_of_karpenter_are_listed_beside_those_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """EKS marks instances of its groups by one tag, Karpenter its own by another."""
    aws_account = account()
    environment = other("eks")
    group = next(name for name, one in environment.node_groups.items() if one.role == "compute")
    settings = environment.orchestrator.model_copy(update={"karpenter": Karpenter(groups=(group,))})
    file = DEV.with_name("eks-p5en.yaml")
    environment = environment.model_copy(
        update={"orchestrator": settings, "name": "hpc", "region": aws_account.region}
    )
    managed = _instances({"eks:cluster-name": "hpc", "eks:nodegroup-name": "system"}, 1)
    launched = _instances({"eks:eks-cluster-name": "hpc", "karpenter.sh/nodepool": group}, 2)
    _instances({"eks:eks-cluster-name": "another", "karpenter.sh/nodepool": group}, 1)
    monkeypatch.setattr(aws, "Account", lambda **_: aws_account)
    monkeypatch.setattr(node_actions, "load_environment", lambda path: environment)
    result = CliRunner().invoke(app, ["nodes", "list", str(file), "--json"])
    assert result.exit_code == 0, result.output
    listed = {one["id"]: one["group"] for one in json.loads(result.stdout)["nodes"]}
    assert listed == {managed[0]: "system", **dict.fromkeys(launched, group)}


@mock_aws
def test_the_command_replaces_instances_and_says_what_to_run_first(
    monkeypatch: pytest.MonkeyPatch, slurm: Slurm, tmp_path: Path
) -> None:
    names = {"parallelcluster:cluster-name": "parallelcluster-p5", "parallelcluster:node-type": "Compute"}
    node = _instances({**names, "parallelcluster:queue-name": "gpu"}, 1)[0]
    head = _instances({**names, "parallelcluster:node-type": "HeadNode"}, 1)[0]
    file = copied(tmp_path, "parallelcluster-p5")
    made = account(load(file).environment.region)
    monkeypatch.setattr(aws, "Account", lambda **_: made)
    ec2 = made.client("ec2", "us-west-2")  # where the instances of this test are
    made._clients["ec2", made.region] = made._clients["ec2, once", made.region] = ec2
    monkeypatch.setenv(PART, "1")  # nobody asks for the account
    result = CliRunner().invoke(app, ["nodes", "replace", str(file), node, head, "--yes", "--json"])
    assert result.exit_code == 1, result.output
    assert {outcome["node"]: outcome["result"] for outcome in json.loads(result.stdout)["outcomes"]} == {
        head: "refused",
        node: "accepted",
    }
    assert "sinfo -N -h" in result.stderr and "only nodes within the minimum count" in result.stderr
    states = ec2.describe_instances(InstanceIds=[node])["Reservations"][0]["Instances"][0]["State"]
    assert states["Name"] == "terminated"
    again = CliRunner().invoke(app, ["nodes", "replace", str(file), node, "--yes"])
    assert again.exit_code == 0 and "is terminated" in again.output
    added = CliRunner().invoke(app, ["nodes", "add", str(file), "--group", "gpu", "--count", "1"])
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
    return [instance["InstanceId"] for instance in answered["Instances"]]


def test_pcs_nodes_are_found_by_their_groups() -> None:
    aws_account = account()
    answer(aws_account.client("pcs"), "ListComputeNodeGroups", lambda asked: _pcs_page(asked))
    asked_of_ec2: list[dict[str, Any]] = []
    tags = [{"Key": "aws:pcs:compute-node-group-id", "Value": "pcs_2"}]
    instance = {
        "InstanceId": node_id(16),
        "State": {"Name": "running"},
        "Tags": tags,
        "InstanceLifecycle": "capacity-block",
        "PrivateDnsName": "ip-10-1-0-16.us-west-2.compute.internal",
    }

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        asked_of_ec2.append(asked)
        return {"Reservations": [{"Instances": [instance]}]}

    answer(aws_account.client("ec2"), "DescribeInstances", describe)
    fleet = Fleet(aws_account, resolve(other("pcs")))
    assert [(one.id, one.group, one.reserved) for one in fleet.nodes] == [(node_id(16), "gpu", True)]
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
