"""What may be done, by whom: no wildcard action, and every wildcard resource has its reason here."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from project import ENVIRONMENTS
from templates import Synthesised, many, statements

Get = Callable[[str], Synthesised]

ANY_RESOURCE = {
    "FindLogs": "logs:DescribeLogGroups knows no resource",
    "WriteMetrics": "cloudwatch:PutMetricData knows no resource; limited by namespace",
    "SessionManager": "ssmmessages knows no resource",
    "DescribeNetwork": "ec2:Describe* know no resource",
    "RegistryTokens": "ecr:GetAuthorizationToken knows no resource",
    "RunInVpc": "ec2:DescribeNetworkInterfaces and the like know no resource",
    "DescribeVolumes": "ec2:Describe* know no resource",
    "RegisterNode": "pcs:RegisterComputeNodeGroupInstance knows no resource",
    "DescribeFileSystems": "fsx:DescribeFileSystems is asked without an id",
}
"""Statement id of every identity policy with `Resource: "*"`, and why."""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_action_is_a_wildcard(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, statement in statements(template):
            for action in many(statement.get("Action", [])):
                service, _, verb = action.partition(":")
                key_policy = template["Resources"][logical_id]["Type"] == "AWS::KMS::Key"

                assert action != "*", f"{stack}/{logical_id}"
                # a key that its own account cannot administer is lost: KMS's default statement
                assert verb != "*" or (service == "kms" and key_policy) or statement["Effect"] == "Deny"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_wildcard_resource_has_its_reason(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, statement in statements(template):
            if template["Resources"][logical_id]["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::Role"):
                continue
            if "*" in many(statement.get("Resource", [])):
                assert statement.get("Sid") in ANY_RESOURCE, f"{stack}/{logical_id}: {statement}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_managed_policy_and_no_user(name: str, synthesised: Get) -> None:
    made = synthesised(name)

    assert not made.resources("AWS::IAM::User")
    for role in made.resources("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_who_may_assume_which_role(name: str, synthesised: Get) -> None:
    services = {
        path.split("/")[1].rstrip("0123456789ABCDEF"): role["Properties"]["AssumeRolePolicyDocument"][
            "Statement"
        ][0]["Principal"]["Service"]
        for path, role in synthesised(name).resources("AWS::IAM::Role").items()
    }

    assert set(services.values()) <= {
        "ec2.amazonaws.com",
        "eks.amazonaws.com",
        "pods.eks.amazonaws.com",
        "sagemaker.amazonaws.com",
        "lambda.amazonaws.com",
        "vpc-flow-logs.amazonaws.com",
    }


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_principal_that_may_be_anyone_is_always_bound_by_a_condition(name: str, synthesised: Get) -> None:
    for stack, template in synthesised(name).templates.items():
        for logical_id, statement in statements(template):
            if statement["Effect"] == "Allow" and statement.get("Principal") in ("*", {"AWS": "*"}):
                conditions = statement["Condition"]
                assert "aws:PrincipalArn" in conditions["ArnLike"], f"{stack}/{logical_id}"
                assert "kms:CallerAccount" in conditions["StringEquals"], f"{stack}/{logical_id}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_that_stores_is_encrypted_with_a_rotating_key(name: str, synthesised: Get) -> None:
    made = synthesised(name)

    assert all(k["Properties"]["EnableKeyRotation"] for k in made.resources("AWS::KMS::Key").values())
    assert all("KmsKeyId" in f["Properties"] for f in made.resources("AWS::FSx::FileSystem").values())
    assert all("KmsKeyId" in g["Properties"] for g in made.resources("AWS::Logs::LogGroup").values())
    assert all(d["Properties"]["StorageEncrypted"] for d in made.resources("AWS::RDS::DBInstance").values())
    assert all("KmsKeyId" in s["Properties"] for s in made.resources("AWS::SecretsManager::Secret").values())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_holds_data_is_retained_where_it_is_protected(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    kept = ["AWS::S3::Bucket", "AWS::KMS::Key"] + (["AWS::FSx::FileSystem"] if name == "prod" else [])

    for kind in kept:
        assert made.resources(kind)
        for path, resource in made.resources(kind).items():
            assert resource["DeletionPolicy"] == "Retain", path
            assert resource["UpdateReplacePolicy"] == "Retain", path
    for database in made.resources("AWS::RDS::DBInstance").values():
        assert database["DeletionPolicy"] == "Snapshot"
        assert database["Properties"]["DeletionProtection"] is (name == "prod")


def test_no_secret_value_is_in_a_template(synthesised: Get) -> None:
    for secret in synthesised("prod").resources("AWS::SecretsManager::Secret").values():
        assert "SecretString" not in secret["Properties"]
        assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 30
    for database in synthesised("prod").resources("AWS::RDS::DBInstance").values():
        password = database["Properties"]["MasterUserPassword"]
        assert "{{resolve:secretsmanager:" in str(password)
