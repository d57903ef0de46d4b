"""A grant to a cluster reaches every role of its nodes."""

from __future__ import annotations

from typing import Any

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from foreign import HOME, foreign_stack, refusal, resources, template

from ultracluster.security.every_role import EveryRole, every

EC2: Any = iam.ServicePrincipal("ec2.amazonaws.com")


def roles(stack: Any, *names: str) -> list[iam.Role]:
    return [iam.Role(stack, name, assumed_by=EC2) for name in names]


def granted(stack: Any, action: str) -> int:
    return sum(action in str(policy) for policy in resources(stack, "AWS::IAM::Policy").values())


def test_each_of_them_gets_what_is_granted() -> None:
    stack = foreign_stack(env=HOME)
    bucket: Any = s3.Bucket(stack, "Data")
    key: Any = kms.Key(stack, "Key")

    grant = bucket.grant_read(every(roles(stack, "Controller", "Login", "Compute")))
    key.grant_decrypt(every(roles(stack, "A", "B")))

    assert grant.success and granted(stack, "s3:GetObject*") == 3 and granted(stack, "kms:Decrypt") == 2
    assert refusal(stack) == ""


def test_who_depends_on_the_grant_waits_for_all_of_them() -> None:
    stack = foreign_stack(env=HOME)
    bucket: Any = s3.Bucket(stack, "Data")
    other = kms.Key(stack, "Later")

    bucket.grant_read(every(roles(stack, "Login", "Compute"))).apply_before(other)

    (later,) = resources(stack, "AWS::KMS::Key").values()
    assert len(later["DependsOn"]) == 2


def test_where_one_cannot_be_changed_the_resource_names_all() -> None:
    stack = foreign_stack(env=HOME)
    bucket: Any = s3.Bucket(stack, "Data")
    fixed = iam.Role.from_role_arn(stack, "Fixed", "arn:aws:iam::123456789012:role/theirs", mutable=False)
    (made,) = roles(stack, "Made")

    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["s3:GetObject"],
            resources=[bucket.arn_for_objects("*")],
            principals=[EveryRole([made, fixed])],  # type: ignore[list-item]
        )
    )

    assert "role/theirs" in str(template(stack)) and "Made" in str(resources(stack, "AWS::S3::BucketPolicy"))


def test_one_role_is_itself_and_the_same_twice_is_one() -> None:
    stack = foreign_stack(env=HOME)
    (role,) = roles(stack, "Role")

    assert every([role]) is role and every([role, role]) is role  # type: ignore[comparison-overlap]
