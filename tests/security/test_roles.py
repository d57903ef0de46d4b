"""Roles of nodes: made here, or given by someone else."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import CfnResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from foreign import foreign_stack, refusal, resources

from ultracluster import HyperPodExecutionRole, NodeRole

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
EC2: Any = iam.ServicePrincipal("ec2.amazonaws.com")
Made = type[HyperPodExecutionRole] | type[NodeRole]
BOTH = pytest.mark.parametrize("kind", [HyperPodExecutionRole, NodeRole])


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()


def key(stack: Stack) -> kms.IKey:
    return kms.Key.from_key_arn(stack, "Key", KEY)


def sids(stack: Stack) -> set[str]:
    return {
        statement["Sid"]
        for policy in resources(stack, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "Sid" in statement
    }


@BOTH
def test_a_given_role_gets_the_same_statements(kind: Made) -> None:
    own, other = foreign_stack(), foreign_stack()
    kind(own, "Nodes", cluster_name="train", key=key(own))
    given: Any = iam.Role(other, "Theirs", assumed_by=EC2)

    made = kind(other, "Nodes", cluster_name="train", key=key(other), role=given)

    assert made.role is given and len(resources(other, "AWS::IAM::Role")) == 1
    assert sids(own) == sids(other) >= {"SessionManager", "DescribeFileSystems", "UseKey"}


@BOTH
def test_a_role_that_must_not_change_stays_as_it_is(stack: Stack, kind: Made) -> None:
    given = iam.Role.from_role_arn(stack, "Theirs", "arn:aws:iam::123456789012:role/theirs", mutable=False)

    made = kind(stack, "Nodes", cluster_name="train", key=key(stack), role=given)
    made.depend_on_policy(CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster"))

    assert not sids(stack) and refusal(stack) == ""


@BOTH
@pytest.mark.parametrize("imported", [False, True])
def test_who_depends_on_the_policy_waits_for_it(stack: Stack, kind: Made, imported: bool) -> None:
    given = (
        iam.Role.from_role_arn(stack, "Theirs", "arn:aws:iam::123456789012:role/theirs") if imported else None
    )
    made = kind(stack, "Nodes", cluster_name="train", key=key(stack), role=given)
    made.grant_read_scripts(s3.Bucket.from_bucket_name(stack, "Scripts", "our-scripts"), "train")

    made.depend_on_policy(CfnResource(stack, "Cluster", type="AWS::SageMaker::Cluster"))

    (cluster,) = resources(stack, "AWS::SageMaker::Cluster").values()
    (policy,) = resources(stack, "AWS::IAM::Policy")
    assert cluster["DependsOn"] == [policy] and "ReadScripts" in sids(stack)


@BOTH
def test_a_role_grants_and_is_granted(stack: Stack, kind: Made) -> None:
    bucket: Any = s3.Bucket(stack, "Data")
    made: Any = kind(stack, "Nodes", cluster_name="train", key=key(stack))

    bucket.grant_read(made)

    (policy,) = resources(stack, "AWS::IAM::Policy").values()
    assert "s3:GetObject*" in str(policy)
