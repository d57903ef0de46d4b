"""What a change of templates does: a pair of templates for every verdict, and for every fact."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ENVIRONMENTS

from tools import create_only_from_authorities as authorities
from ultracluster.operations.blast_radius import Change, Verdict, blast_radius, paired, worst

FACTS = json.loads(authorities.TABLE.with_name("change_facts.json").read_text())
CLUSTER = "AWS::SageMaker::Cluster"
LUSTRE = "AWS::FSx::FileSystem"
Properties = dict[str, Any]


def stack(**resources: Properties) -> dict[str, Any]:
    return {"s": {"Resources": resources}}


def resource(kind: str, properties: Properties | None = None, **attributes: Any) -> Properties:
    return {"Type": kind, "Properties": properties or {}, **attributes}


def changes(kind: str, old: Properties, new: Properties, **attributes: Any) -> list[Change]:
    """What happens to a resource whose properties change."""
    before, after = resource(kind, old, **attributes), resource(kind, new, **attributes)
    return blast_radius(stack(R=before), stack(R=after))


def group(**fields: Any) -> Properties:
    base = {
        "InstanceGroupName": "train",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 16,
        "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
        "SlurmConfig": {"NodeType": "Compute", "PartitionNames": ["train"]},
        "InstanceStorageConfigs": [
            {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": "k"}},
            {"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": "k"}},
            {"FsxLustreConfig": {"DnsName": "fs-1", "MountName": "abc"}},
        ],
        "LifeCycleConfig": {"SourceS3Uri": "s3://b/1", "OnInitComplete": "run.sh"},
    }
    return {**base, **fields}


def cluster(*groups: Properties, **fields: Any) -> Properties:
    base = {
        "VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
        "Orchestrator": {"Slurm": {"SlurmConfigStrategy": "Merge"}},
    }
    return {**base, "InstanceGroups": list(groups) or [group()], **fields}


GROUP = "InstanceGroups[train]"
HYPERPOD: list[tuple[str, Properties, str, str, str]] = [
    # what, the new cluster, changed path, verdict, words of the reason
    ("VpcConfig", cluster(VpcConfig={"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-1"]}),
     "VpcConfig.Subnets", "replaced", "all nodes"),
    ("security groups", cluster(VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1", "sg-2"]}),
     "VpcConfig.SecurityGroupIds", "replaced", "all nodes"),
    ("name", cluster(ClusterName="other"), "ClusterName", "replaced", "all nodes"),
    ("EKS", cluster(Orchestrator={"Slurm": {"SlurmConfigStrategy": "Merge"}, "Eks": {"ClusterArn": "a"}}),
     "Orchestrator.Eks.ClusterArn", "replaced", "its EKS cluster"),
    ("strategy", cluster(Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}}),
     "Orchestrator.Slurm.SlurmConfigStrategy", "in place", "Managed fails"),
    ("database", cluster(Orchestrator={"Slurm": {"SlurmConfigStrategy": "Merge",
                                                 "AccountingDatabase": {"Endpoint": "e"}}}),
     "Orchestrator.Slurm.AccountingDatabase.Endpoint", "needs scale-to-zero", "unverified"),
    ("provisioning mode", cluster(NodeProvisioningMode="Continuous"),
     "NodeProvisioningMode", "replaced", "unverified"),
    ("recovery", cluster(NodeRecovery="None"), "NodeRecovery", "in place", "where it is"),
    ("another group", cluster(group(), group(InstanceGroupName="more")),
     "InstanceGroups[more]", "in place", "new instance group"),
    ("no group", cluster(group(InstanceGroupName="other")), GROUP, "replaced", "group is deleted"),
    ("fewer nodes", cluster(group(InstanceCount=8)), f"{GROUP}.InstanceCount", "rolling", "terminated"),
    ("more nodes", cluster(group(InstanceCount=32)), f"{GROUP}.InstanceCount", "in place", "added"),
    ("minimum", cluster(group(MinInstanceCount=8)), f"{GROUP}.MinInstanceCount", "in place", "3 hours"),
    ("type", cluster(group(InstanceType="ml.p5en.48xlarge")),
     f"{GROUP}.InstanceType", "replaced", "AWS refuses"),
    ("types", cluster(group(InstanceRequirements={"InstanceTypes": ["ml.p5.48xlarge"]})),
     f"{GROUP}.InstanceRequirements.InstanceTypes", "replaced", "AWS refuses"),
    ("Spot", cluster(group(CapacityRequirements={"Spot": {}})),
     f"{GROUP}.CapacityRequirements.Spot", "replaced", "AWS refuses"),
    ("network of a group", cluster(group(OverrideVpcConfig={"Subnets": ["subnet-2"]})),
     f"{GROUP}.OverrideVpcConfig.Subnets", "replaced", "AWS refuses"),
    ("node type", cluster(group(SlurmConfig={"NodeType": "Login", "PartitionNames": ["train"]})),
     f"{GROUP}.SlurmConfig.NodeType", "replaced", "AWS refuses"),
    ("partition", cluster(group(SlurmConfig={"NodeType": "Compute", "PartitionNames": ["big"]})),
     f"{GROUP}.SlurmConfig.PartitionNames", "in place", "partitions"),
    ("image", cluster(group(ImageId="ami-1")), f"{GROUP}.ImageId", "rolling", "UpdateClusterSoftware"),
    ("release", cluster(group(ImageReleaseVersion="1.2.3")),
     f"{GROUP}.ImageReleaseVersion", "rolling", "root volumes are wiped"),
    ("scripts", cluster(group(LifeCycleConfig={"SourceS3Uri": "s3://b/2", "OnInitComplete": "run.sh"})),
     f"{GROUP}.LifeCycleConfig.SourceS3Uri", "needs scale-to-zero", "only new nodes"),
    ("role", cluster(group(ExecutionRole="arn:aws:iam::111122223333:role/other")),
     f"{GROUP}.ExecutionRole", "needs scale-to-zero", "unverified"),
    ("threads", cluster(group(ThreadsPerCore=1)),
     f"{GROUP}.ThreadsPerCore", "needs scale-to-zero", "unverified"),
    ("interface", cluster(group(NetworkInterface={"InterfaceType": "efa"})),
     f"{GROUP}.NetworkInterface.InterfaceType", "needs scale-to-zero", "unverified"),
    ("plan", cluster(group(TrainingPlanArn="arn:1")),
     f"{GROUP}.TrainingPlanArn", "needs scale-to-zero", "unverified"),
    ("checks", cluster(group(OnStartDeepHealthChecks=["InstanceStress"])),
     f"{GROUP}.OnStartDeepHealthChecks", "in place", "two hours"),
    ("tags", cluster(Tags=[{"Key": "a", "Value": "b"}]), "Tags[a]", "in place", "tags only"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "new", "path", "verdict", "words"), HYPERPOD, ids=[row[0] for row in HYPERPOD]
)
def test_each_field_of_a_hyperpod_cluster(
    what: str, new: Properties, path: str, verdict: str, words: str
) -> None:
    found = {change.path: change for change in changes(CLUSTER, cluster(), new)}

    assert path in found
    assert (found[path].verdict, words in found[path].reason) == (verdict, True), found[path].reason
    assert found[path].source


def volumes(**changed: Properties) -> Properties:
    configs: list[dict[str, Properties]] = [
        {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": "k", **changed.get("root", {})}},
        {"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": "k", **changed.get("second", {})}},
        {"FsxLustreConfig": {"DnsName": "fs-1", "MountName": "abc", **changed.get("lustre", {})}},
    ]
    if "home" in changed:
        configs.insert(0, {"FsxOpenZfsConfig": changed["home"]})
    return cluster(group(InstanceStorageConfigs=configs))


@pytest.mark.parametrize(
    ("new", "element", "words"),
    [
        (volumes(second={"VolumeSizeInGB": 900}), "[EbsVolume].EbsVolumeConfig.VolumeSizeInGB", "this size"),
        (volumes(root={"VolumeKmsKeyId": "z"}), "[EbsVolume root].EbsVolumeConfig.VolumeKmsKeyId", "refused"),
        (volumes(lustre={"DnsName": "fs-2"}), "[FsxLustre].FsxLustreConfig.DnsName", "only new nodes mount"),
        (volumes(home={"DnsName": "fs-3"}), "[FsxOpenZfs]", "only new nodes mount"),
    ],
)
def test_storage_of_a_group_is_for_new_nodes_wherever_it_stands_in_the_list(
    new: Properties, element: str, words: str
) -> None:
    (change,) = changes(CLUSTER, cluster(), new)

    assert change.path == f"{GROUP}.InstanceStorageConfigs{element}"
    assert change.verdict == "needs scale-to-zero" and words in change.reason


LUSTRE_OLD: Properties = {
    "FileSystemType": "LUSTRE", "FileSystemTypeVersion": "2.15", "StorageCapacity": 38400,
    "SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"],
    "LustreConfiguration": {
        "DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 500, "EfaEnabled": True,
        "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 12000}, "ThroughputCapacity": 8000,
    },
}  # fmt: skip


def lustre(**changed: Any) -> Properties:
    top = {key: value for key, value in changed.items() if key in {*LUSTRE_OLD, "KmsKeyId", "StorageType"}}
    below = {key: value for key, value in changed.items() if key not in top}
    return {**LUSTRE_OLD, **top, "LustreConfiguration": {**LUSTRE_OLD["LustreConfiguration"], **below}}


OPENZFS_OLD: Properties = {
    "FileSystemType": "OPENZFS", "StorageCapacity": 1024,
    "OpenZFSConfiguration": {"DeploymentType": "SINGLE_AZ_HA_2", "ThroughputCapacity": 320},
}  # fmt: skip
RDS_OLD: Properties = {"DBInstanceClass": "db.m7g.large", "AllocatedStorage": "100", "EngineVersion": "8.4.3"}
FSX_LOSS = "every file on the file system"
OTHERS: list[tuple[str, Properties, Properties, str, str]] = [
    (LUSTRE, lustre(), lustre(SecurityGroupIds=["sg-2"]), "DATA LOSS", FSX_LOSS),
    (LUSTRE, lustre(), lustre(SubnetIds=["subnet-2"]), "DATA LOSS", FSX_LOSS),
    (LUSTRE, lustre(), lustre(KmsKeyId="k"), "DATA LOSS", FSX_LOSS),
    (LUSTRE, lustre(), lustre(StorageType="HDD"), "DATA LOSS", FSX_LOSS),
    (LUSTRE, lustre(), lustre(FileSystemTypeVersion="2.12"), "DATA LOSS", "conflict"),
    (LUSTRE, lustre(), lustre(EfaEnabled=False), "DATA LOSS", "at creation"),
    (LUSTRE, lustre(), lustre(PerUnitStorageThroughput=1000), "DATA LOSS", "conflict"),
    (LUSTRE, lustre(), lustre(DeploymentType="SCRATCH_2"), "DATA LOSS", "at creation"),
    (LUSTRE, lustre(), lustre(ImportPath="s3://b"), "DATA LOSS", "associations"),
    (LUSTRE, lustre(), lustre(StorageCapacity=76800), "in place", "never shrinks"),
    (LUSTRE, lustre(), lustre(StorageCapacity=19200), "replaced", "AWS refuses this: capacity only grows"),
    (LUSTRE, lustre(), lustre(MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 6000}),
     "replaced", "AWS refuses this: metadata"),
    (LUSTRE, lustre(), lustre(MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 24000}),
     "in place", "never downwards"),
    (LUSTRE, lustre(), lustre(ThroughputCapacity=4000), "replaced", "AWS refuses"),
    (LUSTRE, lustre(), lustre(ThroughputCapacity=12000), "in place", "where it is"),
    (LUSTRE, lustre(), lustre(DataCompressionType="LZ4"), "in place", "where it is"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "StorageCapacity": 512}, "replaced", "AWS refuses"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "OpenZFSConfiguration": {"DeploymentType": "SINGLE_AZ_HA_2",
     "ThroughputCapacity": 640}}, "rolling", "some minutes"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "OpenZFSConfiguration": {"DeploymentType": "SINGLE_AZ_2",
     "ThroughputCapacity": 320}}, "DATA LOSS", "at creation"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "DBInstanceClass": "db.m7g.xlarge"}, "rolling", "restarts"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "AllocatedStorage": "200"}, "in place", "six hours"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "AllocatedStorage": "50"}, "replaced", "AWS refuses"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "EngineVersion": "8.4.4"}, "rolling", "restarts"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "MultiAZ": True}, "in place", "standby"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "StorageEncrypted": True}, "DATA LOSS", "job history"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "Engine": "mysql"}, "DATA LOSS", "in some cases"),
    ("AWS::PCS::Cluster", {"Size": "SMALL"}, {"Size": "LARGE"}, "replaced", "SMALL, MEDIUM"),
    ("AWS::PCS::Cluster", {"Scheduler": {"Version": "25.05"}}, {"Scheduler": {"Version": "25.11"}},
     "rolling", "5 to 15 minutes"),
    ("AWS::PCS::ComputeNodeGroup", {"InstanceConfigs": [{"InstanceType": "p5.48xlarge"}]},
     {"InstanceConfigs": [{"InstanceType": "p5en.48xlarge"}]}, "replaced", "another node group"),
    ("AWS::PCS::ComputeNodeGroup", {"AmiId": "ami-1"}, {"AmiId": "ami-2"}, "rolling", "drain"),
    ("AWS::PCS::ComputeNodeGroup", {"NodeLifecycleActions": {"ScriptCachingPolicy": "CACHE_ONCE"}},
     {"NodeLifecycleActions": {"ScriptCachingPolicy": "REFRESH_ON_REBOOT"}}, "rolling", "drain"),
    ("AWS::EKS::Nodegroup", {"Subnets": ["a"]}, {"Subnets": ["b"]}, "replaced", "creation only"),
    ("AWS::EKS::Nodegroup", {"ReleaseVersion": "1"}, {"ReleaseVersion": "2"}, "rolling", "drained"),
    ("AWS::EKS::Nodegroup", {"LaunchTemplate": {"Id": "lt-1", "Version": "1"}},
     {"LaunchTemplate": {"Id": "lt-1", "Version": "2"}}, "rolling", "drained"),
    ("AWS::EKS::Nodegroup", {"LaunchTemplate": {"Id": "lt-1"}}, {"LaunchTemplate": {"Id": "lt-2"}},
     "replaced", "only the version"),
    ("AWS::EKS::Cluster", {"Version": "1.33"}, {"Version": "1.34"}, "rolling", "one version"),
    ("AWS::EKS::Cluster", {"Version": "1.10"}, {"Version": "1.9"}, "replaced", "only go up"),
    ("AWS::EC2::PlacementGroup", {"Strategy": "cluster"}, {"Strategy": "spread"}, "replaced", "creation"),
    ("AWS::EC2::PlacementGroup", {}, {"Tags": [{"Key": "a", "Value": "b"}]}, "replaced", "even tags"),
    ("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24"}, {"CidrBlock": "10.0.1.0/24"}, "replaced", "creation"),
    ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}, {"CidrBlock": "10.1.0.0/16"}, "replaced", "creation"),
    ("AWS::KMS::Key", {"KeyPolicy": {"a": 1}}, {"KeyPolicy": {"a": 2}}, "in place", "where it is"),
    ("AWS::S3::Bucket", {"BucketName": "one"}, {"BucketName": "two"}, "DATA LOSS", "every object"),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 30}, {"RetentionInDays": 7}, "in place", "deleted"),
    ("AWS::Lambda::LayerVersion", {"Content": {"S3Key": "a.zip"}}, {"Content": {"S3Key": "b.zip"}},
     "in place", "new version of the layer"),
    ("AWS::Lambda::Function", {"Code": {"S3Key": "a"}}, {"Code": {"S3Key": "b"}}, "in place", "new code"),
    ("Custom::CDKBucketDeployment", {"SourceObjectKeys": ["a"]}, {"SourceObjectKeys": ["b"]},
     "in place", "uploaded again"),
    ("Custom::Own", {"A": 1}, {"A": 2}, "in place", "function behind it"),
    ("Custom::Own", {"ServiceToken": "a"}, {"ServiceToken": "b"}, "replaced", "creation only"),
    ("AWS::Braket::Thing", {"A": 1}, {"A": 2}, "replaced", "not in the table"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "old", "new", "verdict", "words"),
    OTHERS,
    ids=[f"{row[0].split('::')[-1]}-{row[3]}-{number}" for number, row in enumerate(OTHERS)],
)
def test_each_kind_of_change(kind: str, old: Properties, new: Properties, verdict: str, words: str) -> None:
    (change,) = changes(kind, old, new)

    assert (change.verdict, words in change.reason) == (verdict, True), change.reason


def pcluster(
    *, head: str = "m5.8xlarge", count: int = 4, image: str = "ami-1", strategy: str = "", queues: int = 1
) -> Properties:
    queue = {
        "Name": "gpu",
        "Image": {"CustomAmi": image},
        "ComputeResources": [{"Name": "p5", "InstanceType": "p5.48xlarge", "MaxCount": count}],
    }
    settings = {"QueueUpdateStrategy": strategy} if strategy else {}
    return {
        "ServiceToken": "arn",
        "ClusterName": "gpu",
        "ClusterConfiguration": {
            "HeadNode": {"InstanceType": head},
            "Scheduling": {
                "SlurmSettings": settings,
                "SlurmQueues": [queue, {**queue, "Name": "more"}][:queues],
            },
        },
    }


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        (pcluster(), pcluster(head="m5.large"), "replaced", "AWS refuses"),
        (pcluster(), pcluster(count=8), "in place", "more nodes"),
        (pcluster(), pcluster(count=2), "needs scale-to-zero", "shrinking"),
        (pcluster(), pcluster(image="ami-2"), "needs scale-to-zero", "fleet must be stopped"),
        (
            pcluster(strategy="DRAIN"),
            pcluster(image="ami-2", strategy="DRAIN"),
            "rolling",
            "after their jobs",
        ),
        (pcluster(), pcluster(queues=2), "in place", "new queue"),
        (pcluster(queues=2), pcluster(), "needs scale-to-zero", "queue ends"),
        (pcluster(), {**pcluster(), "ClusterName": "b"}, "replaced", "head node"),
    ],
)
def test_parallelcluster(old: Properties, new: Properties, verdict: str, words: str) -> None:
    (change,) = changes("Custom::PclusterCluster", old, new)

    assert (change.verdict, words in change.reason) == (verdict, True), change.reason


@pytest.mark.parametrize(
    ("kind", "attributes", "verdict", "words"),
    [
        (LUSTRE, {}, "DATA LOSS", FSX_LOSS),
        (LUSTRE, {"DeletionPolicy": "Delete"}, "DATA LOSS", FSX_LOSS),
        (LUSTRE, {"DeletionPolicy": "Retain"}, "in place", "retained, no longer managed"),
        (LUSTRE, {"DeletionPolicy": "Snapshot"}, "DATA LOSS", FSX_LOSS),  # FSx has no snapshots here
        ("AWS::RDS::DBInstance", {"DeletionPolicy": "Snapshot"}, "replaced", "last snapshot"),
        ("AWS::S3::Bucket", {}, "DATA LOSS", "every object"),
        ("AWS::KMS::Key", {}, "DATA LOSS", "encrypted"),
        ("AWS::Logs::LogGroup", {}, "DATA LOSS", "log event"),
        ("AWS::EC2::NatGateway", {}, "replaced", "no longer in the template"),
        ("AWS::EC2::SecurityGroupIngress", {}, "in place", "the rule ends"),
        ("AWS::FSx::DataRepositoryAssociation", {}, "replaced", "objects stay"),
        ("Custom::PclusterCluster", {}, "replaced", "head node"),
    ],
)
def test_removal(kind: str, attributes: Properties, verdict: str, words: str) -> None:
    (change,) = blast_radius(stack(R=resource(kind, **attributes)), stack())

    assert (change.verdict, change.path) == (verdict, "")
    assert words in change.reason and change.after is None and change.resource == "s/R"


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({"UpdateReplacePolicy": "Retain"}, {"UpdateReplacePolicy": "Retain"}, "replaced"),
        ({"UpdateReplacePolicy": "Retain"}, {}, "DATA LOSS"),
        ({}, {"UpdateReplacePolicy": "Retain"}, "DATA LOSS"),
    ],
)
def test_a_replaced_file_system_keeps_its_data_only_if_both_templates_say_so(
    old: Properties, new: Properties, verdict: str
) -> None:
    before, after = resource(LUSTRE, lustre(), **old), resource(LUSTRE, lustre(SubnetIds=["b"]), **new)

    assert worst(blast_radius(stack(R=before), stack(R=after))) == verdict


def test_taking_the_guard_away_is_told() -> None:
    before, after = resource(LUSTRE, DeletionPolicy="Retain"), resource(LUSTRE)
    (change,) = blast_radius(stack(R=before), stack(R=after))

    assert change.verdict == "in place" and "guard" in change.reason


@pytest.mark.parametrize("attribute", ["Metadata", "DependsOn"])
def test_metadata_and_order_are_no_op(attribute: str) -> None:
    (change,) = blast_radius(stack(R=resource(CLUSTER, None, **{attribute: "x"})), stack(R=resource(CLUSTER)))

    assert change.verdict == "no-op"


def test_what_is_new_is_in_place_and_the_cdks_own_mark_is_no_change() -> None:
    new = stack(R=resource(LUSTRE), CDKMetadata=resource("AWS::CDK::Metadata"))

    assert [(c.verdict, c.reason) for c in blast_radius(stack(), new)] == [("in place", "new")]


def test_another_type_under_the_same_name_deletes_the_old_one() -> None:
    (change,) = blast_radius(stack(R=resource(LUSTRE)), stack(R=resource("AWS::S3::Bucket")))

    assert change.verdict == "DATA LOSS"


def test_a_stack_that_is_gone_is_left_behind_not_deleted() -> None:
    (change,) = blast_radius(stack(R=resource(LUSTRE)), {})

    assert change.verdict == "in place" and "1 resources, of which 1 hold data" in change.reason


# ---------------------------------------------------------------------------------------------- cascade


def network(cidr: str) -> dict[str, Any]:
    return {
        "Resources": {
            "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
            "Subnet": resource(
                "AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": {"Fn::GetAtt": "Vpc.CidrBlock"}}
            ),
        },
        "Outputs": {"Id": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "dev-network-Id"}}},
    }


STORAGE = {
    "Resources": {
        "Lustre": resource(LUSTRE, {"SubnetIds": [{"Fn::ImportValue": "dev-network-Id"}]}),
        "Log": resource("AWS::Logs::LogGroup", {"RetentionInDays": 7}),
    },
    "Outputs": {
        "Dns": {"Value": {"Fn::GetAtt": ["Lustre", "DNSName"]}, "Export": {"Name": "dev-storage-Dns"}}
    },
}
NODES = {
    "Resources": {
        "Cluster": resource(
            CLUSTER,
            cluster(
                group(
                    InstanceStorageConfigs=[
                        {"FsxLustreConfig": {"DnsName": {"Fn::ImportValue": "dev-storage-Dns"}}}
                    ]
                )
            ),
        )
    }
}


def test_a_replaced_network_takes_along_what_is_in_it_over_stacks() -> None:
    old = {"dev-network": network("10.0.0.0/16"), "dev-storage": STORAGE, "dev-cluster": NODES}
    found = {
        (c.resource, c.path): c for c in blast_radius(old, {**old, "dev-network": network("10.1.0.0/16")})
    }

    lost = found["dev-storage/Lustre", "SubnetIds"]
    assert lost.verdict == "DATA LOSS"
    assert "refers to `dev-network/Subnet`" in lost.reason and "refuses to change one in use" in lost.reason
    mount = found["dev-cluster/Cluster", f"{GROUP}.InstanceStorageConfigs[FsxLustre].FsxLustreConfig.DnsName"]
    assert mount.verdict == "needs scale-to-zero" and "`dev-storage/Lustre`" in mount.reason
    assert ("dev-storage/Log", "RetentionInDays") not in found
    assert found["dev-network/Subnet", "VpcId"].verdict == "replaced"


@pytest.mark.parametrize(
    "reference",
    [
        {"Ref": "Vpc"},
        {"Fn::GetAtt": ["Vpc", "VpcId"]},
        {"Fn::GetAtt": "Vpc.VpcId"},
        {"Fn::Sub": "${Vpc}"},
        {"Fn::Sub": ["${Vpc.VpcId}-${x}", {"x": 1}]},
        {"Fn::Join": ["", ["a", {"Ref": "Vpc"}]]},
        {"Fn::Select": [0, [{"Fn::If": ["c", {"Ref": "Vpc"}, "b"]}]]},
    ],
)
def test_every_form_of_reference_is_followed(reference: Any) -> None:
    old, new = (
        stack(
            Vpc=resource("AWS::EC2::VPC", {"CidrBlock": cidr}),
            Group=resource("AWS::EC2::SecurityGroup", {"VpcId": reference}),
        )
        for cidr in ("a", "b")
    )
    found = {change.logical_id: change for change in blast_radius(old, new)}

    assert found["Group"].verdict == "replaced" and "`Vpc`" in found["Group"].reason


@pytest.mark.parametrize("kind", ["AWS::EKS::Nodegroup", "AWS::PCS::ComputeNodeGroup"])
def test_a_new_version_of_a_launch_template_renews_the_nodes(kind: str) -> None:
    name = "LaunchTemplate" if kind == "AWS::EKS::Nodegroup" else "CustomLaunchTemplate"
    version = {"Fn::GetAtt": ["Template", "LatestVersionNumber"]}
    old, new = (
        stack(
            Template=resource("AWS::EC2::LaunchTemplate", {"LaunchTemplateData": {"ImageId": image}}),
            Nodes=resource(kind, {name: {"Id": {"Ref": "Template"}, "Version": version}}),
        )
        for image in ("ami-1", "ami-2")
    )

    assert [(c.logical_id, c.verdict) for c in blast_radius(old, new)] == [
        ("Nodes", "rolling"),
        ("Template", "in place"),
    ]


def test_a_refused_change_replaces_nothing_else() -> None:
    old, new = (
        stack(
            Lustre=resource(LUSTRE, lustre(StorageCapacity=capacity)),
            Link=resource("AWS::FSx::DataRepositoryAssociation", {"FileSystemId": {"Ref": "Lustre"}}),
        )
        for capacity in (4800, 2400)
    )

    assert [(c.logical_id, c.refused) for c in blast_radius(old, new)] == [("Lustre", True)]


def test_a_changed_parameter_changes_what_refers_to_it() -> None:
    old, new = (
        {
            "s": {
                "Parameters": {"Zone": {"Default": zone}},
                "Resources": {"R": resource("AWS::EC2::Subnet", {"AvailabilityZone": {"Ref": "Zone"}})},
            }
        }
        for zone in ("a", "b")
    )

    assert worst(blast_radius(old, new)) == "replaced"


def test_a_named_resource_cannot_be_replaced_under_its_name() -> None:
    new = cluster(ClusterName="prod", VpcConfig={"Subnets": ["subnet-2"], "SecurityGroupIds": ["sg-1"]})
    (change,) = changes(CLUSTER, cluster(ClusterName="prod"), new)

    assert "While its ClusterName stays `prod`, CloudFormation refuses" in change.reason


def test_environments_are_compared_stack_by_stack_and_ids_that_hold_the_stacks_name_match() -> None:
    def one(name: str) -> dict[str, Any]:
        secret = resource("AWS::SecretsManager::Secret")
        using = resource("AWS::RDS::DBInstance", {"MasterUserPassword": {"Ref": f"{name}storageSecret1A2B"}})
        return {
            f"{name}-network": {
                "Outputs": {"Id": {"Value": {"Ref": "V"}, "Export": {"Name": f"{name}-network-Id"}}},
                "Resources": {"V": resource("AWS::EC2::VPC")},
            },
            f"{name}-storage": {
                "Resources": {
                    f"{name}storageSecret1A2B": secret,
                    "Db": using,
                    "G": resource(
                        "AWS::EC2::SecurityGroup", {"VpcId": {"Fn::ImportValue": f"{name}-network-Id"}}
                    ),
                }
            },
        }

    assert blast_radius(paired(one("dev"), one("prod")), one("prod")) == []


# ------------------------------------------------------------------------------------------- properties

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Ref", "Fn::GetAtt", "Fn::Sub", "Key", "Name", "a", "InstanceGroups"])
            | st.text(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
TYPES = st.sampled_from(
    sorted({fact["type"] for fact in FACTS["facts"]} | set(FACTS["holds_data"]) | {"X", "Custom::X"})
)
RESOURCE = st.fixed_dictionaries(
    {"Type": TYPES | JSON, "Properties": JSON},
    optional={"DeletionPolicy": JSON, "UpdateReplacePolicy": JSON, "Condition": JSON, "Metadata": JSON},
)
SECTION = st.dictionaries(st.sampled_from(["A", "B", "C"]), JSON, max_size=3)
TEMPLATE = JSON | st.fixed_dictionaries(
    {"Resources": st.dictionaries(st.sampled_from(["A", "B", "C"]), RESOURCE | JSON, max_size=3)},
    optional={"Outputs": SECTION | JSON, "Parameters": SECTION | JSON, "Mappings": JSON},
)
TEMPLATES = st.dictionaries(st.sampled_from(["dev-a", "dev-b", "prod-a"]), TEMPLATE, max_size=3)


@given(TEMPLATES)
def test_nothing_changes_between_a_template_and_itself(templates: Any) -> None:
    assert blast_radius(templates, templates) == []


@given(TEMPLATES, TEMPLATES)
def test_any_two_templates_can_be_compared(before: Any, after: Any) -> None:
    found = blast_radius(paired(before, after), after)

    assert [one.verdict.rank for one in found] == sorted((one.verdict.rank for one in found), reverse=True)
    assert all(one.reason for one in found)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_type_of_a_shipped_environment_is_unknown(name: str, synthesised: Callable[[str], Any]) -> None:
    known = authorities.create_only()["types"]
    kinds = {
        one["Type"]
        for template in synthesised(name).templates.values()
        for one in template["Resources"].values()
    }

    assert {kind for kind in kinds if not kind.startswith("Custom::")} <= known.keys()


# ------------------------------------------------------------------------------------------ authorities


def schema(kind: str) -> dict[str, Any]:
    """CloudFormation's own schema of a type, as cfn-lint ships it."""
    spec = find_spec("cfnlint")
    assert spec and spec.origin
    schemas = Path(spec.origin).parent / "data" / "schemas"
    file = json.loads((schemas / "providers" / "us-east-1.json").read_text())[kind]
    return json.loads((schemas / "resources" / f"{file}.json").read_text())


