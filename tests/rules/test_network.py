"""Rules on network and IP budget, each broken and mended; the endpoints that they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from rules_table import Case, found, table_tests

import ultracluster
from ultracluster.config import load
from ultracluster.model import resolve
from ultracluster.model.endpoints import closed_endpoints, made_endpoints
from ultracluster.rules.sets import NET

VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}
NAT = "nat-0123456789abcdef0"
SUBNET = {"id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}
GROUP = {"id": "sg-0123456789abcdef0"}
DATABASE = {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}
CLOSED = {"account": "111122223333", "network.egress": "closed"}
REGISTRY = "444455556666.dkr.ecr.us-west-2.amazonaws.com"
KEY = "arn:aws:kms:us-west-2:444455556666:key/0f5f4d9e-0000-4000-8000-000000000000"

CASES = [
    Case(
        "NET001",
        {"network.vpc": {**VPC, "cidr": "10.20.0.0/29", "nat_gateway_id": NAT}},
        "network.vpc.cidr",
        "is a /29",
        "10.20.0.0/28",
        {"network.vpc": {**VPC, "cidr": "10.20.0.0/28", "nat_gateway_id": NAT}},
    ),
    Case(
        "NET002",
        {"network.node_cidr": "10.0.0.0/29"},
        "network.node_cidr",
        "is a /29",
        "10.0.0.0/28",
        {"network.node_cidr": "10.0.0.0/28"},
    ),
    Case(
        "NET003",
        {"network.cidr": "10.0.0.0/20", "network.node_cidr": "10.0.0.0/16"},
        "network.node_cidr",
        "holds the VPC's 10.0.0.0/20; blocks of a VPC must not overlap",
        "10.0.0.0/21 or 10.1.0.0/16",
        {"network.cidr": "10.0.0.0/20", "network.node_cidr": "10.1.0.0/16"},
    ),
    Case(
        "NET032",
        {"network.node_cidr": "172.20.0.0/16"},
        "network.node_cidr",
        "no block of 172.16.0.0/12 may be added to a VPC of 10.0.0.0/16",
        "10.1.0.0/16",
        {"network.node_cidr": "100.64.0.0/16"},
    ),
    Case(
        "NET032",
        {"network.cidr": "10.1.0.0/16", "network.node_cidr": "10.0.0.0/17"},
        "network.node_cidr",
        "no block of 10.0.0.0/16 may be added",
        "10.2.0.0/17",
        {"network.cidr": "10.1.0.0/16", "network.node_cidr": "10.2.0.0/17"},
    ),
    Case(
        "NET032",
        {"network.cidr": "192.168.0.0/16", "network.node_cidr": "10.1.0.0/16"},
        "network.node_cidr",
        "no block of 10.0.0.0/8 may be added to a VPC of 192.168.0.0/16",
        "100.64.0.0/16",
        {"network.cidr": "192.168.0.0/16", "network.node_cidr": "100.64.0.0/16"},
    ),
    Case(
        "NET003",
        {"network.vpc": VPC, "network.subnet": {**SUBNET, "cidr": "10.30.0.0/20"}},
        "network.subnet.cidr",
        "not part of the VPC's 10.20.0.0/16",
        "network.vpc.cidr",
        {"network.subnet": SUBNET},
    ),
    Case(
        "NET004",
        {"network.cidr": "10.0.0.0/26", "storage.accounting_database": DATABASE},
        "network.cidr",
        "subnet of the accounting database (10.0.0.16/28",
        "cidr: 10.0.0.0/25",
        {"network.cidr": "10.0.0.0/25"},
    ),
    Case(
        "NET008",
        {"network.cidr": "127.0.0.0/16"},
        "network.cidr",
        "127.0.0.0/16 is loopback (RFC 1122)",
        "10.0.0.0/16",
        {"network.cidr": "198.18.0.0/16"},
    ),
    Case(
        "NET009",
        {"network.cidr": "172.18.0.0/16", "network.node_cidr": "172.17.0.0/16"},
        "network.node_cidr",
        "docker0",
        "172.19.0.0/16",
        {"network.cidr": "172.18.0.0/16", "network.node_cidr": "172.19.0.0/16"},
    ),
    Case(
        "NET009",
        {"network.vpc": {**VPC, "cidr": "172.17.0.0/20", "nat_gateway_id": NAT}},
        "network.vpc.cidr",
        "docker0",
        "`bip`",
        {"network.vpc": {**VPC, "nat_gateway_id": NAT}},
    ),
    Case(
        "NET010",
        {"network.security_group": GROUP},
        "network.security_group",
        GROUP["id"],
        "remove security_group",
        {"network.vpc": VPC},
    ),
    Case(
        "NET012",
        {"network.vpc": VPC},
        "network.vpc",
        "no NAT gateway is made",
        "nat_gateway_id",
        {"network.vpc": {**VPC, "nat_gateway_id": NAT}},
    ),
    Case(
        "NET013",
        {"network.vpc": {**VPC, "nat_gateway_id": NAT}, "network.subnet": SUBNET},
        "network.vpc.nat_gateway_id",
        "route table",
        "remove nat_gateway_id",
        {"network.vpc": VPC},
    ),
    Case(
        "NET014",
        {"network.vpc": VPC, "network.subnet": SUBNET, "network.flow_logs": {"traffic": "all"}},
        "network.flow_logs",
        "left as it is",
        "remove flow_logs",
        {"network.flow_logs": ...},
    ),
    Case(
        "NET023",
        {"network.extra_endpoints": ["com.amazonaws.us-west-2.bedrock"]},
        "network.extra_endpoints[0]",
        "prefix",
        "bedrock",
        {"network.extra_endpoints": ["bedrock"]},
    ),
    Case(
        "NET023",
        {"network.extra_endpoints": ["bedrock", "bedrock"]},
        "network.extra_endpoints[1]",
        "is given 2 times",
        "remove it",
        {"network.extra_endpoints": ["bedrock"]},
    ),
    Case(
        "NET023",
        {"network.egress": "closed", "network.extra_endpoints": ["ssm"]},
        "network.extra_endpoints[0]",
        "made already",
        "remove it",
        {"network.egress": "nat"},
    ),
    Case(
        "NET026",
        {"network.vpc": {**VPC, "nat_gateway_id": NAT}, "network.perimeter": {"readable_buckets": ["open"]}},
        "network.perimeter.readable_buckets",
        "no VPC endpoint is made",
        "remove readable_buckets",
        {"network.vpc": {**VPC, "nat_gateway_id": NAT, "create_endpoints": True}},
    ),
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
    Case(
        "NET028",
        {
            **CLOSED,
            "orchestrator": {"kind": "eks", "chart_repository": f"oci://{REGISTRY}/charts"},
        },
        "orchestrator.chart_repository",
        "a registry of account 444455556666",
        'accounts: ["444455556666"]',
        {"network.perimeter": {"organization": "o-a1b2c3d4e5"}},
    ),
    Case(
        "NET028",
        {
            **CLOSED,
            "network.perimeter": {"accounts": ["777788889999"]},
            "orchestrator": {"kind": "eks", "chart_values": {"kueue": {"image": f"{REGISTRY}/kueue:v1"}}},
        },
        "orchestrator.chart_values.kueue",
        "only this account's own",
        'accounts: ["777788889999", "444455556666"]',
        {"network.perimeter": {"accounts": ["444455556666"]}},
    ),
    Case(
        "NET029",
        {**CLOSED, "storage.key": {"arn": KEY}},
        "storage.key.arn",
        "it is of account 444455556666",
        'accounts: ["444455556666"]',
        {"account": ...},
    ),
    Case(
        "NET030",
        {**CLOSED, "network.extra_endpoints": ["sqs", "athena"]},
        "network.extra_endpoints[1]",
        "a policy for `athena`",
        "remove it",
        {"network.extra_endpoints": ["sqs"]},
    ),
    Case(
        "NET031",
        {"network.vpc": {**VPC, "endpoint_networks": ["10.30.0.0/24"], "create_endpoints": True}, **CLOSED},
        "network.vpc.endpoint_networks",
        "nodes reach their security group",
        "remove endpoint_networks",
        {"network.vpc": {**VPC, "endpoint_networks": ["10.30.0.0/24"]}},
    ),
    Case(
        "NET031",
        {
            "network.vpc": {**VPC, "endpoint_networks": ["10.30.0.0/24"]},
            "network.security_group": GROUP,
            **CLOSED,
        },
        "network.vpc.endpoint_networks",
        "its owner's",
        "remove endpoint_networks",
        {"network.security_group": ...},
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
