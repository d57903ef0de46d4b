"""Templates resolved as CloudFormation would, and what the evaluator's process makes of a question."""

from __future__ import annotations

from typing import Any

import pytest
from iam_proof.evaluator import Evaluator, Request
from iam_proof.resolved import Resolved

TEMPLATES: dict[str, Any] = {
    "prod-storage": {
        "Parameters": {"Version": {"Type": "String", "Default": "7"}},
        "Resources": {
            "Key": {"Type": "AWS::KMS::Key"},
            "Data": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "data"}},
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Path": "/aws-pcs/", "RoleName": "nodes"}},
            "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "flow"}},
            "Net": {"Type": "AWS::EC2::Subnet"},
            "Other": {"Type": "AWS::New::Thing"},
        },
        "Outputs": {
            "Key": {"Value": {"Fn::GetAtt": ["Key", "Arn"]}, "Export": {"Name": "prod-storage-KeyArn"}}
        },
    },
    "prod-cluster": {"Resources": {}},
}
ACCOUNT = "111122223333"


@pytest.fixture
def resolved() -> Resolved:
    return Resolved(TEMPLATES, "us-east-2")


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ({"Ref": "AWS::Region"}, "us-east-2"),
        ({"Ref": "Version"}, "7"),
        ({"Ref": "Data"}, "data"),
        ({"Fn::GetAtt": ["Data", "Arn"]}, "arn:aws:s3:::data"),
        ({"Fn::GetAtt": "Role.Arn"}, f"arn:aws:iam::{ACCOUNT}:role/aws-pcs/nodes"),
        ({"Fn::GetAtt": ["Logs", "Arn"]}, f"arn:aws:logs:us-east-2:{ACCOUNT}:log-group:flow:*"),
        (
            {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::", {"Ref": "Data"}]]},
            "arn:aws:s3:::data",
        ),
        ({"Fn::Sub": "${AWS::AccountId}/${Data}/${!kept}"}, f"{ACCOUNT}/data/${{kept}}"),
        (
            {"Fn::Sub": ["${a}-${Data.Arn}", {"a": {"Ref": "AWS::StackName"}}]},
            "prod-storage-arn:aws:s3:::data",
        ),
        ({"Fn::Select": [1, {"Fn::Split": ["-", "a-b-c"]}]}, "b"),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "Data"}]}, {"b": ["data"]}),
    ],
)
def test_functions_are_resolved(resolved: Resolved, value: Any, made: Any) -> None:
    assert resolved.value("prod-storage", value) == made


def test_what_another_stack_exports_is_the_same_thing(resolved: Resolved) -> None:
    key = resolved.value("prod-cluster", {"Fn::ImportValue": "prod-storage-KeyArn"})

    assert key == resolved.attribute("prod-storage", "Key", "Arn")
    assert key.endswith(resolved.ref("prod-storage", "Key"))
    assert resolved.attribute("prod-storage", "Net", "SubnetId") == resolved.ref("prod-storage", "Net")


def test_what_is_not_known_says_so(resolved: Resolved) -> None:
    assert resolved.attribute("prod-storage", "Other", "Arn").startswith("unresolved:AWS::New::Thing.Arn")
    with pytest.raises(LookupError, match=r"Fn::Cidr is not resolved"):
        resolved.value("prod-storage", {"Fn::Cidr": ["10.0.0.0/16", 1, 8]})


# The evaluator's process

SOMEBODY = f"arn:aws:sts::{ACCOUNT}:assumed-role/one/session"


def ask(evaluator: Evaluator, policy: dict[str, Any] | None = None, **more: Any) -> Any:
    asked: dict[str, Any] = {
        "principal": SOMEBODY,
        "action": "s3:GetObject",
        "resource": "arn:aws:s3:::data/x",
        "account": ACCOUNT,
        "identity": ["one"] if policy else [],
        **more,
    }
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*", **(policy or {})}
    (answer,) = evaluator.ask(
        {"one": {"Version": "2012-10-17", "Statement": [statement]}}, [Request(**asked)]
    )
    return answer


def test_it_allows_and_denies(evaluator: Evaluator) -> None:
    assert ask(evaluator, {"Action": "s3:GetObject"}).result == "Allowed"
    assert ask(evaluator).result == "ImplicitlyDenied"
    assert ask(evaluator, {"Effect": "Deny"}).result == "ExplicitlyDenied"


def test_it_refuses_questions_without_sense(evaluator: Evaluator) -> None:
    assert "invalid.action" in ask(evaluator, action="s3:MakeCoffee").error
    assert "no.resource.types" in ask(evaluator, resource="arn:aws:ec2:us-east-2:1:instance/i-1").error
    assert "no policy is called two" in ask(evaluator, identity=["two"]).error
    assert ask(evaluator, {"Sid": 7}).result == "Error"
    assert ask(evaluator, context={"kms:ViaService": "s3.us-east-2.amazonaws.com"}).ignored == (
        "kms:ViaService",
    )


@pytest.mark.parametrize(("bucket", "allowed"), [("arn:aws:s3:::data", True), ("arn:aws:s3:::other", False)])
def test_it_knows_encryption_contexts(evaluator: Evaluator, bucket: str, allowed: bool) -> None:
    """By another name, on both sides: see evaluate.mjs."""
    key = f"arn:aws:kms:us-east-2:{ACCOUNT}:key/11111111-2222-4333-8444-555555555555"
    policy = {
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/one"},
        "Condition": {"StringEquals": {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::data"}},
    }
    context = {"kms:EncryptionContext:aws:s3:arn": bucket}

    answer = ask(
        evaluator,
        policy,
        action="kms:Decrypt",
        resource=key,
        context=context,
        identity=[],
        resourcePolicy="one",
    )

    assert answer.allowed is allowed and not answer.ignored


def test_it_knows_callers_of_endpoints_by_conditions_only(evaluator: Evaluator) -> None:
    """A limit of the evaluator: another principal than `*` is an error, not a verdict."""
    root = {"Principal": {"AWS": "arn:aws:iam::999999999999:root"}}
    elsewhere = {"Principal": "*", "Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}}}
    open_to_all = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}
    evaluator.ask({"open": {"Version": "2012-10-17", "Statement": [open_to_all]}}, [])
    through: dict[str, Any] = {"resourcePolicy": "open", "endpoint": "one", "identity": []}

    assert "Principal must be" in ask(evaluator, root, **through).error
    assert ask(evaluator, elsewhere, **through).by == ("vpce",)
    assert ask(evaluator, elsewhere, context={"aws:SourceVpc": "vpc-1"}, **through).allowed
