"""The environment `dev` in an emulated account: the CDK's CLI creates, repeats, deletes and creates again."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from emulated_account.running import ACCOUNT, Account
from project import ROOT

pytestmark = pytest.mark.slow
STACKS = {"dev-foundation", "dev-network", "dev-buckets", "dev-storage", "dev-egress", "dev-cluster"}


def existing(aws: Account) -> dict[str, dict[str, str]]:
    """Identifiers of all resources, by stack and logical id."""
    client = aws.client("cloudformation")
    names = [one["StackName"] for one in client.describe_stacks()["Stacks"] if one["StackName"] in STACKS]
    return {
        name: {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for one in client.describe_stack_resources(StackName=name)["StackResources"]
        }
        for name in names
    }


def test_dev_is_created_repeated_deleted_and_created_again(aws: Account, tmp_path: Path) -> None:
    aws.cdk("bootstrap", f"aws://{ACCOUNT}/{aws.region}")
    app = tmp_path / "dev.out"
    aws.cdk("synth", "-c", "env=dev", "-q", "-o", str(app), app=f"{sys.executable} {ROOT / 'app.py'}")

    aws.deploy(app)
    created = existing(aws)
    assert created.keys() == STACKS
    [cluster] = aws.client("sagemaker").list_clusters()["ClusterSummaries"]
    assert cluster["ClusterStatus"] == "InService"

    again = aws.deploy(app)
    assert again.count("(no changes)") == len(STACKS)
    assert existing(aws) == created

    said = aws.cdk("destroy", "--all", "--force", app=app)
    assert existing(aws) == {}
    kept = re.findall(r"DELETE_SKIPPED +\| (\S+) +\| (\S+)", said)
    assert sorted(kept) == [
        ("AWS::KMS::Key", "Key/Resource"),
        ("AWS::S3::Bucket", "Log/Resource"),
        ("AWS::S3::Bucket", "Scripts/Resource"),
    ]
    assert left(aws) == {"buckets": 2, "keys": 1}
    assert not [line for line in aws.lines() if line.startswith("not judged: the deletion")]

    aws.deploy(app)
    assert existing(aws).keys() == STACKS


def left(aws: Account) -> dict[str, int]:
    """How many things the account has that are not of its bootstrap or of its default network."""
    ec2, iam = aws.client("ec2"), aws.client("iam")
    found = {
        "buckets": [b for b in aws.client("s3").list_buckets()["Buckets"] if "assets" not in b["Name"]],
        "keys": aws.client("kms").list_keys()["Keys"],
        "networks": [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]],
        "addresses": ec2.describe_addresses()["Addresses"],
        "gateways": ec2.describe_internet_gateways()["InternetGateways"],
        "flow logs": ec2.describe_flow_logs()["FlowLogs"],
        "roles": [role for role in iam.list_roles()["Roles"] if not role["RoleName"].startswith("cdk-")],
        "functions": aws.client("lambda").list_functions()["Functions"],
        "layers": aws.client("lambda").list_layers()["Layers"],
        "logs": aws.client("logs").describe_log_groups()["logGroups"],
        "file systems": aws.client("fsx").describe_file_systems()["FileSystems"],
        "clusters": aws.client("sagemaker").list_clusters()["ClusterSummaries"],
        "documents": aws.client("ssm").list_documents(Filters=[{"Key": "Owner", "Values": ["Self"]}])[
            "DocumentIdentifiers"
        ],
    }
    return {kind: len(things) for kind, things in found.items() if things}
