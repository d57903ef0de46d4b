"""Stack policies that keep data: what they say, which are ours, and what an update needs of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blast_radius_support import LUSTRE, lustre, refuses, resource, stack

from ultracluster.change import blast_radius
from ultracluster.change.stack_policies import going, is_ours, opened_for
from ultracluster.model.stack_guards import OPEN, closed

DEPLOYED = stack(
    Lustre=resource(LUSTRE),
    Home=resource(LUSTRE),
    Key=resource("AWS::KMS::Key"),
    Rule=resource("AWS::EC2::Route"),
)["s"]


def test_an_opened_policy_lets_go_what_is_named_and_keeps_the_rest() -> None:
    policy = opened_for({"Lustre"}, DEPLOYED)

    assert not refuses(policy, "Lustre", LUSTRE)
    assert refuses(policy, "Home", LUSTRE) and refuses(policy, "Key", "AWS::KMS::Key", "Update:Replace")
    assert not refuses(policy, "Rule", "AWS::EC2::Route")
    assert opened_for({"Lustre", "Home", "Key"}, DEPLOYED) == OPEN


def test_a_policy_fits_into_what_cloudformation_takes() -> None:
    """16,384 bytes (CloudFormation API reference: SetStackPolicy)."""
    many = stack(**{f"{'LogGroup' * 5}{n}": resource("AWS::Logs::LogGroup") for n in range(200)})["s"]

    assert max(map(len, (closed(), opened_for({"a"}, many)))) < 16384


@pytest.mark.parametrize(
    ("policy", "ours"),
    [
        (closed(), True),
        (OPEN, True),
        (opened_for({"Lustre"}, DEPLOYED), True),
        (closed().replace('"AWS::FSx::Volume", ', ""), True),  # of another version
        (closed().replace("Update:Replace", "Update:Modify"), False),
        (json.dumps({"Statement": []}), False),
        (json.dumps({"Statement": [json.loads(closed())["Statement"][1]]}), False),
        (json.dumps({"Statement": [*json.loads(closed())["Statement"], {"Effect": "Deny"}]}), False),
        ("no JSON", False),
        ("[1]", False),
    ],
)  # fmt: skip
def test_the_policy_of_somebody_else_is_told_from_ours(policy: str, ours: bool) -> None:
    assert is_ours(policy) == ours


KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (resource(LUSTRE), None, {"R"}),
        (resource(LUSTRE, None, **KEPT), None, {"R"}),  # retained, and taken out all the same
        (resource(LUSTRE, lustre(), **KEPT), resource(LUSTRE, lustre(EfaEnabled=False), **KEPT), {"R"}),
        (resource(LUSTRE, lustre()), resource(LUSTRE, lustre(StorageCapacity=76800)), set()),
        (resource(LUSTRE, lustre()), resource(LUSTRE, lustre(StorageCapacity=1200)), set()),  # AWS refuses it
        (resource("AWS::EC2::Route"), None, set()),
        (None, resource(LUSTRE), set()),
    ],
)
def test_what_an_update_would_replace_or_take_out(before: Any, after: Any, names: set[str]) -> None:
    old, new = (stack(R=one) if one else stack() for one in (before, after))

    assert going(blast_radius(old, new), old).get("s", set()) == names
