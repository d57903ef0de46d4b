"""Existing or made: every part of an environment can be one that is there already."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly

from ultracluster.rules import check

VPC = {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}
SUBNET = {"id": "subnet-0123456789abcdef0", "cidr": "10.0.0.0/18"}
GROUP = {"id": "sg-0123456789abcdef0"}
NETWORK = {"zone_id": "usw2-az2", "vpc": VPC, "subnet": SUBNET, "security_group": GROUP}
KEY = {"arn": "arn:aws:kms:us-west-2:111122223333:key/12345678-1234-1234-1234-123456789012"}
LUSTRE = {
    "deployment": "existing",
    "id": "fs-0123456789abcdef0",
    "dns_name": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    "mount_name": "abcdefgh",
    "security_group_id": "sg-0fedcba9876543210",
    "efa": True,
}
STORAGE = {"key": KEY, "scripts_bucket": {"name": "sagemaker-scripts-example"}, "lustre": LUSTRE}


def made(changes: dict[str, Any]) -> Synthesised:
    one = loaded(changed(environment_data("dev"), changes))
    assert not [finding for finding in check(one) if finding.blocks]
    result = assembly(one.environment)
    assert result.findings == set()
    return result


def test_a_network_that_exists_as_a_whole_has_no_stack() -> None:
    result = made({"network": NETWORK})

    assert set(result.templates) == {"dev-foundation", "dev-buckets", "dev-storage", "dev-cluster"}
    assert not result.resources("AWS::EC2::VPC")
    (cluster,) = result.resources("AWS::SageMaker::Cluster").values()
    assert cluster["Properties"]["VpcConfig"] == {
        "SecurityGroupIds": [GROUP["id"]],
        "Subnets": [SUBNET["id"]],
    }


def test_two_clusters_share_one_network_and_one_storage() -> None:
    result = made({"name": "second", "network": NETWORK, "storage": STORAGE})

    assert set(result.templates) == {"second-cluster"}
    admitted = [
        (rule["Properties"]["SourceSecurityGroupId"], rule["Properties"]["GroupId"])
        for rule in result.resources("AWS::EC2::SecurityGroupIngress").values()
    ]
    assert (GROUP["id"], LUSTRE["security_group_id"]) in admitted
    assert not result.resources("AWS::FSx::FileSystem")


def test_a_subnet_in_a_vpc_that_exists_goes_out_through_its_nat_gateway() -> None:
    network = {"zone_id": "usw2-az2", "vpc": VPC | {"nat_gateway_id": "nat-0123456789abcdef0"}}

    result = made({"network": network})

    (route,) = result.resources("AWS::EC2::Route").values()
    assert route["Properties"]["NatGatewayId"] == "nat-0123456789abcdef0"
    assert not result.resources("AWS::EC2::NatGateway")
    assert not result.resources("AWS::EC2::VPCEndpoint")


def test_endpoints_are_added_to_a_vpc_that_exists_when_asked() -> None:
    network = {"zone_id": "usw2-az2", "egress": "closed", "vpc": VPC | {"create_endpoints": True}}

    result = made({"network": network})
    services = {
        endpoint["Properties"]["ServiceName"].rpartition("us-west-2.")[2]
        for endpoint in result.resources("AWS::EC2::VPCEndpoint").values()
    }

    assert {"s3", "ssm", "ssmmessages", "logs", "ecr.api", "sts"} <= services


def test_closed_egress_has_no_way_to_the_internet() -> None:
    result = made({"network.egress": "closed"})

    assert not result.resources("AWS::EC2::InternetGateway")
    assert not result.resources("AWS::EC2::NatGateway")
    assert not result.resources("AWS::EC2::Route")
    assert not result.resources("AWS::EC2::EIP")


@pytest.mark.parametrize("part", ["key", "scripts_bucket", "log_bucket"])
def test_one_existing_part_of_the_storage(part: str) -> None:
    existing = KEY if part == "key" else {"name": "sagemaker-something"}

    result = made({f"storage.{part}": existing})

    buckets = {path.split("/")[1].rstrip("0123456789ABCDEF") for path in result.resources("AWS::S3::Bucket")}
    keys = result.resources("AWS::KMS::Key")
    assert ("Scripts" not in buckets) == (part == "scripts_bucket")
    assert (not keys) == (part == "key")


def test_an_accounting_database_that_exists_admits_the_nodes() -> None:
    database = {
        "kind": "existing",
        "endpoint": "slurm.example.com",
        "port": 3307,
        "secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf",
        "security_group_id": "sg-0fedcba9876543210",
    }

    result = made({"storage.accounting_database": database})

    ports = {
        rule["Properties"].get("FromPort")
        for path, rule in result.resources("AWS::EC2::SecurityGroupIngress").items()
        if path.startswith("dev-cluster")
    }
    (cluster,) = result.resources("AWS::SageMaker::Cluster").values()
    assert ports == {3307}
    assert cluster["Properties"]["Orchestrator"]["Slurm"]["AccountingDatabase"]["Port"] == 3307
    assert not result.resources("AWS::RDS::DBInstance")


def test_a_database_in_a_vpc_that_exists_uses_its_subnets() -> None:
    two = ["subnet-0aaaaaaaaaaaaaaa1", "subnet-0aaaaaaaaaaaaaaa2"]

    result = made(
        {"network": NETWORK, "storage.accounting_database": {"kind": "rds-mysql", "subnet_ids": two}},
    )

    (group,) = result.resources("AWS::RDS::DBSubnetGroup").values()
    assert group["Properties"]["SubnetIds"] == two


def test_every_export_is_there_and_every_import_finds_it() -> None:
    """Named exports: the CDK does not check them."""
    result = made({"storage.accounting_database": {"kind": "rds-mysql", "second_zone_id": "usw2-az1"}})
    exported = {
        output["Export"]["Name"]
        for template in result.templates.values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }

    assert imports(result.templates) <= exported


def test_root_squash_is_set_by_a_call() -> None:
    squash = {"uid": 65534, "gid": 65534, "exempt_clients": ["10.0.1.6@tcp"]}

    result = made({"storage.lustre.root_squash": squash})

    calls = result.resources("Custom::AWS").values()
    (call,) = [one for one in calls if "updateFileSystem" in str(one["Properties"]["Create"])]
    assert '"RootSquash":"65534:65534"' in str(call["Properties"]["Create"])
    assert "updateFileSystem" in str(call["Properties"]["Update"])


def test_root_squash_of_homes_is_set_by_a_call() -> None:
    home = {"deployment": "single-az-2", "capacity_gib": 512, "throughput_mbps": 160, "root_squash": {}}

    result = made({"storage.openzfs": home})

    calls = result.resources("Custom::AWS").values()
    (call,) = [one for one in calls if "revokeSecurityGroup" not in str(one["Properties"]["Create"])]
    assert "updateVolume" in str(call["Properties"]["Create"])
    assert '"root_squash"' in str(call["Properties"]["Create"])
    (policy,) = [
        statement
        for one in result.resources("AWS::IAM::Policy").values()
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "fsx:UpdateVolume"
    ]
    assert ":volume/" in str(policy["Resource"])


def imports(value: object) -> set[str]:
    """Every name below `Fn::ImportValue`."""
    if isinstance(value, dict):
        own = {value["Fn::ImportValue"]} if "Fn::ImportValue" in value else set()
        return own.union(*(imports(part) for part in value.values()))
    if isinstance(value, list):
        return set().union(*(imports(part) for part in value))
    return set()
