"""Each adapter refuses what AWS refuses: at least three documented refusals each.

Sources: the published schemas (cfn-lint) and botocore's models for shapes, enumerations and bounds; for the
rest, the guides of FSx for Lustre and HyperPod, and the API references of EC2 and Lambda (2026-11). Codes of
errors are Unverified.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from emulated_account.adapters import ADAPTERS
from emulated_account.running import Account

pytestmark = pytest.mark.slow
Own = dict[str, Any]


def exported(name: str) -> Own:
    return {"Fn::ImportValue": f"base-{name}"}


def trust(service: str) -> Own:
    allow = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [allow]}}


RULE = {"GroupId": {"Ref": "Group"}, "IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Group"}}
BASE = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/20"},
    },
    "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
    "Placed": {
        "Type": "AWS::EC2::SubnetRouteTableAssociation",
        "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
    },
    "Group": {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {"GroupDescription": "nodes", "VpcId": {"Ref": "Vpc"}},
    },
    "Rule": {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": RULE},
    "Closed": {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {"GroupDescription": "closed", "VpcId": {"Ref": "Vpc"}},
    },
    "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "base-scripts"}},
    "NodeRole": {"Type": "AWS::IAM::Role", "Properties": trust("sagemaker.amazonaws.com")},
    "FunctionRole": {"Type": "AWS::IAM::Role", "Properties": trust("lambda.amazonaws.com")},
    "Lustre": {
        "Type": "AWS::FSx::FileSystem",
        "DependsOn": "Rule",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": [{"Ref": "Subnet"}],
            "SecurityGroupIds": [{"Ref": "Group"}],
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        },
    },
    "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "base"}},
    "Topic": {"Type": "AWS::SNS::Topic", "Properties": {}},
    "Secret": {"Type": "AWS::SecretsManager::Secret", "Properties": {"GenerateSecretString": {}}},
    "Workspace": {"Type": "AWS::APS::Workspace", "Properties": {"Alias": "base"}},
    "Pcs": {
        "Type": "AWS::PCS::Cluster",
        "Properties": {
            "Name": "base",
            "Size": "SMALL",
            "Scheduler": {"Type": "SLURM", "Version": "25.05"},
            "Networking": {"SubnetIds": [{"Ref": "Subnet"}], "SecurityGroupIds": [{"Ref": "Group"}]},
        },
    },
}
ATTRIBUTES = {"NodeRole": "Arn", "FunctionRole": "Arn", "Workspace": "Arn", "Pcs": "Id"}
LUSTRE = {
    "FileSystemType": "LUSTRE",
    "StorageCapacity": 1200,
    "SubnetIds": [exported("Subnet")],
    "SecurityGroupIds": [exported("Group")],
    "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
}
SCRIPTS = {"SourceS3Uri": "s3://base-scripts/v1", "OnCreate": "start.sh"}


def group(name: str, node_type: str, *partitions: str) -> Own:
    slurm = {"NodeType": node_type} | ({"PartitionNames": list(partitions)} if partitions else {})
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.m5.large",
        "InstanceCount": 1,
        "ExecutionRole": exported("NodeRole"),
        "LifeCycleConfig": SCRIPTS,
        "SlurmConfig": slurm,
    }


HYPERPOD = {
    "ClusterName": "small",
    "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Managed"}},
    "InstanceGroups": [group("head", "Controller"), group("work", "Compute", "train")],
    "VpcConfig": {"Subnets": [exported("Subnet")], "SecurityGroupIds": [exported("Group")]},
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": "arn:aws:s3:::base-scripts/*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ],
}
FUNCTION = {
    "Code": {"ZipFile": "def handler(event, context): pass"},
    "Handler": "index.handler",
    "Runtime": "python3.13",
    "Role": exported("FunctionRole"),
}
EGRESS = {
    "GroupId": exported("Closed"),
    "IpProtocol": "tcp",
    "FromPort": 443,
    "ToPort": 443,
    "CidrIp": "10.0.0.0/8",
}
PCS = {
    "Name": "other",
    "Size": "SMALL",
    "Scheduler": {"Type": "SLURM", "Version": "25.05"},
    "Networking": {"SubnetIds": [exported("Subnet")], "SecurityGroupIds": [exported("Group")]},
}
NODES = {
    "Name": "nodes",
    "ClusterId": exported("Pcs"),
    "SubnetIds": [exported("Subnet")],
    "IamInstanceProfileArn": "arn:aws:iam::123456789012:instance-profile/AWSPCS-nodes",
    "CustomLaunchTemplate": {"TemplateId": "lt-0123456789abcdef0", "Version": "1"},
    "InstanceConfigs": [{"InstanceType": "m5.large"}],
    "ScalingConfiguration": {"MinInstanceCount": 1, "MaxInstanceCount": 1},
}
# Per type: properties that work, or none where a reference that cannot exist here is in them.
GOOD: dict[str, Own] = {
    "AWS::FSx::FileSystem": LUSTRE,
    "AWS::SageMaker::Cluster": HYPERPOD,
    "AWS::S3::BucketPolicy": {"Bucket": "base-scripts", "PolicyDocument": POLICY},
    "AWS::EC2::SecurityGroupIngress": EGRESS,
    "AWS::EC2::SecurityGroupEgress": EGRESS,
    "AWS::EC2::RouteTable": {"VpcId": exported("Vpc")},
    "AWS::KMS::Key": {"KeyPolicy": {}, "EnableKeyRotation": True},
    "AWS::Lambda::Function": FUNCTION,
    "AWS::SNS::Subscription": {
        "TopicArn": exported("Topic"),
        "Protocol": "email",
        "Endpoint": "a@example.com",
    },
    "AWS::FSx::DataRepositoryAssociation": {
        "FileSystemId": exported("Lustre"),
        "FileSystemPath": "/data",
        "DataRepositoryPath": "s3://base-scripts/data",
    },
    "AWS::PCS::Cluster": PCS,
    "AWS::Logs::DeliverySource": {
        "Name": "source",
        "LogType": "PCS_SCHEDULER_LOGS",
        "ResourceArn": "arn:aws:pcs:us-west-2:123456789012:cluster/a",
    },
    "AWS::SSM::Parameter": {"Name": "/one", "Type": "String", "Value": "1", "Tags": {"a": "b"}},
    "AWS::PCS::Queue": {"ClusterId": exported("Pcs"), "Name": "train"},
    "AWS::APS::RuleGroupsNamespace": {
        "Workspace": exported("Workspace"),
        "Name": "rules",
        "Data": "groups: []",
    },
}
# The type, the path of the property that changes, its value (`...` removes it), and a part of the refusal.
REFUSED: list[tuple[str, str, Any, str]] = [
    ("AWS::FSx::FileSystem", "StorageCapacity", 5000, "StorageCapacity 5000"),
    ("AWS::FSx::FileSystem", "LustreConfiguration.PerUnitStorageThroughput", 333, "PerUnitStorageThroughput"),
    ("AWS::FSx::FileSystem", "SecurityGroupIds", [exported("Closed")], "port 988"),
    ("AWS::FSx::FileSystem", "LustreConfiguration.EfaEnabled", True, "MetadataConfiguration"),
    ("AWS::FSx::FileSystem", "SubnetIds", ["subnet-0123456789abcdef0"], "subnet-0123456789abcdef0"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.1.SlurmConfig", {"NodeType": "Controller"}, "exactly one"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.1.SlurmConfig", {"NodeType": "Compute"}, "one partition"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.0.SlurmConfig.PartitionNames", ["a"], "Compute node types"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.0.LifeCycleConfig.OnCreate", "none.sh", "none.sh"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.0.ExecutionRole", exported("FunctionRole"), "cannot assume"),
    ("AWS::SageMaker::Cluster", "InstanceGroups.1.InstanceGroupName", "head", "unique"),
    (
        "AWS::S3::BucketPolicy",
        "PolicyDocument.Statement.0.Principal",
        ...,
        "Missing required field Principal",
    ),
    (
        "AWS::S3::BucketPolicy",
        "PolicyDocument.Statement.0.Resource",
        "arn:aws:s3:::other",
        "invalid resource",
    ),
    ("AWS::S3::BucketPolicy", "PolicyDocument.Statement.0.Effect", "Forbid", "Invalid effect"),
    ("AWS::EC2::SecurityGroupIngress", "SourceSecurityGroupId", exported("Group"), "Exactly one of"),
    ("AWS::EC2::SecurityGroupIngress", "FromPort", ..., "portRange"),
    ("AWS::EC2::SecurityGroupIngress", "GroupId", "sg-0123456789abcdef0", "sg-0123456789abcdef0"),
    ("AWS::EC2::SecurityGroupEgress", "DestinationSecurityGroupId", exported("Group"), "Exactly one of"),
    ("AWS::EC2::SecurityGroupEgress", "ToPort", 80, "portRange"),
    ("AWS::EC2::SecurityGroupEgress", "GroupId", "sg-0123456789abcdef0", "sg-0123456789abcdef0"),
    ("AWS::EC2::RouteTable", "VpcId", ..., "'VpcId' is a required property"),
    ("AWS::EC2::RouteTable", "VpcId", "vpc-0123456789abcdef0", "vpc-0123456789abcdef0"),
    ("AWS::EC2::RouteTable", "RouteTableId", "rtb-1", "read-only"),
    ("AWS::KMS::Key", "KeySpec", "RSA_1", "RSA_1"),
    ("AWS::KMS::Key", "PendingWindowInDays", 3, "PendingWindowInDays"),
    ("AWS::KMS::Key", "Rotates", True, "Rotates"),
    ("AWS::Lambda::Function", "Role", exported("NodeRole"), "cannot be assumed by Lambda"),
    ("AWS::Lambda::Function", "Runtime", "python1.0", "python1.0"),
    ("AWS::Lambda::Function", "Timeout", 901, "901"),
    ("AWS::SNS::Subscription", "Protocol", "pigeon", "pigeon"),
    ("AWS::SNS::Subscription", "TopicArn", "arn:aws:sns:us-west-2:123456789012:nobody", "Topic"),
    ("AWS::SNS::Subscription", "Protocol", ..., "'Protocol' is a required property"),
    ("AWS::FSx::DataRepositoryAssociation", "FileSystemId", "fs-0123456789abcdef0", "fs-0123456789abcdef0"),
    ("AWS::FSx::DataRepositoryAssociation", "DataRepositoryPath", "s3://nobody-has-this/", "nobody-has-this"),
    ("AWS::FSx::DataRepositoryAssociation", "ImportedFileChunkSize", 0, "ImportedFileChunkSize"),
    ("AWS::Logs::DeliverySource", "Name", ..., "'Name' is a required property"),
    ("AWS::Logs::DeliverySource", "Name", "", "Name"),
    ("AWS::Logs::DeliverySource", "Logs", "all", "Logs"),
    ("AWS::SSM::Parameter", "Type", "Number", "Number"),
    ("AWS::SSM::Parameter", "Value", ..., "'Value' is a required property"),
    ("AWS::SSM::Parameter", "Tier", "Large", "Large"),
    ("AWS::PCS::Queue", "ClusterId", "pcs_none", "pcs_none"),
    ("AWS::PCS::Queue", "Name", ..., ""),
    ("AWS::PCS::Queue", "ComputeNodeGroupConfigurations", [{"ComputeNodeGroupId": "pcs_none"}], "pcs_none"),
    (
        "AWS::APS::RuleGroupsNamespace",
        "Workspace",
        "arn:aws:aps:us-west-2:123456789012:workspace/ws-none",
        "not found",
    ),
    ("AWS::APS::RuleGroupsNamespace", "Name", ..., "'Name' is a required property"),
    ("AWS::APS::RuleGroupsNamespace", "Data", ..., "'Data' is a required property"),
]
# Types whose refusals are read off templates that contain no working resource of them.
ALONE: list[tuple[str, Own, str]] = [
    (
        "AWS::EC2::SubnetRouteTableAssociation",
        {"SubnetId": exported("Subnet")},
        "'RouteTableId' is a required",
    ),
    (
        "AWS::EC2::SubnetRouteTableAssociation",
        {"SubnetId": exported("Subnet"), "RouteTableId": "rtb-1"},
        "rtb-1",
    ),
    ("AWS::EC2::SubnetRouteTableAssociation", {"SubnetId": "s-1", "RouteTableId": exported("Table")}, "s-1"),
    ("AWS::Lambda::LayerVersion", {}, "'Content' is a required property"),
    ("AWS::Lambda::LayerVersion", {"Content": {"S3Bucket": "base-scripts", "S3Key": "none.zip"}}, ""),
    ("AWS::Lambda::LayerVersion", {"Content": {"S3Bucket": "b", "S3Key": "k"}, "Layer": "x"}, "Layer"),
    ("AWS::PCS::ComputeNodeGroup", NODES, "AWSPCS-nodes does not exist"),
    ("AWS::PCS::ComputeNodeGroup", NODES | {"ClusterId": "pcs_none"}, "pcs_none does not exist"),
    ("AWS::PCS::ComputeNodeGroup", NODES | {"PurchaseOption": "GIFT"}, "GIFT"),
    ("AWS::PCS::Cluster", PCS | {"Size": "HUGE"}, "HUGE"),
    (
        "AWS::PCS::Cluster",
        PCS | {"Networking": {"SubnetIds": ["subnet-0123456789abcdef0"]}},
        "subnet-0123456789abcdef0 does not exist",
    ),
    ("AWS::PCS::Cluster", PCS | {"Name": "base"}, "already exists"),
    ("AWS::EKS::Addon", {"ClusterName": "nobody", "AddonName": "coredns"}, "nobody does not exist"),
    ("AWS::EKS::AccessEntry", {"ClusterName": "nobody", "PrincipalArn": "arn:aws:iam::1:role/a"}, "nobody"),
    ("AWS::EKS::AccessEntry", {"ClusterName": "nobody"}, "'PrincipalArn' is a required property"),
    ("AWS::Grafana::Workspace", {"AuthenticationProviders": ["PASSWORD"]}, "PASSWORD"),
]


@pytest.fixture(scope="module")
def base(aws: Account) -> Iterator[Account]:
    """A network, roles, a bucket with a script and what else properties refer to."""
    outputs = {
        name: {
            "Value": {"Fn::GetAtt": [name, ATTRIBUTES[name]]} if name in ATTRIBUTES else {"Ref": name},
            "Export": {"Name": f"base-{name}"},
        }
        for name in BASE
        if name not in ("Rule", "Placed")
    }
    assert not aws.create("base", BASE, Outputs=outputs)
    aws.client("s3").put_object(Bucket="base-scripts", Key="v1/start.sh", Body=b"#!/bin/sh\n")
    yield aws
    aws.client("s3").delete_object(Bucket="base-scripts", Key="v1/start.sh")
    assert not aws.delete("base")


ATTEMPTS = itertools.count()


def attempt(aws: Account, kind: str, properties: Own) -> str:
    name = f"attempt-{next(ATTEMPTS)}"
    said = aws.create(name, {"It": {"Type": kind, "Properties": properties}})
    assert not aws.delete(name)
    return said


@pytest.mark.parametrize("kind", GOOD)
def test_good_properties_are_accepted_and_deleted(base: Account, kind: str) -> None:
    assert not attempt(base, kind, GOOD[kind])


@pytest.mark.parametrize(
    ("kind", "path", "value", "part"), REFUSED, ids=[f"{kind[5:]} {path}" for kind, path, _, _ in REFUSED]
)
def test_a_property_is_refused(base: Account, kind: str, path: str, value: Any, part: str) -> None:
    properties = copy.deepcopy(GOOD[kind])
    *folders, name = path.split(".")
    place: Any = properties
    for step in folders:
        place = place[int(step) if step.isdigit() else step]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    said = attempt(base, kind, properties)
    assert said
    assert part in said


@pytest.mark.parametrize(("kind", "properties", "part"), ALONE, ids=[f"{k[5:]} {p}" for k, _, p in ALONE])
def test_properties_are_refused(base: Account, kind: str, properties: Own, part: str) -> None:
    said = attempt(base, kind, properties)
    assert said
    assert part in said


def test_a_parent_that_is_in_use_is_not_deleted(base: Account) -> None:
    queue = {"Type": "AWS::PCS::Queue", "Properties": GOOD["AWS::PCS::Queue"] | {"Name": "held"}}
    assert not base.create("held", {"Queue": queue})
    assert "is in use by" in base.delete("base") or "Export" in base.delete("base")
    assert not base.delete("held")


def test_capacity_does_not_shrink(base: Account) -> None:
    grown = LUSTRE | {"StorageCapacity": 4800}
    assert not base.create("storage", {"It": {"Type": "AWS::FSx::FileSystem", "Properties": grown}})
    said = base.update("storage", {"It": {"Type": "AWS::FSx::FileSystem", "Properties": LUSTRE}})
    assert "cannot be decreased" in said
    assert not base.delete("storage")


def test_types_without_three_refusals_are_counted() -> None:
    """The list only becomes shorter: types whose refusals nobody has tried three times."""
    tried = [kind for kind, *_ in (*REFUSED, *ALONE)]
    left = {kind for kind in ADAPTERS if tried.count(kind) < 3}
    assert json.dumps(sorted(left)) == json.dumps(sorted(UNTRIED))


UNTRIED: set[str] = {
    "AWS::APS::Workspace",
    "AWS::Budgets::Budget",
    "AWS::CloudWatch::Alarm",
    "AWS::EC2::VPCCidrBlock",
    "AWS::EKS::AccessEntry",
    "AWS::EKS::Addon",
    "AWS::EKS::PodIdentityAssociation",
    "AWS::Grafana::Workspace",
    "AWS::Logs::Delivery",
    "AWS::Logs::DeliveryDestination",
    "AWS::Logs::MetricFilter",
    "AWS::SNS::TopicPolicy",
    "AWS::SecretsManager::Secret",
    "AWS::SecretsManager::SecretTargetAttachment",
}
