"""Templates of AWS's own samples deploy; each of ten changes that AWS refuses is refused.

What the samples contain (awslabs/awsome-distributed-training, read 2026-11-28), written down here as facts:
`1.architectures/5.sagemaker-hyperpod/sagemaker-hyperpod.yaml` at commit 01478e0f (Apache-2.0) and
`1.architectures/1.vpc_network/2.vpc-one-az.yaml` at commit 37c05727 (MIT-0).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from emulated_account.running import Account

pytestmark = pytest.mark.slow
Template = dict[str, Any]
VPC, GROUP = {"Ref": "VPC"}, {"Ref": "SecurityGroup"}
BOUNDS = {"Networking": {"VPC": {"CIDR0": "10.0.0.0/16", "CIDR1": "10.1.0.0/16"}}}


def bound(name: str) -> Template:
    return {"Fn::FindInMap": ["Networking", "VPC", name]}


def of(kind: str, needs: str = "", **properties: Any) -> Template:
    return {"Type": f"AWS::{kind}", "Properties": properties} | ({"DependsOn": needs} if needs else {})


def trust(service: str) -> Template:
    allow = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [allow]}


def network(zone: Template) -> Template:
    """What both samples have: two ranges, two subnets, NAT, flow logs, an endpoint, rules for EFA."""
    blocks = [{"Fn::GetAtt": ["VPC", "CidrBlock"]}, bound("CIDR1")]
    subnets = [{"Fn::Select": [0, {"Fn::Cidr": [block, 2, 15]}]} for block in blocks]
    everything = {"IpProtocol": -1, "FromPort": -1, "ToPort": -1, "GroupId": GROUP}
    statement = {"Effect": "Allow", "Principal": "*", "Action": ["*"], "Resource": ["*"]}
    service = {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]}
    log_rights = {
        "Effect": "Allow",
        "Action": ["logs:PutLogEvents"],
        "Resource": {"Fn::GetAtt": ["Flows", "Arn"]},
    }
    return {
        "VPC": of("EC2::VPC", EnableDnsSupport=True, EnableDnsHostnames=True, CidrBlock=bound("CIDR0")),
        "Second": of("EC2::VPCCidrBlock", "VPC", VpcId=VPC, CidrBlock=bound("CIDR1")),
        "Flows": of("Logs::LogGroup", RetentionInDays=7),
        "FlowRole": of(
            "IAM::Role",
            AssumeRolePolicyDocument=trust("vpc-flow-logs.amazonaws.com"),
            Policies=[
                {
                    "PolicyName": "flows",
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": [log_rights]},
                }
            ],
        ),
        "Gateway": of("EC2::InternetGateway"),
        "Attachment": of("EC2::VPCGatewayAttachment", VpcId=VPC, InternetGatewayId={"Ref": "Gateway"}),
        "Nat": of(
            "EC2::NatGateway",
            AllocationId={"Fn::GetAtt": ["Address", "AllocationId"]},
            SubnetId={"Ref": "Public"},
        ),
        "Address": of("EC2::EIP", Domain="vpc"),
        "SecurityGroup": of("EC2::SecurityGroup", GroupDescription="EFA", VpcId=VPC),
        "In": of("EC2::SecurityGroupIngress", **everything, SourceSecurityGroupId=GROUP),
        "Out": of("EC2::SecurityGroupEgress", **everything, DestinationSecurityGroupId=GROUP),
        "OutToAll": of("EC2::SecurityGroupEgress", **everything, CidrIp="0.0.0.0/0"),
        "Public": of("EC2::Subnet", "VPC", MapPublicIpOnLaunch=True, VpcId=VPC, CidrBlock=subnets[0], **zone),
        "Private": of("EC2::Subnet", "Second", VpcId=VPC, CidrBlock=subnets[1], **zone),
        "PublicTable": of("EC2::RouteTable", VpcId=VPC),
        "PublicRoute": of(
            "EC2::Route",
            RouteTableId={"Ref": "PublicTable"},
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId={"Ref": "Gateway"},
        ),
        "PrivateTable": of("EC2::RouteTable", VpcId=VPC),
        "PrivateRoute": of(
            "EC2::Route",
            RouteTableId={"Ref": "PrivateTable"},
            DestinationCidrBlock="0.0.0.0/0",
            NatGatewayId={"Ref": "Nat"},
        ),
        "PublicPlace": of(
            "EC2::SubnetRouteTableAssociation",
            SubnetId={"Ref": "Public"},
            RouteTableId={"Ref": "PublicTable"},
        ),
        "PrivatePlace": of(
            "EC2::SubnetRouteTableAssociation",
            SubnetId={"Ref": "Private"},
            RouteTableId={"Ref": "PrivateTable"},
        ),
        "Storage": of(
            "EC2::VPCEndpoint",
            PolicyDocument={"Version": "2012-10-17", "Statement": [statement]},
            RouteTableIds=[{"Ref": "PublicTable"}, {"Ref": "PrivateTable"}],
            ServiceName=service,
            VpcId=VPC,
        ),
    }


HYPERPOD: Template = network({"AvailabilityZoneId": "usw2-az2"}) | {
    "Lustre": of(
        "FSx::FileSystem",
        FileSystemType="LUSTRE",
        StorageType="SSD",
        FileSystemTypeVersion="2.15",
        StorageCapacity=1200,
        SecurityGroupIds=[GROUP],
        SubnetIds=[{"Ref": "Private"}],
        LustreConfiguration={
            "DataCompressionType": "LZ4",
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
        },
    ),
    "ClusterRole": of("IAM::Role", AssumeRolePolicyDocument=trust("sagemaker.amazonaws.com")),
    "Scripts": of("S3::Bucket") | {"DeletionPolicy": "Retain"},
}
ONE_ZONE: Template = network({"AvailabilityZone": "us-west-2b"})
OUTPUTS = {
    "Mount": {
        "Value": {"Fn::GetAtt": ["Lustre", "LustreMountName"]},
        "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-Mount"}},
    }
}


@pytest.mark.parametrize(("name", "resources"), [("hyperpod", HYPERPOD), ("one-zone", ONE_ZONE)])
def test_a_sample_deploys_and_is_deleted(aws: Account, name: str, resources: Template) -> None:
    outputs = OUTPUTS if "Lustre" in resources else {}
    assert not aws.create(name, resources, Mappings=BOUNDS, **({"Outputs": outputs} if outputs else {}))
    assert not aws.delete(name)
    assert not [one for one in aws.client("ec2").describe_vpcs()["Vpcs"] if not one["IsDefault"]]


def put(name: str, *path: str, value: Any) -> Callable[[Template], None]:
    def change(resources: Template) -> None:
        place = resources[name]["Properties"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(name: str, *keys: str) -> Callable[[Template], None]:
    def change(resources: Template) -> None:
        if not keys:
            del resources[name]
        for key in keys:
            del resources[name]["Properties"][key]

    return change


LUSTRE = "LustreConfiguration"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(put("Lustre", "StorageCapacity", value=1300), "StorageCapacity 1300", id="capacity"),
        pytest.param(
            put("Lustre", LUSTRE, "PerUnitStorageThroughput", value=333),
            "PerUnitStorageThroughput",
            id="throughput",
        ),
        pytest.param(put("Lustre", LUSTRE, "EfaEnabled", value=True), "MetadataConfiguration", id="efa"),
        pytest.param(put("Lustre", "FileSystemTypeVersion", value="2.10"), "2.12 or 2.15", id="version"),
        pytest.param(drop("In"), "port 988", id="no-self-rule"),
        pytest.param(put("Private", "CidrBlock", value="10.9.0.0/17"), "10.9.0.0/17", id="subnet-outside"),
        pytest.param(put("In", "CidrIp", value="10.0.0.0/8"), "Exactly one of", id="two-sources"),
        pytest.param(drop("PrivateTable", "VpcId"), "'VpcId' is a required property", id="no-network"),
        pytest.param(put("Nat", "AllocationId", value="eipalloc-0"), "eipalloc-0", id="no-address"),
        pytest.param(put("Lustre", "SubnetIds", value=[{"Ref": "Nowhere"}]), "Nowhere", id="reference"),
        pytest.param(put("VPC", "InstanceTenancy", value="own"), "InstanceTenancy", id="enumeration"),
        pytest.param(put("Scripts", "Encrypted", value=True), "Encrypted", id="unknown-property"),
    ],
)
def test_a_broken_sample_does_not_deploy(aws: Account, change: Callable[[Template], None], said: str) -> None:
    resources = copy.deepcopy(HYPERPOD)
    change(resources)
    refused = aws.create("broken", resources, Mappings=BOUNDS)
    aws.delete("broken")
    assert said in refused
    assert not [one for one in aws.client("ec2").describe_vpcs()["Vpcs"] if not one["IsDefault"]]
