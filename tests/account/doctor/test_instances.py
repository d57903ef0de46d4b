"""Clusters whose nodes are instances of the account: nodes, the reasons of their service, logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
from account_fixtures import keys
from hyperpod_service import BORN, account, answer, refusal
from kubernetes_service import kubernetes_node, serve_cluster, serving
from moto import mock_aws
from nodes_support import other

from ultracluster.account.doctor import examine
from ultracluster.account.doctor.logs import error_lines
from ultracluster.model import resolve

__all__ = ["keys"]

DEV = Path(__file__).parents[3] / "environments" / "dev.yaml"
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


@mock_aws
def test_moto_eks_and_its_stacks(tmp_path: Path) -> None:
    aws_account = account()
    eks = boto3.client("eks", "us-west-2")
    eks.create_cluster(name="hpc", roleArn="arn:aws:iam::111122223333:role/x", resourcesVpcConfig={})
    cloudformation = boto3.client("cloudformation", "us-west-2")
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    cloudformation.create_stack(StackName="hpc-cluster", TemplateBody=json.dumps(template))
    with serving(tmp_path) as api:
        serve_cluster(aws_account, api)
        api.objects["GET", "/api/v1/nodes"] = 200, {"items": [kubernetes_node("ip-10-0-0-5")]}
        api.objects["GET", "/api/v1/events"] = 200, {"items": []}
        examination = examine(aws_account, resolve(other("eks")))
    assert {(source.name, source.state) for source in examination.sources} >= {
        ("stack hpc-cluster", "read"),
        ("stack hpc-network", "nothing there"),
        ("nodes", "read"),
        ("EKS", "read"),
        ("Kubernetes nodes", "read"),
        ("Kubernetes events", "read"),
    }
    assert examination.healthy


@mock_aws
def test_moto_parallelcluster_logs() -> None:
    aws_account = account()
    logs = boto3.client("logs", "us-west-2")
    logs.create_log_group(logGroupName="/aws/parallelcluster/hpc-202611200800")
    place = {
        "logGroupName": "/aws/parallelcluster/hpc-202611200800",
        "logStreamName": "ip-10-0-0-5.slurm_resume",
    }
    logs.create_log_stream(**place)
    # of the cluster `hpc-eu`, and newer
    neighbour = {"logGroupName": "/aws/parallelcluster/hpc-eu-202611220800", "logStreamName": "ip-10-1-0-5"}
    logs.create_log_group(logGroupName=neighbour["logGroupName"])
    logs.create_log_stream(**neighbour)
    stamp = int(datetime.now(UTC).timestamp() * 1000)
    logs.put_log_events(**neighbour, logEvents=[{"timestamp": stamp, "message": "ERROR of a neighbour"}])
    line = "ERROR - Failed RunInstances request: InsufficientInstanceCapacity"
    last = "DEGRADED proof: proof: jobs may miss what they need of it (7 of 8 GPUs answer)"
    said = [{"timestamp": stamp, "message": one} for one in (line, last)]
    logs.put_log_events(**place, logEvents=said)
    examination = examine(aws_account, resolve(other("parallelcluster")))
    assert ("stack hpc", "nothing there") in {(source.name, source.state) for source in examination.sources}
    assert [diagnose.failure.id for diagnose in examination.diagnoses[:2]] == [
        "insufficient-capacity",
        "proof-less",
    ]
    assert {fact.text: fact.level for fact in examination.facts if fact.source == "node logs"} == {
        line: "error",
        last: "warning",
    }
    assert "neighbour" not in str(examination.facts)


def test_of_lines_with_small_letters_the_known_ones_are_read() -> None:
    aws_account = account()
    known = "mount.lustre: mount fs-1@tcp:/abcdefgh at /fsx failed: File exists"

    def lines(asked: dict[str, Any]) -> dict[str, Any]:
        shown = ["ERROR - odd"] if "?ERROR" in asked["filterPattern"] else [known, "0 errors, nothing failed"]
        return {"events": [{"logStreamName": "n", "message": one, "timestamp": 1} for one in shown]}

    answer(aws_account.client("logs"), "FilterLogEvents", lines)
    assert [fact.text for fact in error_lines(aws_account, "/aws/x", NOW)] == ["ERROR - odd", known]


def test_pcs_gives_its_own_reasons() -> None:
    aws_account = account()
    pcs = aws_account.client("pcs")
    arn = "arn:aws:pcs:us-west-2:111122223333:cluster/x"
    times = {"createdAt": BORN, "modifiedAt": BORN}
    one = {"name": "gpu", "id": "pcs_1", "arn": arn, "clusterId": "pcs_x", "status": "CREATE_FAILED", **times}
    cluster = {
        "name": "hpc", "id": "pcs_x", "arn": arn, "status": "ACTIVE", **times, "size": "SMALL",
        "scheduler": {"type": "SLURM", "version": "25.11"}, "networking": {},
    }  # fmt: skip
    answer(pcs, "GetCluster", lambda asked: {"cluster": cluster})
    answer(pcs, "ListComputeNodeGroups", lambda asked: {"computeNodeGroups": [one]})
    described = {
        **one, "subnetIds": ["subnet-1"], "customLaunchTemplate": {"id": "lt-1", "version": "1"},
        "iamInstanceProfileArn": "arn:aws:iam::111122223333:instance-profile/AWSPCS-x",
        "scalingConfiguration": {"minInstanceCount": 0, "maxInstanceCount": 1}, "instanceConfigs": [],
        "errorInfo": [{"code": "CapacityError", "message": "InsufficientInstanceCapacity"}],
    }  # fmt: skip
    answer(pcs, "GetComputeNodeGroup", lambda asked: {"computeNodeGroup": described})
    answer(aws_account.client("ec2"), "DescribeInstances", lambda asked: {"Reservations": []})

    def missing(asked: dict[str, Any]) -> dict[str, Any]:
        raise refusal("ValidationError", "Stack does not exist")

    answer(aws_account.client("cloudformation"), "DescribeStackEvents", missing)
    examination = examine(aws_account, resolve(other("pcs")))
    assert [(fact.where, fact.text) for fact in examination.facts] == [
        ("group gpu", "CapacityError: InsufficientInstanceCapacity")
    ]
    assert examination.diagnoses[0].failure.id == "insufficient-capacity"