def knows(kind: str, path: str) -> bool:
    """Whether a path leads to a property of the schema."""
    whole = schema(kind)
    nodes = [whole]

    def resolved(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for node in found:
            while "$ref" in node:
                node = whole["definitions"][node["$ref"].rpartition("/")[2]]
            made += [node, *resolved(node.get("oneOf", []))]
        return made

    for step in path.replace("[", ".[").split("."):
        nodes = resolved(nodes)
        if step.startswith("["):
            nodes = resolved([node["items"] for node in nodes if "items" in node])
            step = f"{step[1:-1]}Config" if step != "[]" else ""
        if step:
            nodes = [node["properties"][step] for node in nodes if step in node.get("properties", {})]
    return bool(nodes)


PATHS = sorted(
    {(f["type"], f["path"]) for f in FACTS["facts"] if f["path"] and f["type"].startswith("AWS::")}
)


@pytest.mark.parametrize(("kind", "path"), [*PATHS, *FACTS["names"]["properties"].items()])
def test_every_fact_is_about_a_property_that_cloudformation_knows(kind: str, path: str) -> None:
    assert knows(kind, path)


@pytest.mark.parametrize(
    "kind",
    sorted({f["type"] for f in FACTS["facts"]} | set(FACTS["holds_data"]) | set(FACTS["snapshots"]["types"])),
)
def test_every_fact_is_about_a_type_of_the_table(kind: str) -> None:
    assert kind.startswith("Custom::") or kind in authorities.create_only()["types"]


@pytest.mark.parametrize(
    "fact", FACTS["facts"], ids=lambda f: f"{f['type']} {f['path']} {f.get('change', '')}"
)
def test_every_fact_has_verdict_reason_and_dated_source(fact: dict[str, Any]) -> None:
    assert Verdict(fact["verdict"])
    assert fact["reason"] and fact["source"] and len(fact["date"]) == 10
    assert fact.keys() <= {
        *("type", "path", "change", "where", "verdict", "refused", "part", "overrides"),
        *("reason", "source", "date"),
    }
    assert fact.get("change", "added") in {"added", "removed", "increased", "decreased"}


NOTHING = object()


def holding(path: str, value: Any) -> Any:
    """Properties in which a fact's path holds a value, or does not (NOTHING)."""
    return nested(path.replace("[", ".[").split(".") if path else [], value)


def nested(steps: list[str], value: Any) -> Any:
    if not steps:
        return {"Any": value}
    step, *rest = steps
    if step.startswith("["):
        if value is NOTHING and not rest:
            return []
        inner = nested(rest, value)
        return [{"Name": "x", **inner} if step == "[]" else {f"{step[1:-1]}Config": inner}]
    if rest:
        return {step: nested(rest, value)}
    return {} if value is NOTHING else {step: value}


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: merged(one.get(key), other.get(key)) for key in one.keys() | other.keys()}
    return one if other is None else other


