"""Keys admit the services that use them: made here, given, or imported."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from foreign import foreign_stack, refusal, resources, warnings

from ultracluster import ClusterKey
from ultracluster.guard import already_judged
from ultracluster.model.orchestrators import Launcher
from ultracluster.security.cluster_key import AUTO_SCALING, PCS, SPOT, allow_use

ARN = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.fixture
def stack() -> Stack:
    return foreign_stack()


def statements(stack: Stack) -> dict[str, dict[str, Any]]:
    (key,) = resources(stack, "AWS::KMS::Key").values()
    found = [one for one in key["Properties"]["KeyPolicy"]["Statement"] if "Sid" in one]
    assert len({one["Sid"] for one in found}) == len(found)
    return {one["Sid"]: one for one in found}


def launching(stack: Stack, *launched_by: Launcher) -> dict[str, dict[str, Any]]:
    ClusterKey(stack, "Key", launched_by=launched_by)
    return statements(stack)


def test_no_one_launches_by_default(stack: Stack) -> None:
    assert set(launching(stack)) == {"CloudWatchLogs", "FsxDataRepositories"}


def test_each_service_uses_the_key_in_this_account_alone(stack: Stack) -> None:
    found = launching(stack, "auto-scaling", "computing-service")

    assert set(found) >= {"LaunchNodes", "AttachVolumes", "LaunchNodes2", "AttachVolumes2"}
    for number, role in (("", AUTO_SCALING), ("2", PCS)):
        use, grant = found[f"LaunchNodes{number}"], found[f"AttachVolumes{number}"]
        for statement in (use, grant):
            assert statement["Condition"]["StringEquals"] == {"kms:CallerAccount": {"Ref": "AWS::AccountId"}}
            assert role in str(statement["Condition"]["ArnLike"]["aws:PrincipalArn"])
        assert grant["Action"] == "kms:CreateGrant"
        assert grant["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
        assert "kms:CreateGrant" not in use["Action"]


def test_a_key_of_the_user_is_allowed_each_use_once(stack: Stack) -> None:
    key: Any = kms.Key(stack, "Key")

    allow_use(stack, key, "computing-service", "logs")
    allow_use(stack, key, "logs", "computing-service", "spot")

    found = statements(stack)
    assert set(found) == {"CloudWatchLogs", "LaunchNodes", "AttachVolumes", "LaunchNodes2", "AttachVolumes2"}
    assert PCS in str(found["LaunchNodes"]) and SPOT in str(found["LaunchNodes2"])


def test_a_key_of_ours_is_extended_by_a_cluster_in_another_stack(stack: Stack) -> None:
    made = ClusterKey(stack, "Key", launched_by=["auto-scaling"])

    allow_use(Stack(cast("App", stack.node.root), "cluster"), made.key, "computing-service", "auto-scaling")

    assert {"LaunchNodes", "LaunchNodes2"} < set(statements(stack))
    assert "LaunchNodes3" not in statements(stack)


def test_what_an_imported_key_has_to_hold_is_said_once(stack: Stack) -> None:
    key = kms.Key.from_key_arn(stack, "Key", ARN)

    allow_use(stack, key, "computing-service")
    allow_use(stack, key, "computing-service")

    said = warnings(stack)
    assert len(said) == 2
    assert all("nodes that AWS PCS launches with encrypted volumes it has to hold" in one for one in said)
    assert "AWSServiceRoleForPCS" in said[0] and refusal(stack) == ""


def test_an_environment_that_was_judged_hears_nothing_of_it(stack: Stack) -> None:
    already_judged(stack)

    allow_use(stack, kms.Key.from_key_arn(stack, "Key", ARN), "computing-service")

    assert warnings(stack) == []


def test_constructs_of_a_stack_share_one_key(stack: Stack) -> None:
    given = kms.Key.from_key_arn(stack, "Given", ARN)

    assert ClusterKey.of(stack, given) is given
    assert ClusterKey.of(stack, None) is ClusterKey.of(stack, None)
    assert len(resources(stack, "AWS::KMS::Key")) == 1


def test_it_stays_unless_told_otherwise(stack: Stack) -> None:
    ClusterKey(stack, "Kept")
    ClusterKey(stack, "Going", removal_policy=RemovalPolicy.DESTROY)

    found = {name[:4]: one["DeletionPolicy"] for name, one in resources(stack, "AWS::KMS::Key").items()}
    assert found == {"Kept": "RetainExceptOnCreate", "Goin": "Delete"}
