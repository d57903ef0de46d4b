"""Deletion protection: what it refuses is said, and taking it away is refused like a loss of data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blast_radius_support import LUSTRE, changes, lustre, resource, stack

from ultracluster.change import Verdict, blast_radius, worst

RDS = "AWS::RDS::DBInstance"


def call(service: str, action: str, **parameters: Any) -> dict[str, Any]:
    text = json.dumps({"service": service, "action": action, "parameters": parameters})
    joined = {"Fn::Join": ["", [text[:20], text[20:]]]}
    return resource(
        "Custom::AWS", {"ServiceToken": "arn", "Create": joined if action != "setStackPolicy" else text}
    )


ON = call("RDS", "modifyDBInstance", DBInstanceIdentifier="x", DeletionProtection=True)
OFF = call("RDS", "modifyDBInstance", DBInstanceIdentifier="x", DeletionProtection=False)
EKS_ON = call("EKS", "updateClusterConfig", name="x", deletionProtection=True)
EKS_SWITCH = resource("Custom::EksDeletionProtection", {"ServiceToken": "arn", "ClusterName": "x"})
STACK_POLICY = call("CloudFormation", "setStackPolicy", StackName="x")


def two(database: dict[str, Any] | None, protection: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "s": {"Resources": {"Db": database} if database else {}},
        "p": {"Resources": {"P": protection} if protection else {}},
    }


SNAPSHOT = resource(RDS, DeletionPolicy="Snapshot")


@pytest.mark.parametrize(
    ("database", "protection", "refused"),
    [
        (SNAPSHOT, ON, True),
        (resource(RDS), ON, True),
        (resource(RDS, {"DeletionProtection": True}), None, True),
        (SNAPSHOT, OFF, False),
        (SNAPSHOT, EKS_ON, False),
        (SNAPSHOT, EKS_SWITCH, False),
        (SNAPSHOT, None, False),
        (resource(RDS, DeletionPolicy="Retain"), ON, False),  # it is not deleted
    ],
)
def test_a_protected_database_cannot_be_removed_and_its_secret_can(
    database: dict[str, Any], protection: dict[str, Any] | None, refused: bool
) -> None:
    found = {c.stack: c for c in blast_radius(two(database, protection), two(None, protection))}

    assert found["s"].refused == refused
    assert ("the secret with the database's password" in found["s"].reason) == refused
    assert ("`protect: false` first" in found["s"].reason) == refused


@pytest.mark.parametrize("on", [EKS_ON, EKS_SWITCH], ids=["a call", "a function"])
def test_a_protected_control_plane_cannot_be_removed(on: dict[str, Any]) -> None:
    before = two(resource("AWS::EKS::Cluster"), on)
    (change,) = blast_radius(before, two(None, on))

    assert change.refused and "secret" not in change.reason


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (RDS, {"DeletionProtection": True}, {"DeletionProtection": False}),
        (RDS, {"DeletionProtection": True}, {}),
        ("AWS::EKS::Cluster", {"DeletionProtection": True}, {}),
        (RDS, {"BackupRetentionPeriod": 14}, {"BackupRetentionPeriod": 1}),
        (LUSTRE, lustre(AutomaticBackupRetentionDays=7), lustre(AutomaticBackupRetentionDays=0)),
        ("AWS::S3::Bucket", {"VersioningConfiguration": {"Status": "Enabled"}}, {}),
        ("AWS::S3::Bucket", {"VersioningConfiguration": {"Status": "Enabled"}},
         {"VersioningConfiguration": {"Status": "Suspended"}}),
        ("Custom::AWS", ON["Properties"], OFF["Properties"]),
    ],
)  # fmt: skip
def test_a_guard_that_goes_needs_acceptance_and_one_that_comes_does_not(
    kind: str, old: Any, new: Any
) -> None:
    assert worst(changes(kind, old, new)) is Verdict.DATA_AT_RISK
    assert not worst(changes(kind, new, old)).needs_acceptance


@pytest.mark.parametrize(
    "guard", [ON, EKS_ON, EKS_SWITCH, STACK_POLICY], ids=["rds", "eks", "eks function", "stack policy"]
)
def test_a_guard_that_leaves_its_stack(guard: dict[str, Any]) -> None:
    assert worst(blast_radius(stack(G=guard), stack())) is Verdict.DATA_AT_RISK
    assert not worst(blast_radius(stack(G=OFF), stack())).needs_acceptance
    undone = resource("Custom::AWS", {**OFF["Properties"], "Delete": "{}"})
    assert worst(blast_radius(stack(G=undone), stack())) is Verdict.REPLACED  # its last call is made


@pytest.mark.parametrize(
    ("kind", "old", "new", "verdict"),
    [
        (LUSTRE, "Retain", "Delete", "DATA AT RISK"),
        (LUSTRE, "RetainExceptOnCreate", None, "DATA AT RISK"),
        (LUSTRE, "Retain", "RetainExceptOnCreate", "in place"),
        (RDS, "Retain", "Snapshot", "DATA AT RISK"),
        (RDS, "Snapshot", "Delete", "DATA AT RISK"),
        (RDS, "Snapshot", "Retain", "in place"),
        ("AWS::EC2::Subnet", "Retain", "Delete", "in place"),  # holds nothing
    ],
)
@pytest.mark.parametrize("name", ["DeletionPolicy", "UpdateReplacePolicy"])
def test_policies_of_what_holds_data(kind: str, old: str, new: str | None, verdict: str, name: str) -> None:
    before, after = (resource(kind, None, **({name: one} if one else {})) for one in (old, new))

    assert worst(blast_radius(stack(R=before), stack(R=after))) == verdict
