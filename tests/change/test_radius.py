"""What a change of templates does: a pair of templates for every verdict."""

from __future__ import annotations

import pytest
from blast_radius_support import (
    CLUSTER,
    GROUP,
    LUSTRE,
    Properties,
    changes,
    cluster,
    group,
    lustre,
    resource,
    stack,
)

from ultracluster.change import blast_radius, worst

DRA = "AWS::FSx::DataRepositoryAssociation"

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
     "Orchestrator.Slurm.AccountingDatabase.Endpoint", "in place", "and back if that fails"),
    ("provisioning mode", cluster(NodeProvisioningMode="Continuous"),
     "NodeProvisioningMode", "replaced", "sources conflict"),
    ("recovery", cluster(NodeRecovery="None"), "NodeRecovery", "in place", "where it is"),
    ("another group", cluster(group(), group(InstanceGroupName="more")),
     "InstanceGroups[more]", "in place", "new instance group"),
    ("no group", cluster(group(InstanceGroupName="other")), GROUP, "replaced", "group is deleted"),
    ("fewer nodes", cluster(group(InstanceCount=8)), f"{GROUP}.InstanceCount", "rolling", "terminated"),
    ("more nodes", cluster(group(InstanceCount=32)), f"{GROUP}.InstanceCount", "in place", "added"),
    ("minimum", cluster(group(MinInstanceCount=8)), f"{GROUP}.MinInstanceCount", "in place", "3 hours"),
    ("type", cluster(group(InstanceType="ml.p5en.48xlarge")),
     f"{GROUP}.InstanceType", "refused", "AWS refuses"),
    ("types", cluster(group(InstanceRequirements={"InstanceTypes": ["ml.p5.48xlarge"]})),
     f"{GROUP}.InstanceRequirements.InstanceTypes", "refused", "AWS refuses"),
    ("Spot", cluster(group(CapacityRequirements={"Spot": {}})),
     f"{GROUP}.CapacityRequirements.Spot", "refused", "AWS refuses"),
    ("network of a group", cluster(group(OverrideVpcConfig={"Subnets": ["subnet-2"]})),
     f"{GROUP}.OverrideVpcConfig.Subnets", "refused", "AWS refuses"),
    ("node type", cluster(group(SlurmConfig={"NodeType": "Login", "PartitionNames": ["train"]})),
     f"{GROUP}.SlurmConfig.NodeType", "refused", "AWS refuses"),
    ("partition", cluster(group(SlurmConfig={"NodeType": "Compute", "PartitionNames": ["big"]})),
     f"{GROUP}.SlurmConfig.PartitionNames", "in place", "partitions"),
    ("window", cluster(group(ScheduledUpdateConfig={"ScheduleExpression": "cron(0 3 ? * SUN *)"})),
     f"{GROUP}.ScheduledUpdateConfig.ScheduleExpression", "in place", "no node is touched before it opens"),
    ("patching", cluster(group(AutoPatchConfig={"PatchingStrategy": "WhenIdle"})),
     f"{GROUP}.AutoPatchConfig.PatchingStrategy", "in place", "none is touched"),
    ("labels", cluster(group(KubernetesConfig={"Labels": {"a": "b"}})),
     f"{GROUP}.KubernetesConfig.Labels.a", "in place", "nodes that are there"),
    ("a restricted group", cluster(group(), RestrictedInstanceGroups=[{"InstanceGroupName": "tune"}]),
     "RestrictedInstanceGroups[tune]", "in place", "restricted group"),
    ("image", cluster(group(ImageId="ami-1")), f"{GROUP}.ImageId", "refused", "UpdateClusterSoftware"),
    ("release", cluster(group(ImageReleaseVersion="1.2.3")),
     f"{GROUP}.ImageReleaseVersion", "rolling", "root volumes are wiped"),
    ("scripts", cluster(group(LifeCycleConfig={"SourceS3Uri": "s3://b/2", "OnInitComplete": "run.sh"})),
     f"{GROUP}.LifeCycleConfig.SourceS3Uri", "needs scale-to-zero", "only new nodes"),
    ("role", cluster(group(ExecutionRole="arn:aws:iam::111122223333:role/other")),
     f"{GROUP}.ExecutionRole", "refused", "by the guide"),
    ("threads", cluster(group(ThreadsPerCore=1)),
     f"{GROUP}.ThreadsPerCore", "refused", "by the guide"),
    ("interface", cluster(group(NetworkInterface={"InterfaceType": "efa"})),
     f"{GROUP}.NetworkInterface.InterfaceType", "refused", "unverified"),
    ("plan", cluster(group(TrainingPlanArn="arn:1")),
     f"{GROUP}.TrainingPlanArn", "refused", "unverified"),
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


