"""The permissions document: every call of the sources is in it, and the policies hold."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from functools import cache
from typing import Any

import boto3
import pytest
import typer
from project import ROOT
from typer.testing import CliRunner

from ultracluster.cli import permissions as command


@cache
def tool() -> Any:
    spec = importlib.util.spec_from_file_location(
        "permissions_from_calls", ROOT / "tools" / "permissions_from_calls.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["permissions_from_calls"] = module
    spec.loader.exec_module(module)
    return module


DOCUMENT = json.loads((ROOT / "constructs/ultracluster/account/permissions.json").read_text())


def test_the_document_is_what_the_sources_say() -> None:
    made = tool().document()
    assert made == DOCUMENT, "run tools/permissions_from_calls.py"
    assert tool().page(made) == (ROOT / "docs" / "permissions.md").read_text()


def test_no_client_of_the_sources_is_overlooked() -> None:
    """A second look, by plain text: every service that a source names has calls from that very file."""
    package = ROOT / "constructs" / "ultracluster"
    seen = {(call["service"], module) for call in DOCUMENT["calls"] for module in call["modules"]}
    named: set[tuple[str, str]] = set()
    for file in package.rglob("*.py"):
        text = re.sub(r'""".*?"""', "", file.read_text(), flags=re.DOTALL)
        for service in re.findall(r"\.client\(\s*\"([a-z0-9-]+)\"", text):
            named.add((service, str(file.relative_to(package))))
    assert len(named) > 20 and named <= seen
    assert not [file for file in package.rglob("*.py") if re.search(r"\.resource\(\s*\"", file.read_text())]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('ec2 = account.client("ec2")\nec2.describe_vpcs()', {("ec2", "DescribeVpcs")}),
        ('account.client("eks").list_clusters()', {("eks", "ListClusters")}),
        (
            'account.client("eks").list_clusters()\naccount.client("sagemaker").describe_cluster()',
            {("eks", "ListClusters"), ("sagemaker", "DescribeCluster")},
        ),
        (
            'self._account.client("rds").get_paginator("describe_db_instances").paginate()',
            {("rds", "DescribeDBInstances")},
        ),
        ('account.client("ec2").get_waiter("instance_running").wait()', {("ec2", "DescribeInstances")}),
        (
            'def read(name):\n    account.client("ec2").get_paginator(name)\nread("describe_vpcs", "other")',
            {("ec2", "DescribeVpcs")},
        ),
        (
            'def read(client):\n    client.get_template()\nread(account.client("cloudformation"))',
            {("cloudformation", "GetTemplate")},
        ),
        (
            'ec2, iam = account.client("ec2"), account.client("iam")\niam.get_role()',
            {("iam", "GetRole")},
        ),
        (
            's3 = session.client("s3")\ns3.upload_file()',
            {
                ("s3", name)
                for name in (
                    "PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload",
                    "AbortMultipartUpload",
                )
            },
        ),
        ('text = "ec2"\nrows.list_clusters()', set()),
    ],
)  # fmt: skip
def test_calls_are_found_in_every_form(source: str, wanted: set[tuple[str, str]]) -> None:
    assert {(call.service, call.operation) for call in tool().calls_of(source, "a.py")} == wanted


@pytest.mark.parametrize(
    "source",
    ['account.client("ec2").describe_everything()', 'account.client("ec2").get_paginator("describe_all")'],
)
def test_a_call_that_is_no_operation_stops_the_tool(source: str) -> None:
    with pytest.raises(tool().UnknownCallError, match="ec2 has no operation describe_"):
        tool().calls_of(source, "a.py")


@pytest.mark.parametrize(
    ("service", "operation", "actions", "group"),
    [
        (
            "service-quotas",
            "RequestServiceQuotaIncrease",
            ["servicequotas:RequestServiceQuotaIncrease"],
            "act",
        ),
        ("s3", "HeadBucket", ["s3:ListBucket"], "read"),
        ("sts", "GetCallerIdentity", [], "read"),
        ("ec2", "TerminateInstances", ["ec2:TerminateInstances"], "act"),
        ("sagemaker", "SearchTrainingPlanOfferings", ["sagemaker:SearchTrainingPlanOfferings"], "read"),
    ],
)
def test_actions_are_those_of_iam(service: str, operation: str, actions: list[str], group: str) -> None:
    row = next(
        row
        for row in DOCUMENT["calls"]
        if (row["group"], row["service"], row["operation"]) == (group, service, operation)
    )
    assert row["actions"] == actions


def actions(group: str) -> set[str]:
    return {one for statement in DOCUMENT["policies"][group]["Statement"] for one in statement["Action"]}


def test_reading_changes_nothing_and_every_call_is_allowed() -> None:
    verbs = ("Describe", "List", "Get", "Search", "Simulate", "Filter", "Query", "Detect", "BatchDescribe")
    assert all(action.partition(":")[2].startswith(verbs) for action in actions("read"))
    for row in DOCUMENT["calls"]:
        # what only an environment can limit is in its own policy (test_environment_policy.py)
        assert set(row["actions"]) <= actions(row["group"]) | set(DOCUMENT["named"][row["group"]])
    everything = set.union(*map(actions, DOCUMENT["policies"]))
    assert not [action for action in everything if "*" in action]
    bought = ("Purchase", "CreateTrainingPlan", "Create")
    free = {
        "sagemaker:CreateClusterExtension",  # on nodes that are there
        "grafana:CreateWorkspaceServiceAccount",  # one for each workspace, billed as a user
        "grafana:CreateWorkspaceServiceAccountToken",  # of that one
    }
    assert not [one for one in everything - actions("buy") - free if one.partition(":")[2].startswith(bought)]
    assert actions("buy") == {
        "ec2:PurchaseCapacityBlock", "sagemaker:CreateTrainingPlan", "sagemaker:CreateReservedCapacity",
    }  # fmt: skip


def test_acting_is_limited_to_what_it_acts_on() -> None:
    for group in ("act", "deploy", "mirror"):
        assert all(statement["Resource"] != ["*"] for statement in DOCUMENT["policies"][group]["Statement"])


def test_policies_are_within_the_limits_of_iam() -> None:
    """A managed policy has at most 6144 characters, white space not counted (IAM User Guide, quotas)."""
    for group, made in DOCUMENT["policies"].items():
        text = re.sub(r"\s", "", json.dumps(made))
        assert len(text) <= 6144, group
        sids = [statement["Sid"] for statement in made["Statement"]]
        assert len(sids) == len(set(sids)) and all(re.fullmatch("[A-Za-z0-9]+", sid) for sid in sids)


def test_moto_takes_the_policies(aws_account: None) -> None:
    iam = boto3.client("iam", "us-east-1")
    for group, policy in DOCUMENT["policies"].items():  # its validator is that of IAM's grammar
        iam.create_policy(PolicyName=group, PolicyDocument=json.dumps(policy))


def run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command.permissions)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_policies() -> None:
    everything = json.loads(run("--policy").stdout)
    assert everything["Version"] == "2012-10-17"
    assert len(everything["Statement"]) == sum(
        len(one["Statement"]) for group, one in DOCUMENT["policies"].items() if group not in ("bill", "buy")
    )
    assert "Purchase" not in json.dumps(everything) and "ce:" not in json.dumps(everything)
    assert json.loads(run("read", "--policy").stdout) == DOCUMENT["policies"]["read"]
    text = run("act")
    assert (
        text.exit_code == 0
        and "ec2:TerminateInstances" in text.stdout
        and "ec2:DescribeVpcs" not in text.stdout
    )
    wrong = run("write")
    assert wrong.exit_code == 2 and "groups are act, bill, buy, deploy, mirror, people, read" in wrong.output
