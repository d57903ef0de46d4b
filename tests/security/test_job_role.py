"""The role of users' jobs on three kinds of Slurm clusters: who assumes it, what it may, who hears of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Match, Template
from node_rights import rights_of_nodes
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly

from ultracluster.config import Environment
from ultracluster.config.storage import JobBucket
from ultracluster.security.job_role import JobRole

BUCKETS = [
    {"bucket": "example-datasets"},
    {
        "bucket": "example-runs",
        "prefix": "team/a/",
        "write": True,
        "key": {"arn": "arn:aws:kms:{region}:111122223333:key/0f6d"},
    },
]
NAMES = ("dev", "pcs-p6-b200", "parallelcluster-p5")


class Made:
    """A shipped environment with buckets for jobs."""

    def __init__(self, name: str) -> None:
        data = environment_data(name)
        buckets = json.loads(json.dumps(BUCKETS).replace("{region}", data["region"]))
        self.config: Environment = loaded(changed(data, {"storage.job_buckets": buckets})).environment
        self.synthesised: Synthesised = assembly(self.config)
        found = self.synthesised.resources("AWS::IAM::Role")
        ((self.stack, self.id, self.role),) = [
            (*place.split("/"), role["Properties"]) for place, role in found.items() if "JobRole" in place
        ]
        self.template = self.synthesised.templates[self.stack]

    def statements(self) -> dict[str, dict[str, Any]]:
        """Of the role's policy, by id."""
        return {
            statement["Sid"]: statement
            for resource in self.template["Resources"].values()
            if resource["Type"] == "AWS::IAM::Policy" and {"Ref": self.id} in resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        }


@pytest.fixture(scope="module", params=NAMES)
def made(request: pytest.FixtureRequest) -> Made:
    return Made(request.param)


def test_it_reaches_what_is_named_and_no_more(made: Made) -> None:
    found = made.statements()
    arn = "arn:{Ref:AWS::Partition}:s3:::"
    told = {sid: (set(_many(one["Action"])), _text(one["Resource"])) for sid, one in found.items()}
    assert told == {
        "ListBucket1": ({"s3:ListBucket"}, f"{arn}example-datasets"),
        "FindBucket1": ({"s3:GetBucketLocation"}, f"{arn}example-datasets"),
        "ReadFiles1": ({"s3:GetObject"}, f"{arn}example-datasets/*"),
        "ListBucket2": ({"s3:ListBucket"}, f"{arn}example-runs"),
        "FindBucket2": ({"s3:GetBucketLocation"}, f"{arn}example-runs"),
        "ReadFiles2": ({"s3:GetObject"}, f"{arn}example-runs/team/a/*"),
        "WriteFiles2": (
            {"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:ListMultipartUploadParts", "s3:PutObject"},
            f"{arn}example-runs/team/a/*",
        ),
        "UseKey2": (
            {"kms:Decrypt", "kms:GenerateDataKey"},
            f"arn:aws:kms:{made.config.region}:111122223333:key/0f6d",
        ),
    }
    assert found["ListBucket2"]["Condition"] == {"StringLike": {"s3:prefix": ["team/a", "team/a/*"]}}
    assert "kms:ViaService" in str(found["UseKey2"]["Condition"])


def test_only_nodes_with_users_assume_it_and_in_the_name_of_one(made: Made) -> None:
    statements = made.role["AssumeRolePolicyDocument"]["Statement"]
    assert {action for one in statements for action in _many(one["Action"])} == {
        "sts:AssumeRole",
        "sts:SetSourceIdentity",
    }
    for one in statements:
        assert "root" in str(one["Principal"]["AWS"])
        assert one["Condition"]["StringLike"] == {"sts:SourceIdentity": "?*"}
    trusted = _text(statements[0]["Condition"]["ArnLike"]["aws:PrincipalArn"])
    rights = rights_of_nodes(made.synthesised, made.config)
    holders = {role for role, found in rights.items() if any(one["Sid"] == "AssumeJobRole" for one in found)}
    assert holders == {"compute", "login"} and holders <= rights.keys()
    for found in rights.values():
        for one in (one for one in found if one["Sid"] == "AssumeJobRole"):
            assert one["Resource"] == {"Fn::GetAtt": [made.id, "Arn"]}
    if made.config.orchestrator.kind == "parallelcluster":
        assert trusted.endswith(f":role/parallelcluster/{made.config.cluster_name}/*")
        never = _text(statements[0]["Condition"]["ArnNotLike"]["aws:PrincipalArn"])
        assert never.endswith(f"/{made.config.cluster_name}/*RoleHeadNode-*")
    else:
        assert "*" not in trusted and "ControllerRole" not in trusted and "LoginRole" in trusted


def test_nodes_are_told_of_it_at_deploy(made: Made) -> None:
    role = {"Fn::GetAtt": [made.id, "Arn"]}
    if made.config.orchestrator.kind == "pcs":
        for resource in made.synthesised.resources("AWS::PCS::ComputeNodeGroup").values():
            stages = resource["Properties"]["NodeLifecycleActions"]["Stages"]["NodeBootstrapped"]
            arguments = stages[0]["Arguments"]
            assert arguments[arguments.index("--job-role") + 1] == role
    else:
        uploads = made.synthesised.resources("Custom::CDKBucketDeployment").values()
        assert any(
            role in one.values() for up in uploads for one in up["Properties"].get("SourceMarkers", [])
        )


def test_nag_finds_nothing_in_it(made: Made) -> None:
    assert not [one for one in made.synthesised.findings if "JobRole" in one[1]]


def test_a_role_of_another_stack_may_be_added() -> None:
    stack = Stack(App(), "Stack")
    jobs = JobRole(
        stack,
        "JobRole",
        cluster_name="mine",
        buckets=[JobBucket(bucket="example-data")],
        nodes=["arn:aws:iam::111122223333:role/nodes"],
    )
    jobs.grant_assume(
        iam.Role(stack, "Visual", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))  # type: ignore[arg-type]
    )
    template = Template.from_stack(stack)
    visual = {"Fn::GetAtt": [Match.string_like_regexp("^Visual"), "Arn"]}
    condition = Match.object_like({"ArnLike": {"aws:PrincipalArn": [visual]}})
    statement = Match.object_like({"Condition": condition})
    template.has_resource_properties(
        "AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": Match.array_with([statement])}}
    )
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {"PolicyDocument": {"Statement": [Match.object_like({"Sid": "AssumeJobRole"})]}},
    )


@pytest.mark.parametrize("given", [{"buckets": []}, {"nodes": []}])
def test_for_nothing_or_nobody_none_is_made(given: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "buckets": [JobBucket(bucket="example-data")],
        "nodes": ["arn:aws:iam::1:role/a"],
    }
    with pytest.raises(ValueError, match="requires a bucket and a role of nodes"):
        JobRole(Stack(App(), "Stack"), "JobRole", cluster_name="mine", **(asked | given))


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    """A value of a template in one line: what is joined is joined, references stand in braces."""
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join(_text(part) for part in value["Fn::Join"][1])
    if isinstance(value, dict) and "Ref" in value:
        return f"{{Ref:{value['Ref']}}}"
    return value if isinstance(value, str) else json.dumps(value)