VALUES = {
    "added": (NOTHING, "b"),
    "removed": ("a", NOTHING),
    "increased": (1, 2),
    "decreased": (2, 1),
    None: ("a", "b"),
}


@pytest.mark.parametrize(
    "fact", FACTS["facts"], ids=lambda f: f"{f['type']} {f['path']} {f.get('change', '')}"
)
def test_no_fact_is_hidden_by_one_above_it(fact: dict[str, Any]) -> None:
    """The smallest change that a fact is about gets its reason and its verdict."""
    values = VALUES[fact.get("change")]
    old, new = (resource(fact["type"], holding(fact["path"], value)) for value in values)
    for path, allowed in fact.get("where", {}).items():
        for one in (old, new):
            one["Properties"] = merged(one["Properties"], holding(path, allowed[0]))
    gone = fact["path"] == "" and fact.get("change") == "removed"
    (change,) = blast_radius(stack(R=old), stack() if gone else stack(R=new))

    assert fact["reason"] in change.reason
    held = fact["type"] in FACTS["holds_data"] and fact["verdict"] == "replaced" and not change.refused
    assert change.verdict == ("DATA LOSS" if held else fact["verdict"])
    assert change.refused == fact.get("refused", False)


def test_every_field_of_an_instance_group_has_a_fact_or_is_known_to_be_harmless() -> None:
    harmless = {
        "InstanceGroupName", "KubernetesConfig", "ScheduledUpdateConfig", "AutoPatchConfig", "CurrentCount",
    }  # fmt: skip
    fields = schema(CLUSTER)["definitions"]["ClusterInstanceGroup"]["properties"].keys()
    judged = {
        f["path"].split(".")[1].split("[")[0]
        for f in FACTS["facts"]
        if f["path"].startswith("InstanceGroups[].")
    }

    assert fields - harmless - judged == set()


def test_the_table_is_what_the_authorities_say_today() -> None:
    # The header may name older editions: it changes with the next change of a row.
    committed = json.loads(authorities.TABLE.read_text())

    assert committed["types"] == authorities.create_only()["types"], (
        "run python tools/create_only_from_authorities.py"
    )
    assert authorities.TABLE.read_text() == authorities.render(committed)