def test_a_cluster_cannot_leave_its_database() -> None:
    """The database is an object: what goes is everything in it."""
    until_now = {"Slurm": {"SlurmConfigStrategy": "Merge", "AccountingDatabase": {"Endpoint": "e"}}}
    (change,) = changes(CLUSTER, cluster(Orchestrator=until_now), cluster())

    assert change.refused and "cannot go back" in change.reason


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


def test_a_group_keeps_the_keys_of_its_volumes() -> None:
    (change,) = changes(CLUSTER, cluster(), volumes(root={"VolumeKmsKeyId": "z"}))

    assert (change.verdict, "keeps its volumes" in change.reason) == ("refused", True)


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
    (LUSTRE, lustre(), lustre(StorageCapacity=19200), "refused", "AWS refuses this: capacity only grows"),
    (LUSTRE, lustre(), lustre(MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 6000}),
     "refused", "AWS refuses this: metadata"),
    (LUSTRE, lustre(), lustre(MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 24000}),
     "in place", "never downwards"),
    (LUSTRE, lustre(), lustre(ThroughputCapacity=4000), "refused", "AWS refuses"),
    (LUSTRE, lustre(), lustre(ThroughputCapacity=12000), "in place", "where it is"),
    (LUSTRE, lustre(), lustre(DataCompressionType="LZ4"), "in place", "where it is"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "StorageCapacity": 512}, "refused", "AWS refuses"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "OpenZFSConfiguration": {"DeploymentType": "SINGLE_AZ_HA_2",
     "ThroughputCapacity": 640}}, "rolling", "some minutes"),
    (LUSTRE, OPENZFS_OLD, {**OPENZFS_OLD, "OpenZFSConfiguration": {"DeploymentType": "SINGLE_AZ_2",
     "ThroughputCapacity": 320}}, "DATA LOSS", "at creation"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "DBInstanceClass": "db.m7g.xlarge"}, "rolling", "restarts"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "AllocatedStorage": "200"}, "in place", "24 hours"),
    ("AWS::RDS::DBInstance", RDS_OLD, {**RDS_OLD, "AllocatedStorage": "50"}, "refused", "AWS refuses"),
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
     "refused", "only the version"),
    ("AWS::EKS::Cluster", {"Version": "1.33"}, {"Version": "1.34"}, "rolling", "one version"),
    ("AWS::EKS::Cluster", {"Version": "1.10"}, {"Version": "1.9"}, "refused", "7 days"),
    ("AWS::EC2::PlacementGroup", {"Strategy": "cluster"}, {"Strategy": "spread"}, "replaced", "creation"),
    ("AWS::EC2::PlacementGroup", {}, {"Tags": [{"Key": "a", "Value": "b"}]}, "replaced", "even tags"),
    ("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24"}, {"CidrBlock": "10.0.1.0/24"}, "replaced", "creation"),
    ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}, {"CidrBlock": "10.1.0.0/16"}, "replaced", "creation"),
    ("AWS::KMS::Key", {"KeyPolicy": {"a": 1}}, {"KeyPolicy": {"a": 2}}, "in place", "where it is"),
    ("AWS::S3::Bucket", {"BucketName": "one"}, {"BucketName": "two"}, "DATA LOSS", "every object"),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 30}, {"RetentionInDays": 7}, "DATA AT RISK", "deleted"),
    ("AWS::Logs::LogGroup", {}, {"RetentionInDays": 7}, "DATA AT RISK", "for ever"),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 7}, {"RetentionInDays": 30}, "in place", "where it is"),
    ("AWS::KMS::Key", {}, {"Enabled": False}, "jobs at risk", "enabled again"),
    ("AWS::KMS::Key", {"Enabled": False}, {"Enabled": True}, "in place", "where it is"),
    ("AWS::EC2::Route", {"NatGatewayId": "a"}, {"NatGatewayId": "b"}, "jobs at risk", "another gateway"),
    ("AWS::EC2::VPC", {"EnableDnsSupport": True}, {"EnableDnsSupport": False}, "jobs at risk", "resolver"),
    ("AWS::EKS::Cluster", {"ResourcesVpcConfig": {"EndpointPrivateAccess": True}},
     {"ResourcesVpcConfig": {"EndpointPrivateAccess": False}}, "jobs at risk", "NotReady"),
    ("AWS::EKS::AccessEntry", {"KubernetesGroups": ["a", "b"]}, {"KubernetesGroups": ["a"]},
     "jobs at risk", "loses"),
    (DRA, {"S3": {"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}}}, {}, "DATA AT RISK", "only"),
    (DRA, {"S3": {"AutoExportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}}},
     {"S3": {"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}}}, "in place", "stays in S3"),
    (DRA, {"S3": {"AutoImportPolicy": {"Events": ["NEW"]}}},
     {"S3": {"AutoImportPolicy": {"Events": ["DELETED", "NEW"]}}}, "DATA AT RISK", "deleted in S3"),
    (DRA, {}, {"S3": {"AutoImportPolicy": {"Events": ["NEW"]}}}, "in place", "where it is"),
    ("AWS::Lambda::LayerVersion", {"Content": {"S3Key": "a.zip"}}, {"Content": {"S3Key": "b.zip"}},
     "in place", "new version of the layer"),
    ("AWS::Lambda::Function", {"Code": {"S3Key": "a"}}, {"Code": {"S3Key": "b"}}, "in place", "new code"),
    ("Custom::CDKBucketDeployment", {"SourceObjectKeys": ["a"]}, {"SourceObjectKeys": ["b"]},
     "in place", "uploaded again"),
    ("Custom::Own", {"A": 1}, {"A": 2}, "not known", "function behind it"),
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
        (pcluster(), pcluster(head="m5.large"), "refused", "AWS refuses"),
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
    ("least", "most", "words"),
    [(2, 6, "fewer nodes always run"), (2, 8, "shrinking"), (6, 10, "nodes are added")],
)
def test_a_minimum_that_moves_with_its_maximum_says_which_way(least: int, most: int, words: str) -> None:
    old, new = pcluster(), pcluster()
    for one, minimum, maximum in ((old, 4, 8), (new, least, most)):
        (queue,) = one["ClusterConfiguration"]["Scheduling"]["SlurmQueues"]
        queue["ComputeResources"] = [{"Name": "p5", "MinCount": minimum, "MaxCount": maximum}]
    found = {one.path.rpartition(".")[2]: one for one in changes("Custom::PclusterCluster", old, new)}

    assert words in found["MinCount"].reason, found["MinCount"]


def test_slurms_settings_of_parallelcluster_stop_no_fleet() -> None:
    """Their update policy is SUPPORTED (pcluster, cluster_schema.py)."""
    old, new = pcluster(), pcluster()
    new["ClusterConfiguration"]["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"] = [{"KillWait": 60}]
    newer = pcluster()
    newer["ClusterConfiguration"]["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"] = [{"KillWait": 90}]
    for before, after in ((old, new), (new, newer), (new, old)):
        (change,) = changes("Custom::PclusterCluster", before, after)
        assert (change.verdict, "nodes go on" in change.reason) == ("in place", True), change.reason


@pytest.mark.parametrize(
    ("kind", "attributes", "verdict", "words"),
    [
        (LUSTRE, {}, "DATA LOSS", FSX_LOSS),
        (LUSTRE, {"DeletionPolicy": "Delete"}, "DATA LOSS", FSX_LOSS),
        (LUSTRE, {"DeletionPolicy": "Retain"}, "jobs at risk", "retained, no longer managed"),
        (LUSTRE, {"DeletionPolicy": "Snapshot"}, "DATA LOSS", FSX_LOSS),  # FSx has no snapshots here
        ("AWS::RDS::DBInstance", {"DeletionPolicy": "Snapshot"}, "replaced", "last snapshot"),
        ("AWS::S3::Bucket", {}, "DATA LOSS", "every object"),
        ("AWS::KMS::Key", {}, "DATA LOSS", "encrypted"),
        ("AWS::Logs::LogGroup", {}, "DATA LOSS", "log event"),
        ("AWS::EC2::NatGateway", {}, "replaced", "no longer in the template"),
        ("AWS::EC2::SecurityGroupIngress", {}, "jobs at risk", "the rule ends"),
        ("AWS::FSx::DataRepositoryAssociation", {}, "jobs at risk", "can no longer be read"),
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

    assert change.verdict == "DATA AT RISK" and "guard" in change.reason


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
