"""What the account adds to moto's CloudFormation: exports, change sets, types, order, what is retained."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from emulated_account.running import Account, account
from needs import need

pytestmark = pytest.mark.slow


def log_group(name: Any, **more: Any) -> dict[str, Any]:
    return {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": name}} | more


def test_an_export_serves_another_stack_and_guards_its_own(aws: Account) -> None:
    exported = {"Name": {"Value": {"Ref": "Group"}, "Export": {"Name": "shared"}}}
    assert not aws.create("giver", {"Group": log_group("given")}, Outputs=exported)
    imported = {"Group": log_group({"Fn::Join": ["-", [{"Fn::ImportValue": "shared"}, "user"]]})}
    assert not aws.create("user", imported)
    names = [one["logGroupName"] for one in aws.client("logs").describe_log_groups()["logGroups"]]
    assert "given-user" in names

    assert "Export shared cannot be deleted as it is in use by user" in aws.delete("giver")
    assert "Export with name shared is already exported" in aws.create(
        "second", {"Group": log_group("second")}, Outputs=exported
    )
    assert not aws.delete("user")
    assert not aws.delete("giver")


def test_an_export_that_is_missing_fails_the_stack(aws: Account) -> None:
    said = aws.create("lonely", {"Group": log_group({"Fn::ImportValue": "nobody"})})
    assert "No export named nobody found" in said


def test_change_sets_of_one_name_belong_to_their_stacks(aws: Account) -> None:
    client = aws.client("cloudformation")
    for name in ("left", "right"):
        body = json.dumps({"Resources": {"G": log_group(name)}})
        client.create_change_set(
            StackName=name, ChangeSetName="same", TemplateBody=body, ChangeSetType="CREATE"
        )
    for name in ("left", "right"):
        client.execute_change_set(StackName=name, ChangeSetName="same")
        assert not aws.settled(name)
        [resource] = client.describe_stack_resources(StackName=name)["StackResources"]
        assert resource["PhysicalResourceId"] == name


def test_a_type_that_does_not_exist_is_refused(aws: Account) -> None:
    said = aws.create("unknown", {"A": {"Type": "AWS::EC2::Vcp"}, "B": {"Type": "AWS::S4::Bucket"}})
    assert "Unrecognized resource types: [AWS::EC2::Vcp, AWS::S4::Bucket]" in said


def test_a_type_without_an_adapter_fails_the_run() -> None:
    need("unshare", "setpriv", root=True)
    with account() as other:
        said = other.create("stack", {"Queue": {"Type": "AWS::MediaLive::Channel"}})
        assert "no adapter for AWS::MediaLive::Channel" in said
        other.process.terminate()
        assert other.process.wait(60) == 1
        assert "failed, no adapter: AWS::MediaLive::Channel" in other.lines()


def test_what_depends_is_created_later_and_a_failure_removes_all(aws: Account) -> None:
    bad = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000", "CidrBlock": "10.0.0.0/24"}}
    said = aws.create("halfway", {"Bad": bad | {"DependsOn": "First"}, "First": log_group("first")})
    assert "vpc-00000000" in said
    client = aws.client("cloudformation")
    assert client.describe_stacks(StackName="halfway")["Stacks"][0]["StackStatus"] == "ROLLBACK_COMPLETE"
    events = client.describe_stack_events(StackName="halfway")["StackEvents"]
    order = [(e["LogicalResourceId"], e["ResourceStatus"]) for e in reversed(events)]
    assert order.index(("First", "CREATE_COMPLETE")) < order.index(("Bad", "CREATE_FAILED"))
    assert ("First", "DELETE_COMPLETE") in order
    with pytest.raises(ClientError, match="ROLLBACK_COMPLETE"):
        aws.update("halfway", {"First": log_group("first")})


def test_a_retained_resource_stays_unless_its_creation_failed(aws: Account) -> None:
    kept = log_group("kept", DeletionPolicy="Retain")
    spared = log_group("spared", DeletionPolicy="RetainExceptOnCreate")
    assert not aws.create("keeper", {"Kept": kept, "Spared": spared})
    assert not aws.delete("keeper")
    bad = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000", "CidrBlock": "10.0.0.0/24"}}
    late = log_group("late", DeletionPolicy="RetainExceptOnCreate")
    assert aws.create("failed", {"Late": late, "Bad": bad | {"DependsOn": "Late"}})
    names = {one["logGroupName"] for one in aws.client("logs").describe_log_groups()["logGroups"]}
    assert {"kept", "spared"} <= names and "late" not in names


def test_a_property_of_creation_replaces_and_another_changes_in_place(aws: Account) -> None:
    key = {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {}, "EnableKeyRotation": False}}
    assert not aws.create("changing", {"Key": key})
    [before] = aws.client("cloudformation").describe_stack_resources(StackName="changing")["StackResources"]
    rotated = {"Key": key | {"Properties": {"KeyPolicy": {}, "EnableKeyRotation": True}}}
    assert not aws.update("changing", rotated)
    [after] = aws.client("cloudformation").describe_stack_resources(StackName="changing")["StackResources"]
    assert after["PhysicalResourceId"] == before["PhysicalResourceId"]
    status = aws.client("kms").get_key_rotation_status(KeyId=after["PhysicalResourceId"])
    assert status["KeyRotationEnabled"]


def test_a_second_change_set_without_a_change_has_none(aws: Account) -> None:
    assert not aws.create("same", {"Group": log_group("same")})
    client = aws.client("cloudformation")
    body = client.get_template(StackName="same")["TemplateBody"]
    text = body if isinstance(body, str) else json.dumps(body)
    client.create_change_set(
        StackName="same", ChangeSetName="again", TemplateBody=text, ChangeSetType="UPDATE"
    )
    assert client.describe_change_set(StackName="same", ChangeSetName="again")["Status"] == "FAILED"


def test_the_first_line_counts_what_is_ours(aws: Account) -> None:
    first = next(line for line in aws.lines() if line.startswith("account "))
    assert "moto, and ours are" in first and "AWS::SageMaker::Cluster" in first
