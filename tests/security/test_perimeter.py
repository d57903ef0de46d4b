"""The perimeter in templates: a policy on every endpoint, a narrow way out, buckets that answer their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from foreign import foreign_stack, resources
from project import CLOSED, ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from templates import Synthesised

from ultracluster import DataBucket
from ultracluster.clusters.composition.egress import add_egress
from ultracluster.clusters.composition.network import add_network
from ultracluster.clusters.composition.parts import stay
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.model.endpoint_policy import LONGEST_POLICY
from ultracluster.model.endpoints import policy_kind
from ultracluster.model.perimeter import Perimeter

Get = Callable[[str], Synthesised]
EVERYWHERE = "0.0.0.0/0"


@cache
def closed(name: str) -> dict[str, Any]:
    """Network and ways out of a shipped environment, as if it were closed."""
    data = changed(environment_data(name), {"network.egress": "closed", "network.perimeter": {}})
    cluster = resolve(loaded(data).environment)
    stack = Stack(App(analytics_reporting=False), "closed", env={"region": cluster.region})  # type: ignore[arg-type]
    network = add_network(stack, cluster, cross=stay)
    add_egress(stack, cluster, network=network, key=kms.Key(stack, "Key"))  # type: ignore[arg-type]
    return Template.from_stack(stack).to_json()["Resources"]


def endpoints(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in made.values():
        if one["Type"] == "AWS::EC2::VPCEndpoint":
            yield str(one["Properties"]["ServiceName"]).split(".", 3)[3], one["Properties"]


def groups(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every rule of a security group that lets something out."""
    for one in made.values():
        told = one["Properties"]
        if one["Type"] == "AWS::EC2::SecurityGroup":
            # without a list EC2 adds all traffic to everywhere
            yield from told.get("SecurityGroupEgress", [{"CidrIp": EVERYWHERE}])
        elif one["Type"] == "AWS::EC2::SecurityGroupEgress":
            yield told


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_endpoint_of_a_shipped_environment_has_its_policy(name: str, synthesised: Get) -> None:
    made = synthesised(name).resources("AWS::EC2::VPCEndpoint")

    assert made
    for service, told in endpoints(made):
        assert ("PolicyDocument" in told) is (policy_kind(service) is not None), service


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_closed_each_endpoint_confines_principals_and_resources(name: str) -> None:
    found = dict(endpoints(closed(name)))

    without = {service for service, told in found.items() if "PolicyDocument" not in told}
    assert without <= {"eks-auth"} and "s3" in found
    for service, told in found.items():
        if service in without:
            continue
        text = json.dumps(told["PolicyDocument"])
        assert len(text) < LONGEST_POLICY
        for statement in told["PolicyDocument"]["Statement"]:
            assert statement["Principal"] == "*" and statement["Effect"] == "Allow"
            keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
            bound = keys & {"aws:PrincipalAccount", "aws:PrincipalIsAWSService"}
            # what is let through unsigned is named: a bucket, or an action
            assert bound or "*" not in statement["Action"], statement
            assert statement["Resource"] != ["*"] or bound or service == "ssm", statement
        assert "aws:PrincipalAccount" in text


@pytest.mark.parametrize("name", CLOSED)
def test_nothing_of_a_closed_environment_goes_to_everywhere(name: str, synthesised: Get) -> None:
    for template in synthesised(name).templates.values():
        text = json.dumps([list(groups(template["Resources"]))])
        assert EVERYWHERE not in text and "::/0" not in text
        assert not [one for one in template["Resources"].values() if one["Type"] == "AWS::EC2::Route"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_closed_nodes_reach_endpoints_and_gateways_on_https(name: str) -> None:
    made = closed(name)
    out = [rule for rule in groups(made) if rule.get("IpProtocol") == "tcp"]

    assert EVERYWHERE not in json.dumps(list(groups(made)))
    assert {(rule["FromPort"], rule["ToPort"]) for rule in out} == {(443, 443)}
    (group,) = [rule["DestinationSecurityGroupId"] for rule in out if "DestinationSecurityGroupId" in rule]
    for _, told in endpoints(made):
        assert told.get("SecurityGroupIds", [group]) == [group]
    lists = [rule["DestinationPrefixListId"] for rule in out if "DestinationPrefixListId" in rule]
    gateways = [service for service, told in endpoints(made) if told["VpcEndpointType"] == "Gateway"]
    asked = [str(made[one["Fn::GetAtt"][0]]["Properties"]["Create"]) for one in lists]
    assert len(asked) == len(gateways)
    for service in gateways:
        assert any(f".{service}" in call and "describeManagedPrefixLists" in call for call in asked)
    assert len(out) == 1 + len(gateways)


def test_where_endpoints_are_made_elsewhere_nodes_reach_their_networks() -> None:
    vpc = {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}
    data = changed(environment_data("parallelcluster-p5"), {"network.egress": "closed", "network.vpc": vpc})
    assert rules_of(data) == ["10.0.0.0/16", "list", "list"]

    hub = vpc | {"endpoint_networks": ["10.1.0.0/24", "10.2.0.0/24"]}
    data = changed(data, {"network.vpc": hub})
    assert rules_of(data) == ["10.1.0.0/24", "10.2.0.0/24", "list", "list"]


def rules_of(data: dict[str, Any]) -> list[str]:
    cluster = resolve(loaded(data).environment)
    assert cluster.environment.makes_egress
    stack = foreign_stack()
    network = add_network(stack, cluster, cross=stay)
    add_egress(stack, cluster, network=network, key=kms.Key(stack, "Key"))  # type: ignore[arg-type]
    made = resources(stack, "AWS::EC2::SecurityGroupEgress").values()
    return sorted(
        str(one["Properties"].get("CidrIp", "list"))
        for one in made
        if one["Properties"]["IpProtocol"] == "tcp"
    )


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_buckets_answer_their_own_account(name: str, synthesised: Get) -> None:
    made = synthesised(name)
    account = load(ROOT / f"environments/{name}.yaml").environment.account or {"Ref": "AWS::AccountId"}
    policies = made.resources("AWS::S3::BucketPolicy")

    assert len(policies) == len(made.resources("AWS::S3::Bucket")) > 0
    for policy in policies.values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        (only,) = [one for one in statements if one.get("Sid") == "OnlyThePerimeter"]
        assert only["Effect"] == "Deny" and only["Action"] == "s3:*" and only["Principal"] == {"AWS": "*"}
        assert only["Condition"] == {
            "StringNotEqualsIfExists": {"aws:PrincipalAccount": [account]},
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
        }
        assert len(only["Resource"]) == 2
        # and TLS
        assert any("aws:SecureTransport" in json.dumps(one) for one in statements)


def test_a_bucket_lets_in_whom_its_perimeter_names() -> None:
    stack = foreign_stack()
    DataBucket(stack, "Data", perimeter=Perimeter(organization="o-a1b2c3d4e5", accounts=("444455556666",)))

    for policy in resources(stack, "AWS::S3::BucketPolicy").values():
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        (only,) = [one for one in statements if one.get("Sid") == "OnlyThePerimeter"]
        # all must differ: whoever is of one of them passes
        assert only["Condition"]["StringNotEqualsIfExists"] == {
            "aws:PrincipalAccount": [{"Ref": "AWS::AccountId"}, "444455556666"],
            "aws:PrincipalOrgID": ["o-a1b2c3d4e5"],
        }
