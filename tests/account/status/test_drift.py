"""Drift: CloudFormation's detections, and rules of security groups that no template has."""

from __future__ import annotations

from typing import Any

import pytest
from hyperpod_service import refusal
from live_environment import GROUP, NOW, OURS, Live, drifted, rule

from ultracluster.account.aws import AccountError
from ultracluster.account.status.drift import foreign_rules, stack_drift
from ultracluster.account.status.rows import Difference, StackDrift


def look(live: Live, *, detect: bool = True, over: bool = False) -> list[Any]:
    pauses: list[float] = []
    found = stack_drift(live.account, "dev-network", detect=detect, over=lambda: over, pause=pauses.append)
    return list(found)


def test_a_detection_is_waited_for() -> None:
    live = Live()
    live.drifts["dev-network"] = [drifted("Nodes", "AWS::EC2::SecurityGroup", "/Tags/0/Value")]

    first, second = look(live)

    assert (first.drift, first.checked, first.why) == ("differs", NOW, "")
    assert second == Difference(
        "property", "dev-network Nodes (AWS::EC2::SecurityGroup) /Tags/0/Value", "a", "b",
        "CloudFormation DescribeStackResourceDrifts",
    )  # fmt: skip
    assert live.asked.count("DescribeStackDriftDetectionStatus") == 2


@pytest.mark.parametrize(("kind", "count"), [("ADD", 0), ("REMOVE", 1)])
def test_a_rule_that_another_stack_adds_is_no_drift(kind: str, count: int) -> None:
    live = Live()
    one = drifted("Nodes", "AWS::EC2::SecurityGroup", "/SecurityGroupIngress/1")
    one["PropertyDifferences"][0]["DifferenceType"] = kind
    live.drifts["dev-network"] = [one]

    first, *differences = look(live)

    assert (first.drift, len(differences)) == ("differs" if count else "in sync", count)


@pytest.mark.parametrize("running", [False, True], ids=["slow", "begun by another"])
def test_a_detection_that_goes_on_shows_what_was_found_last(running: bool) -> None:
    live = Live()
    live.detections = ["DETECTION_IN_PROGRESS"]
    live.drifts["dev-network"] = [drifted()]
    if running:
        said = "Drift detection is already in progress for stack dev-network"
        live.refused["DetectStackDrift"] = refusal("ValidationError", said)

    first, second = look(live, over=True)

    assert first.drift == "checking" and "ask again" in first.why
    assert second.actual == "was deleted"


def test_a_detection_that_failed_says_why() -> None:
    live = Live()
    live.detections = ["DETECTION_FAILED"]

    (found,) = look(live)

    assert isinstance(found, StackDrift) and "kms:DescribeKey" in found.why


def test_the_last_answer_is_read_without_a_detection() -> None:
    live = Live()

    (found,) = look(live, detect=False)

    assert (found.drift, found.why) == ("in sync", "") and "DetectStackDrift" not in live.asked


def test_a_stack_that_was_never_compared_is_not_in_sync() -> None:
    live = Live()
    live.compared = "NOT_CHECKED"

    (found,) = look(live, detect=False)

    assert found.drift == "not checked" and "never compared" in found.why


@pytest.mark.parametrize(
    ("added", "words"),
    [
        (rule(9, port=22, CidrIpv4="10.2.0.0/16"), None),  # the template's peer is known to the stack only
        (rule(9, port=22, CidrIpv4="0.0.0.0/0"), "tcp 22 from 0.0.0.0/0"),
        (rule(9, port=8443, CidrIpv4="10.1.0.0/16"), "tcp 8443 from 10.1.0.0/16"),
        (rule(9, protocol="-1", CidrIpv4="0.0.0.0/0"), "everything from 0.0.0.0/0"),
        (rule(9, port=443, egress=True, CidrIpv6="::/0"), "tcp 443 to ::/0"),
        (rule(9, port=22, PrefixListId="pl-1234"), "tcp 22 from pl-1234"),
    ],
)
def test_rules_that_no_template_has(added: dict[str, Any], words: str | None) -> None:
    live = Live()
    assert foreign_rules(live.account, ["dev-network", "gone"]) == []

    live.rules = [*OURS, added]

    found = foreign_rules(live.account, ["dev-network"])
    assert [one.actual for one in found] == ([words] if words else [])
    assert all(GROUP in one.where for one in found)


def test_rules_that_cannot_be_read_are_an_error() -> None:
    live = Live()
    live.refused["DescribeSecurityGroupRules"] = refusal("UnauthorizedOperation")

    with pytest.raises(AccountError, match="access denied"):
        foreign_rules(live.account, ["dev-network"])
