"""What exists already - network, storage, roles - against what the file takes it for."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from hyperpod_service import refusal
from preflight_account import OWNER, World, ask, furnish, rows_of, shipped

from ultracluster.account.preflight import network, roles, storage
from ultracluster.config import Environment
from ultracluster.config.network import ExistingSecurityGroup, ExistingSubnet, ExistingVpc, FurtherZone
from ultracluster.config.pcs import Pcs
from ultracluster.config.storage import (
    ExistingBucket,
    ExistingDatabase,
    ExistingKey,
    ExistingLustre,
    ExistingOpenZfs,
)

pytestmark = pytest.mark.usefixtures("aws_account")

REGION = "us-west-2"
FS = "fs-0123456789abcdef0"


class Made:
    """A VPC with one subnet and a security group, in moto."""

    def __init__(self, zone_name: str = "us-west-2a", cidr: str = "10.0.0.0/17") -> None:
        self.ec2 = boto3.client("ec2", REGION)
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=zone_name)["Subnet"]
        self.subnet = subnet["SubnetId"]
        group = self.ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.vpc)
        self.group = group["GroupId"]
        self.to_itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}]

    def environment(self, *, cidr: str = "10.0.0.0/17", **more: Any) -> Environment:
        made = shipped("dev")
        changes = {
            "vpc": ExistingVpc(id=self.vpc, cidr="10.0.0.0/16"),
            "subnet": ExistingSubnet(id=self.subnet, cidr=cidr),
            "security_group": ExistingSecurityGroup(id=self.group),
            **more,
        }
        return made.model_copy(update={"network": made.network.model_copy(update=changes)})


def test_a_network_that_fits() -> None:
    made = Made()
    made.ec2.authorize_security_group_ingress(GroupId=made.group, IpPermissions=made.to_itself)
    made.ec2.authorize_security_group_egress(GroupId=made.group, IpPermissions=made.to_itself)
    made.ec2.modify_vpc_attribute(VpcId=made.vpc, EnableDnsHostnames={"Value": True})
    rows = ask(network, World(made.environment()))
    assert {row.level for row in rows.values()} == {"green"}, rows
    assert "32763 free" in rows[f"subnet {made.subnet} addresses"].found


@pytest.mark.parametrize("missing", ["ingress", "egress"])
def test_efa_wants_both_self_rules(missing: str) -> None:
    made = Made()
    if missing == "egress":
        made.ec2.authorize_security_group_ingress(GroupId=made.group, IpPermissions=made.to_itself)
    else:
        made.ec2.authorize_security_group_egress(GroupId=made.group, IpPermissions=made.to_itself)
    rows = ask(network, World(made.environment()))
    row = rows[f"security group {made.group} self {missing}"]
    assert row.level == "red" and f"authorize-security-group-{missing}" in row.do
    other = "egress" if missing == "ingress" else "ingress"
    # all traffic to 0.0.0.0/0, which every new group has, does not count
    assert rows[f"security group {made.group} self {other}"].level == "green"


def test_wrong_zone_cidr_and_dns() -> None:
    made = Made(zone_name="us-west-2b", cidr="10.0.0.0/28")
    made.ec2.modify_vpc_attribute(VpcId=made.vpc, EnableDnsSupport={"Value": False})
    made.ec2.modify_subnet_attribute(SubnetId=made.subnet, MapPublicIpOnLaunch={"Value": True})
    environment = made.environment(vpc=ExistingVpc(id=made.vpc, cidr="10.1.0.0/16"))
    rows = rows_of(network, World(environment))
    text = [f"{row.level} {row.what} {row.found} {row.do}" for row in rows]
    for wanted in (
        "is in usw2-az1",
        "has 10.0.0.0/28",
        "gives public addresses",
        "the file says 10.1.0.0/16",
    ):
        assert any(wanted in line and line.startswith("red") for line in text), wanted
    assert any("enableDnsSupport" in line and line.startswith("red") for line in text)
    addresses = next(row for row in rows if row.what.endswith("addresses"))
    assert addresses.level in ("yellow", "red") or "11 free" in addresses.found


def test_a_subnet_in_a_further_zone_is_looked_at_as_that_of_the_nodes() -> None:
    made = Made()
    other = made.ec2.create_subnet(
        VpcId=made.vpc, CidrBlock="10.0.128.0/20", AvailabilityZone="us-west-2b"
    )["Subnet"]["SubnetId"]  # fmt: skip
    right = {"usw2-az1": FurtherZone(cidr="10.0.128.0/20", subnet_id=other)}
    assert ask(network, World(made.environment(further_zones=right)))[f"subnet {other}"].level == "green"
    wrong = {"usw2-az3": FurtherZone(cidr="10.0.128.0/20", subnet_id=other)}
    row = ask(network, World(made.environment(further_zones=wrong)))[f"subnet {other}"]
    assert row.level == "red" and "is in usw2-az1, not in usw2-az3" in row.found


def test_a_subnet_of_an_ipv6_cluster_is_dual_stack() -> None:
    made = Made()
    environment = made.environment()
    six = environment.model_copy(update={"orchestrator": Pcs(kind="pcs", network_type="ipv6")})
    what = f"subnet {made.subnet}"

    def said() -> set[str]:
        return {row.found for row in rows_of(network, World(six)) if row.what == what and row.level == "red"}

    assert said() == {"has no IPv6 block", "assigns no IPv6 addresses"}
    made.ec2.modify_subnet_attribute(SubnetId=made.subnet, AssignIpv6AddressOnCreation={"Value": True})
    assert said() == {"has no IPv6 block"}


def test_a_subnet_without_room() -> None:
    made = Made(cidr="10.0.0.0/28")
    environment = made.environment(cidr="10.0.0.0/28")
    groups = {
        name: group.model_copy(update={"count": 100}) if group.role == "compute" else group
        for name, group in environment.node_groups.items()
    }
    rows = ask(network, World(environment.model_copy(update={"node_groups": groups})))
    row = rows[f"subnet {made.subnet} addresses"]
    assert row.level == "red" and row.found.startswith("11 free")


@pytest.mark.parametrize("field", ["vpc", "subnet", "security_group"])
def test_what_is_not_there_is_red(field: str) -> None:
    made = Made()
    absent: dict[str, Any] = {
        "vpc": ExistingVpc(id="vpc-0123456789abcdef0", cidr="10.0.0.0/16"),
        "subnet": ExistingSubnet(id="subnet-0123456789abcdef0", cidr="10.0.0.0/17"),
        "security_group": ExistingSecurityGroup(id="sg-0123456789abcdef0"),
    }
    rows = ask(network, World(made.environment(**{field: absent[field]})))
    reds = [row for what, row in rows.items() if absent[field].id in what]
    assert [row.level for row in reds] == ["red"] and "NotFound" in reds[0].found


def test_a_closed_network_lists_missing_endpoints() -> None:
    made = Made()
    made.ec2.create_vpc_endpoint(
        VpcId=made.vpc, ServiceName=f"com.amazonaws.{REGION}.logs", VpcEndpointType="Interface"
    )
    rows = ask(network, World(made.environment(egress="closed")))
    assert rows["endpoint ssm"].level == "red" and "com.amazonaws.us-west-2.ssm" in rows["endpoint ssm"].do
    assert "endpoint logs" not in rows


def test_a_nat_gateway_that_exists() -> None:
    made = Made()
    gateway = made.ec2.create_nat_gateway(SubnetId=made.subnet, ConnectivityType="private")["NatGateway"]
    vpc = ExistingVpc(id=made.vpc, cidr="10.0.0.0/16", nat_gateway_id=gateway["NatGatewayId"])
    assert ask(network, World(made.environment(vpc=vpc)))[gateway["NatGatewayId"]].level == "green"
    absent = ExistingVpc(id=made.vpc, cidr="10.0.0.0/16", nat_gateway_id="nat-0123456789abcdef0")
    world = World(made.environment(vpc=absent))
    world.refuse("ec2", "DescribeNatGateways", "NatGatewayNotFound", "no such gateway")
    assert ask(network, world)["nat-0123456789abcdef0"].level == "red"


def test_control_plane_subnets_are_in_two_zones() -> None:
    made = Made()
    second = made.ec2.create_subnet(VpcId=made.vpc, CidrBlock="10.0.128.0/24", AvailabilityZone="us-west-2b")
    other = second["Subnet"]["SubnetId"]
    base = shipped("eks-trn2")

    def environment(*ids: str) -> Environment:
        orchestrator = base.orchestrator.model_copy(update={"control_plane_subnet_ids": ids})
        return made.environment().model_copy(update={"orchestrator": orchestrator})

    what = "subnets of the control plane"
    assert ask(network, World(environment(made.subnet, other)))[what].level == "green"
    assert "are all in" in ask(network, World(environment(made.subnet)))[what].found
    assert ask(network, World(environment(made.subnet, "subnet-0123456789abcdef0")))[what].level == "red"


def file_system(made: Made, **changes: Any) -> dict[str, Any]:
    return {
        "FileSystemId": FS,
        "Lifecycle": "AVAILABLE",
        "FileSystemType": "LUSTRE",
        "VpcId": made.vpc,
        "SubnetIds": [made.subnet],
        "DNSName": f"{FS}.fsx.us-west-2.amazonaws.com",
        "LustreConfiguration": {"MountName": "abcdefgh", "EfaEnabled": True},
        **changes,
    }


def with_lustre(made: Made, **changes: Any) -> Environment:
    lustre = ExistingLustre(
        deployment="existing",
        id=FS,
        dns_name=f"{FS}.fsx.us-west-2.amazonaws.com",
        mount_name="abcdefgh",
        security_group_id=made.group,
        efa=True,
    ).model_copy(update=changes)
    environment = made.environment()
    return environment.model_copy(
        update={"storage": environment.storage.model_copy(update={"lustre": lustre})}
    )


def test_a_lustre_file_system_that_fits() -> None:
    made = Made()
    world = World(with_lustre(made))
    world.file_systems = [file_system(made)]
    rows = ask(storage, world)
    assert {row.level for row in rows.values()} == {"green"}, rows
    assert ask(network, world)["security group of Lustre"].level == "green"


@pytest.mark.parametrize(
    ("changes", "what", "level", "says"),
    [
        ({"Lifecycle": "CREATING"}, "", "yellow", "is CREATING"),
        ({"Lifecycle": "FAILED"}, "", "red", "is FAILED"),
        ({"Lifecycle": "PONDERING"}, "", "unknown", "is PONDERING"),
        ({"LustreConfiguration": {"MountName": "zzz", "EfaEnabled": True}}, " mount_name", "red", "is zzz"),
        ({"LustreConfiguration": {"MountName": "abcdefgh"}}, " efa", "red", "is false, the file says True"),
        ({"VpcId": "vpc-0123456789abcdef0"}, " VPC", "red", "is in vpc-0123456789abcdef0"),
    ],
)
def test_a_lustre_file_system_that_does_not(
    changes: dict[str, Any], what: str, level: str, says: str
) -> None:
    made = Made()
    world = World(with_lustre(made))
    world.file_systems = [file_system(made, **changes)]
    row = ask(storage, world)[f"Lustre {FS}{what}"]
    assert row.level == level and says in row.found


def test_a_file_system_in_another_zone_and_network() -> None:
    made = Made()
    made.ec2.associate_vpc_cidr_block(VpcId=made.vpc, CidrBlock="10.7.0.0/16")
    far = made.ec2.create_subnet(VpcId=made.vpc, CidrBlock="10.7.0.0/24", AvailabilityZone="us-west-2b")
    world = World(with_lustre(made))
    world.file_systems = [file_system(made, SubnetIds=[far["Subnet"]["SubnetId"]])]
    rows = ask(storage, world)
    assert rows[f"Lustre {FS} zone"].level == "red" and rows[f"Lustre {FS} network"].level == "red"


def test_a_file_system_that_is_gone() -> None:
    made = Made()
    assert ask(storage, World(with_lustre(made)))[f"Lustre {FS}"].level == "red"


def test_an_openzfs_volume() -> None:
    made = Made()
    volume = "fsvol-0123456789abcdef0"
    openzfs = ExistingOpenZfs(
        deployment="existing", id=FS, dns_name=f"{FS}.fsx.us-west-2.amazonaws.com", volume_id=volume,
        security_group_id=made.group,
    )  # fmt: skip
    environment = made.environment()
    world = World(
        environment.model_copy(
            update={"storage": environment.storage.model_copy(update={"openzfs": openzfs})}
        )
    )
    world.file_systems = [
        file_system(
            made, FileSystemType="OPENZFS", OpenZFSConfiguration={"RootVolumeId": "fsvol-0123456789abcdef1"}
        )
    ]
    assert ask(storage, world)[f"OpenZFS {FS} volume_id"].level == "red"


@pytest.mark.parametrize(
    ("answer", "level", "says"),
    [
        (REGION, "green", "lifecycle scripts"),
        ("eu-west-1", "red", "is in eu-west-1"),
        (404, "red", "does not exist"),
        (403, "unknown", "s3:ListBucket"),
        (301, "red", "another Region"),
        (500, "unknown", "failed"),
    ],
)
def test_buckets(answer: str | int, level: str, says: str) -> None:
    environment = shipped("dev")
    scripts = environment.storage.model_copy(
        update={"scripts_bucket": ExistingBucket(name="example-scripts")}
    )
    world = World(environment.model_copy(update={"storage": scripts}))
    world.buckets = {"example-scripts": answer}
    row = ask(storage, world)["bucket example-scripts"]
    assert row.level == level and says in row.found


DENY = {"Sid": "OnlyUs", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}
TLS = {**DENY, "Sid": "Tls", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}


@pytest.mark.parametrize(
    ("statements", "key", "levels"),
    [
        ([], "", {"policy": "green"}),
        ([TLS], "", {"policy": "green"}),
        ([TLS, DENY], "", {"policy": "yellow"}),
        ([], "arn:aws:kms:us-east-2:111122223333:key/a", {"policy": "green", "key": "yellow"}),
    ],
)
def test_whether_a_linked_bucket_lets_fsx_in(
    statements: list[dict[str, Any]], key: str, levels: dict[str, str]
) -> None:
    environment = shipped("prod")
    (bucket,) = {
        repository.bucket for repository in environment.data_repositories.values() if repository.bucket
    }
    s3 = boto3.client("s3", environment.region)
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": environment.region})
    if statements:
        s3.put_bucket_policy(
            Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements})
        )
    if key:
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})

    rows = ask(storage, World(environment))

    assert {
        part: rows[f"bucket {bucket} {part}"].level for part in ("policy", "key")
        if f"bucket {bucket} {part}" in rows
    } == levels  # fmt: skip
    if "OnlyUs" in str(statements):
        assert "OnlyUs" in rows[f"bucket {bucket} policy"].found


def test_a_bucket_that_cannot_be_looked_into_says_so() -> None:
    environment = shipped("prod")
    (bucket,) = {
        repository.bucket for repository in environment.data_repositories.values() if repository.bucket
    }
    world = World(environment)
    world.refuse("s3", "GetBucketPolicy", "AccessDenied", "not authorized")
    assert ask(storage, world)[f"bucket {bucket} and FSx"].level == "unknown"


def test_keys_and_secrets() -> None:
    kms = boto3.client("kms", REGION)
    key = kms.create_key()["KeyMetadata"]
    secret = boto3.client("secretsmanager", REGION).create_secret(Name="slurm", SecretString="{}")
    environment = shipped("dev")
    changes = {
        "key": ExistingKey(arn=key["Arn"]),
        "accounting_database": ExistingDatabase(
            kind="existing",
            endpoint="db.example.com",
            secret_arn=secret["ARN"],
            security_group_id="sg-00000001",
        ),
    }
    world = World(environment.model_copy(update={"storage": environment.storage.model_copy(update=changes)}))
    assert ask(storage, world)["key of storage.key"].level == "green"
    assert ask(storage, world)["secret of the database"].level == "green"
    kms.disable_key(KeyId=key["KeyId"])
    assert "is Disabled" in ask(storage, world)["key of storage.key"].found
    boto3.client("secretsmanager", REGION).delete_secret(SecretId=secret["ARN"])
    assert ask(storage, world)["secret of the database"].level == "red"


def test_roles_that_the_file_names() -> None:
    environment = shipped("eks-trn2")
    arns = (f"arn:aws:iam::{OWNER}:role/people/operator", f"arn:aws:iam::{OWNER}:user/gone")
    orchestrator = environment.orchestrator.model_copy(update={"admins": arns})
    world = World(environment.model_copy(update={"orchestrator": orchestrator}))
    furnish(world)
    rows = ask(roles, world)
    assert rows[arns[0]].level == "green" and rows[arns[1]].level == "red"
    world.refused["iam", "GetUser"] = refusal("AccessDenied", "", "GetUser")
    world.refuse("iam", "GetUser", "AccessDenied")
    assert rows[arns[0]].level == "green" and ask(roles, world)[arns[1]].level == "unknown"
