"""The group that EC2 makes with a VPC: its two rules are taken away, by calls that may do nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import boto3
import pytest
from aws_cdk import Stack
from botocore.exceptions import ClientError
from foreign import imported_vpc, refusal, resources
from moto import mock_aws

from ultracluster import ClusterEgress, ClusterNetwork, EfaSecurityGroup
from ultracluster.config.network import ExistingVpc, Network
from ultracluster.network.default_group import GONE


def calls(stack: Stack) -> list[str]:
    found = [json.dumps(one["Properties"]) for one in resources(stack, "Custom::AWS").values()]
    return [call for call in found if "revokeSecurityGroup" in call]


def test_a_new_vpcs_default_group_is_emptied(stack: Stack) -> None:
    ClusterNetwork(stack, "Network", zone_id="use1-az6")

    made = calls(stack)
    assert len(made) == 2
    for call in made:
        assert "DefaultSecurityGroup" in call and '"Delete"' not in call
        # again, or after somebody did it by hand, it is no error
        assert GONE in call
    assert refusal(stack) == ""


def test_the_calls_may_revoke_rules_of_that_group_only(stack: Stack) -> None:
    ClusterNetwork(stack, "Network", zone_id="use1-az6")

    statements = [
        statement
        for one in resources(stack, "AWS::IAM::Policy").values()
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if "Revoke" in str(statement["Action"])
    ]
    assert {statement["Action"] for statement in statements} == {
        "ec2:RevokeSecurityGroupIngress",
        "ec2:RevokeSecurityGroupEgress",
    }
    for statement in statements:
        text = json.dumps(statement["Resource"])
        assert ":security-group/" in text and "DefaultSecurityGroup" in text and "*" not in text


def test_ec2_takes_the_calls_and_says_so_when_there_is_nothing_left(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto stands for EC2; the calls are those of the template, with the group's id filled in."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    network = ClusterNetwork(stack, "Network", zone_id="use1-az6", egress="closed")
    assert network.egress
    network.egress.admit("Nodes", clients=EfaSecurityGroup(stack, "Nodes", vpc=network.vpc, web_ports=()))
    with mock_aws():
        ec2 = boto3.client("ec2", region_name="us-east-1")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        of_vpc = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": ["default"]}]
        (group,) = ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]
        assert group["IpPermissionsEgress"]
        ec2.authorize_security_group_ingress(  # moto's group lacks the rule that EC2 gives it
            GroupId=group["GroupId"],
            IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]}],
        )
        filled = {"DefaultSecurityGroup": group["GroupId"], "AWS::Region": "us-east-1"}
        for call in calls_of(stack, filled):
            if "Revoke" in call["action"]:
                assert made(ec2, call)["Return"] is True
                with pytest.raises(ClientError) as refused:
                    made(ec2, call)
                assert re.search(call["ignoreErrorCodesMatching"], refused.value.response["Error"]["Code"])
            else:
                assert made(ec2, call)["PrefixLists"][0]["PrefixListId"].startswith("pl-")
        (group,) = ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]

    assert group["IpPermissions"] == group["IpPermissionsEgress"] == []


def calls_of(stack: Stack, filled: dict[str, str]) -> list[dict[str, Any]]:
    """What the CDK's function is told to call, with references filled in by their last words."""
    found: list[dict[str, Any]] = []
    for one in resources(stack, "Custom::AWS").values():
        told = one["Properties"]["Create"]
        parts = told["Fn::Join"][1] if isinstance(told, dict) else [told]
        text = "".join(part if isinstance(part, str) else _filled(part, filled) for part in parts)
        call = json.loads(text)
        found.append(call | {"action": call["action"][0].upper() + call["action"][1:]})
    assert len(found) == 3
    return found


def _filled(reference: dict[str, Any], filled: dict[str, str]) -> str:
    """Of `Ref`, or of `Fn::GetAtt` by its attribute."""
    (value,) = reference.values()
    return filled[value if isinstance(value, str) else value[-1]]


def made(ec2: Any, call: dict[str, Any]) -> dict[str, Any]:
    return getattr(ec2, re.sub(r"(?<!^)(?=[A-Z])", "_", call["action"]).lower())(**call["parameters"])


def test_a_vpc_made_elsewhere_keeps_its_group(stack: Stack) -> None:
    vpc = imported_vpc(stack)
    existing = ExistingVpc(id=vpc.vpc_id, cidr="10.0.0.0/16", nat_gateway_id="nat-0123456789abcdef0")
    config = Network(zone_id="use1-az6", vpc=existing)
    ClusterEgress(stack, "Egress", config=config, vpc=vpc, subnet=vpc.private_subnets[0])

    assert calls(stack) == []
