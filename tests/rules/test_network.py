"""Rules on network and IP budget, each broken and mended; the endpoints that they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from rules_table import Case, cases, found, table_tests

import ultracluster
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.model.endpoints import closed_endpoints, made_endpoints
from ultracluster.rules.sets import NET

VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}
SUBNET = {"id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}
GROUP = {"id": "sg-0123456789abcdef0"}
DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}

CASES = [
    *cases("network"),
    Case(
        "NET027",
        {
            "network.perimeter": {
                "buckets": [f"{number:03d}-{'results-of-a-partner' * 2}" for number in range(200)]
            }
        },
        "network.perimeter.buckets",
        "the policy of the endpoint for s3",
        "fewer names",
        {"network.perimeter": {"organization": "o-a1b2c3d4e5"}},
    ),
]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


def test_with_nothing_but_existing_parts_only_what_cannot_be_seen_is_warned_of() -> None:
    changes = {"network.vpc": VPC, "network.subnet": SUBNET, "network.security_group": GROUP}
    assert [one.code for one in found(NET, changes)] == ["NET024"]


def services(changes: dict[str, object], *, made: bool = True) -> list[str]:
    environment = loaded(changed(environment_data(), changes)).environment
    endpoints = made_endpoints(resolve(environment)) if made else closed_endpoints(resolve(environment))
    return [endpoint.service for endpoint in endpoints]


def test_with_a_nat_gateway_only_the_gateway_to_s3_is_made() -> None:
    assert services({}) == ["s3"]
    assert services({"network.extra_endpoints": ["bedrock"]}) == ["s3", "bedrock"]


def test_in_an_existing_vpc_nothing_is_made_unasked() -> None:
    closed = {"network.egress": "closed", "network.extra_endpoints": ["bedrock"]}
    assert services({**closed, "network.vpc": VPC}) == []
    asked = services({**closed, "network.vpc": {**VPC, "create_endpoints": True}})
    assert asked == [*services({}, made=False), "bedrock"]


def test_services_depend_on_what_the_nodes_use() -> None:
    plain = services({}, made=False)
    assert "fsx" not in plain
    assert "secretsmanager" not in plain
    with_efa = services({"storage.lustre.efa": True}, made=False)
    with_database = services({"storage.accounting_database": DATABASE}, made=False)
    assert set(with_efa) - set(plain) == {"fsx"}
    assert set(with_database) - set(plain) == {"secretsmanager"}


@pytest.mark.slow
def test_endpoints_are_services_that_cdk_knows() -> None:
    from aws_cdk import aws_ec2 as ec2

    file = Path(ultracluster.__path__[0], "catalog", "endpoints.json")
    rows = json.loads(file.read_text(encoding="utf-8"))
    known = ec2.InterfaceVpcEndpointAwsService
    names = {getattr(known, name).short_name for name in dir(known) if name.isupper()}
    interfaces = {row["service"] for row in rows["endpoints"] if row["kind"] == "interface"}
    assert interfaces <= names
    assert {row["service"] for row in rows["left_out"]}.isdisjoint(interfaces)
    assert all(row["reason"] and row["source"] for row in rows["endpoints"] + rows["left_out"])
    assert len({(row["service"], row["when"]) for row in rows["endpoints"]}) == len(rows["endpoints"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_closed_network_has_one_endpoint_for_each_service(name: str) -> None:
    found = [
        one.service
        for one in closed_endpoints(resolve(load(ROOT / "environments" / f"{name}.yaml").environment))
    ]
    assert len(found) == len(set(found)) > 5
