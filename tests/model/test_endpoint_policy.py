"""Statements of endpoint policies: who passes, to what."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

from ultracluster.model.endpoint_policy import LONGEST_POLICY, Place, endpoint_policy, length
from ultracluster.model.perimeter import Perimeter

OWN, OTHER, THIRD = "111122223333", "444455556666", "777788889999"
PLACE = Place(account=OWN, region="us-east-2", known_region="us-east-2")
SLURM = frozenset({"always", "slurm", "hyperpod", "hyperpod-slurm"})


def statements(service: str, **settings: Any) -> list[dict[str, Any]]:
    policy = endpoint_policy(service, Perimeter(**{"words": SLURM, **settings}), PLACE)
    assert policy
    return policy["Statement"]


def passes(
    service: str,
    action: str,
    resource: str,
    *,
    principal: str | None = OWN,
    owner: str = OWN,
    **settings: Any,
) -> bool:
    """A few lines of IAM, for these policies only: allow statements, equal strings.

    An evaluator that nobody here wrote judges whole templates (tests/security/evaluator).
    """
    context = {"aws:ResourceAccount": owner, "aws:PrincipalIsAWSService": "false"}
    context |= {"aws:PrincipalAccount": principal} if principal else {}
    for statement in statements(service, **settings):
        assert statement["Effect"] == "Allow" and statement["Principal"] == "*"
        if not any(fnmatchcase(action, one) for one in statement["Action"]):
            continue
        if not any(fnmatchcase(resource, one) for one in statement["Resource"]):
            continue
        conditions = statement.get("Condition", {})
        if all(
            context.get(key) in (values if isinstance(values, list) else [values])
            or (operator.endswith("IfExists") and key not in context)
            for operator, keys in conditions.items()
            for key, values in keys.items()
        ):
            return True
    return False


MINE, THEIRS = "arn:aws:s3:::mine/key", "arn:aws:s3:::theirs/key"


def test_own_principals_reach_own_buckets() -> None:
    assert passes("s3", "s3:PutObject", MINE)


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:ListBucket"])
def test_a_foreign_bucket_is_out_of_reach(action: str) -> None:
    assert not passes("s3", action, THEIRS, owner=OTHER)
    # neither with credentials of its owner
    assert not passes("s3", action, THEIRS, principal=OTHER, owner=OTHER)
    assert not passes("s3", action, THEIRS, principal=None, owner=OTHER)


def test_foreign_credentials_reach_nothing_of_ours() -> None:
    assert not passes("s3", "s3:GetObject", MINE, principal=OTHER)


def test_a_named_bucket_passes_whoever_owns_it() -> None:
    assert passes("s3", "s3:PutObject", THEIRS, owner=OTHER, buckets=("theirs",))
    assert passes("s3", "s3:ListBucket", "arn:aws:s3:::theirs", owner=OTHER, buckets=("theirs",))
    assert not passes("s3", "s3:PutObject", THEIRS, principal=OTHER, owner=OTHER, buckets=("theirs",))
    # a name is not the beginning of another
    assert not passes("s3", "s3:PutObject", "arn:aws:s3:::theirs-2/key", owner=OTHER, buckets=("theirs",))


def test_a_bucket_that_is_read_is_not_written_nor_read_by_others() -> None:
    assert passes("s3", "s3:GetObject", THEIRS, owner=OTHER, read_buckets=("theirs",))
    assert not passes("s3", "s3:PutObject", THEIRS, owner=OTHER, read_buckets=("theirs",))
    assert not passes("s3", "s3:GetObject", THEIRS, principal=None, owner=OTHER, read_buckets=("theirs",))


def test_a_readable_bucket_is_read_by_anybody_and_written_by_nobody() -> None:
    readable: dict[str, Any] = {"readable_buckets": ("theirs",)}

    assert passes("s3", "s3:GetObject", THEIRS, principal=None, owner=OTHER, **readable)
    assert not passes("s3", "s3:PutObject", THEIRS, owner=OTHER, **readable)


def test_with_a_nat_gateway_every_bucket_is_read_and_no_foreign_one_written() -> None:
    assert passes("s3", "s3:GetObject", THEIRS, principal=None, owner=OTHER, reads_anywhere=True)
    assert passes("s3", "s3:GetObject", THEIRS, owner=OTHER, reads_anywhere=True)
    assert not passes("s3", "s3:PutObject", THEIRS, owner=OTHER, reads_anywhere=True)


def test_a_trusted_account_passes_as_this_one_does() -> None:
    trusted: dict[str, Any] = {"accounts": (OTHER,)}

    assert passes("s3", "s3:PutObject", THEIRS, owner=OTHER, **trusted)
    assert passes("sts", "sts:AssumeRole", f"arn:aws:iam::{OTHER}:role/theirs", owner=OTHER, **trusted)
    assert not passes("s3", "s3:PutObject", THEIRS, owner=THIRD, **trusted)


def test_an_organization_is_named_beside_the_account() -> None:
    own, org, *_ = statements("dynamodb", organization="o-a1b2c3d4e5")

    assert own["Condition"]["StringEquals"] == {"aws:PrincipalAccount": [OWN], "aws:ResourceAccount": [OWN]}
    assert org["Condition"]["StringEquals"] == {
        "aws:PrincipalOrgID": ["o-a1b2c3d4e5"],
        "aws:ResourceOrgID": ["o-a1b2c3d4e5"],
    }


@pytest.mark.parametrize(
    ("bucket", "action", "allowed"),
    [
        ("prod-us-east-2-starport-layer-bucket", "s3:GetObject", True),
        ("prod-us-east-2-starport-layer-bucket", "s3:PutObject", False),
        ("prod-eu-west-1-starport-layer-bucket", "s3:GetObject", False),
        ("cloudformation-waitcondition-us-east-2", "s3:PutObject", True),
        ("cloudformation-custom-resource-response-useast2", "s3:PutObject", True),
        ("cloudformation-waitcondition-us-east-2", "s3:GetObject", False),
        ("al2023-repos-us-east-2-de612dc2", "s3:GetObject", True),
        ("aws-pcs-repo-us-east-2", "s3:GetObject", False),
    ],
)
def test_aws_owned_buckets_pass_unsigned(bucket: str, action: str, allowed: bool) -> None:
    arn = f"arn:aws:s3:::{bucket}/key"

    assert passes("s3", action, arn, principal=None, owner="999999999999") is allowed


def test_rows_follow_the_orchestrator() -> None:
    arn = "arn:aws:s3:::aws-pcs-repo-us-east-2/key"

    assert passes("s3", "s3:GetObject", arn, principal=None, owner=THIRD, words=frozenset({"always", "pcs"}))
    # of a network that stands alone it is not known what will run there
    assert passes("s3", "s3:GetObject", arn, principal=None, owner=THIRD, words=None)


@pytest.mark.parametrize("service", ["ecr.api", "ecr.dkr"])
def test_registries_of_aws_are_pulled_from(service: str) -> None:
    eks = "arn:aws:ecr:us-east-2:602401143452:repository/eks/coredns"
    words = frozenset({"always", "kubernetes", "eks"})

    assert passes(service, "ecr:BatchGetImage", eks, owner="602401143452", words=words)
    assert not passes(service, "ecr:PutImage", eks, owner="602401143452", words=words)
    assert not passes(service, "ecr:BatchGetImage", eks, owner="602401143452", principal=OTHER, words=words)
    assert not passes(service, "ecr:BatchGetImage", eks, owner="602401143452")
    theirs = f"arn:aws:ecr:us-east-2:{OTHER}:repository/x"
    assert not passes(service, "ecr:BatchGetImage", theirs, owner=OTHER, words=words)


def test_hyperpod_nodes_register_with_systems_manager_unsigned() -> None:
    action = "ssm:RequestManagedInstanceRoleToken"

    assert passes("ssm", action, "*", principal=None)
    assert not passes("ssm", action, "*", principal=None, words=frozenset({"always", "pcs"}))
    assert not passes("ssm", "ssm:PutParameter", "*", principal=None)


def test_channels_are_confined_to_own_principals_only() -> None:
    for statement in statements("ssmmessages"):
        assert "aws:ResourceAccount" not in json.dumps(statement)
    assert not passes("ssmmessages", "ssmmessages:OpenDataChannel", "*", principal=OTHER)


@pytest.mark.parametrize("service", ["eks-auth", "oidc-eks", "athena"])
def test_where_aws_is_not_known_to_take_a_policy_none_is_written(service: str) -> None:
    assert endpoint_policy(service, Perimeter(), PLACE) is None


def test_the_longest_policy_of_ours_leaves_room_for_names() -> None:
    everything = endpoint_policy("s3", Perimeter(organization="o-a1b2c3d4e5"), PLACE)
    assert everything and length(everything) < LONGEST_POLICY / 2


def test_names_with_six_characters_beside_each_wildcard() -> None:
    """AWS PrivateLink Guide: of values of string conditions; ours hold none."""
    for service in ("s3", "kms", "ssm", "ecr.api"):
        for statement in statements(service, organization="o-a1b2c3d4e5"):
            assert "*" not in json.dumps(statement.get("Condition", {}))
