"""No key of another tool is dropped unseen: each of its own schema is carried over, told, or known not to be
ours. `expected/keys-*.txt` has the answer for each; `--snapshot-update` writes them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from import_audit import Draft, answers
from import_samples import FOLDER
from needs import need_setup
from parallelcluster.harness import PYTHON
from project import ROOT

from ultracluster.imports import (
    eks_running,
    eksctl,
    hyperpod,
    hyperpod_running,
    pcluster,
    pcs_running,
)
from ultracluster.imports.surroundings import Asked, Subnet, Surroundings

pytestmark = pytest.mark.slow

SUBNET = Subnet(
    id="subnet-0123456789abcdef0",
    cidr="10.4.0.0/18",
    zone_id="usw2-az2",
    vpc="vpc-0123456789abcdef0",
    vpc_cidr="10.4.0.0/16",
)
FILE = Asked(region="us-west-2", zone_id="usw2-az2")
RUNNING = Asked(
    region="us-west-2",
    around=Surroundings(account="111122223333", region="us-west-2", subnets={SUBNET.id: SUBNET}),
)
VPC = {"Subnets": [SUBNET.id], "SecurityGroupIds": ["sg-0123456789abcdef0"]}


def shape_of(service: str, name: str, *, shape: str = "") -> Any:
    """Of an operation's input or output, or of a shape, by botocore's model."""
    model = ServiceModel(Loader().load_service_model(service, "service-2"))
    found = model.shape_for(shape) if shape else model.operation_model(name).output_shape
    if name.startswith("Create"):
        found = model.operation_model(name).input_shape
    return _shape(found, ())


def _shape(shape: Any, above: tuple[str, ...]) -> Any:
    if shape.name in above:
        return "object"
    if shape.type_name == "structure" and shape.members:
        return {key: _shape(one, (*above, shape.name)) for key, one in shape.members.items()}
    if shape.type_name == "list":
        return [_shape(shape.member, above)]
    if getattr(shape, "enum", None):
        return "enum:" + "|".join(shape.enum[:30])
    types = {"structure": "object", "map": "object", "long": "integer", "double": "integer"}
    return types.get(shape.type_name, shape.type_name)


def check(name: str, found: dict[str, str], silent: dict[str, str], request: pytest.FixtureRequest) -> None:
    """Each answer is what it was, none is `unknown`, and where nothing happens the reason is written here."""
    text = "".join(f"{answer:8} {path}\n" for path, answer in sorted(found.items()))
    file = FOLDER / "expected" / f"keys-{name}.txt"
    if request.config.option.update_snapshots:
        file.write_text(text, encoding="utf-8")
    assert [path for path, answer in found.items() if answer == "unknown"] == []
    unsaid = [path for path, answer in found.items() if answer == "nothing"]
    assert [path for path in unsaid if not any(path.startswith(one) for one in silent)] == []
    assert [
        one for one in silent if not any(path.startswith(one) for path in unsaid)
    ] == []  # no reason too many
    assert text == file.read_text(encoding="utf-8")


GROUP = {"name": "gpu", "instanceType": "g5.12xlarge", "desiredCapacity": 2, "efaEnabled": True}
EKSCTL: dict[str, str] = {
    "apiVersion": "says whose file it is",
    "kind": "says whose file it is",
    "managedNodeGroups[].ebsOptimized": "every type of the catalogue is",
    "nodeGroups[].ebsOptimized": "every type of the catalogue is",
    "managedNodeGroups[].instanceTypes[]": "instanceType is there, too",
    "managedNodeGroups[].volumeName": "where the image has its root volume",
    "nodeGroups[].volumeName": "where the image has its root volume",
    "metadata.annotations": "are eksctl's own",
    "metadata.region": "is the same as that of the document",
}


def test_every_key_of_eksctl(request: pytest.FixtureRequest) -> None:
    shape = json.loads((Path(__file__).parent / "eksctl_keys.json").read_text())["keys"]
    base = {
        "metadata": {"name": "a", "region": "us-west-2"},
        "managedNodeGroups": [GROUP],
        "nodeGroups": [{**GROUP, "name": "other"}],
    }
    check("eksctl", answers(shape, [base], lambda one: eksctl.drafted(one, "a", FILE)), EKSCTL, request)


PCLUSTER: dict[str, str] = {
    "Region": "is the same as that of the document",
    "Scheduling.SlurmQueues[].ComputeResources[].Instances[]": "InstanceType is there, too",
    "SharedStorage[].": "the whole file system is one row, or the name only names it",
}
LINK = {"Name": "l", "FileSystemPath": "/a", "DataRepositoryPath": "s3://bucket/a"}
EFS = {
    "InstanceType": "m5.2xlarge",
    "SharedStorageType": "Efs",
    "LocalStorage": {"RootVolume": {"VolumeType": "io2"}},
}
STORAGE: list[dict[str, Any]] = [
    *(
        {"MountDir": "/x", "StorageType": kind}
        for kind in ("Ebs", "Efs", "FsxOntap", "FsxOpenZfs", "FileCache")
    ),
    *(
        {"MountDir": "/x", "StorageType": "FsxLustre", "FsxLustreSettings": {"StorageCapacity": 1200, **more}}
        for more in (
            {"DeploymentType": "PERSISTENT_1", "StorageType": "HDD", "DataRepositoryAssociations": [LINK]},
            {"DeploymentType": "PERSISTENT_1", "ImportPath": "s3://bucket"},
        )
    ),
]


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {**base, **changes}


def test_every_key_of_parallelcluster(request: pytest.FixtureRequest) -> None:
    need_setup("ParallelCluster", PYTHON.exists())
    program = ROOT / "tests" / "support" / "parallelcluster" / "keys.py"
    printed = subprocess.run([PYTHON, program], capture_output=True, check=True, text=True).stdout
    shape = json.loads(printed.splitlines()[-1])
    base: dict[str, Any] = {
        "Region": "us-west-2",
        "Image": {"Os": "ubuntu2204"},
        "HeadNode": {"InstanceType": "m5.2xlarge"},
        "LoginNodes": {"Pools": [{"Name": "login", "InstanceType": "m5.2xlarge"}]},
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmQueues": [
                {
                    "Name": "q",
                    "ComputeResources": [{"Name": "r", "InstanceType": "g5.12xlarge", "MaxCount": 4}],
                }
            ],
        },
        "SharedStorage": [
            {
                "Name": "data",
                "MountDir": "/fsx",
                "StorageType": "FsxLustre",
                "FsxLustreSettings": {"StorageCapacity": 1200},
            }
        ],
    }
    bases = [base, *(changed(base, {"SharedStorage": [{"Name": "x", **one}]}) for one in STORAGE)]
    queue = base["Scheduling"]["SlurmQueues"][0]
    bucket = {"Scheduling": {"SlurmQueues": [{**queue, "Iam": {"S3Access": [{"BucketName": "bucket"}]}}]}}
    bases += [changed(base, {**bucket, "Tags": [{"Key": "a"}], "HeadNode": EFS})]
    draft: Draft = lambda one: pcluster.drafted(one, "a", FILE)  # noqa: E731
    check("pcluster", answers(shape, bases, draft), PCLUSTER, request)


HYPERPOD: dict[str, str] = {
    "AutoScaling.AutoScalerType": "there is one",
    "InstanceGroups[].CapacityRequirements.OnDemand": "is the default",
    "InstanceGroups[].ScheduledUpdateConfig.DeploymentConfig.RollingUpdatePolicy": "Type without a Value",
}
ONLY: dict[bool, dict[str, str]] = {
    True: {"Orchestrator.Eks.ClusterArn": "is told with any value"},
    False: {"InstanceGroups[].InstanceRequirements.InstanceTypes[]": "InstanceType is there, too"},
}
UPDATES: list[dict[str, Any]] = [
    {"ScheduledUpdateConfig": {"ScheduleExpression": "cron(0 3 ? * SUN *)"}},
    {"AutoPatchConfig": {"PatchingStrategy": "WhenIdle"}},
    {"InstanceType": None, "InstanceRequirements": {"InstanceTypes": ["ml.g5.12xlarge"]}},
]


@pytest.mark.parametrize("kubernetes", [False, True], ids=["slurm", "eks"])
def test_every_key_of_create_cluster(kubernetes: bool, request: pytest.FixtureRequest) -> None:
    role = {} if kubernetes else {"SlurmConfig": {"NodeType": "Compute"}}
    group = {"InstanceGroupName": "gpu", "InstanceType": "ml.g5.12xlarge", "InstanceCount": 2, **role}
    orchestrator = {"Eks": {"ClusterArn": "x"}} if kubernetes else {"Slurm": {}}
    base = {"ClusterName": "a", "InstanceGroups": [group], "Orchestrator": orchestrator}
    tiers = {"TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20}}
    bases = [
        base,
        *({**base, "InstanceGroups": [{**group, **update}]} for update in UPDATES),
        {**base, **tiers},
    ]
    shape = shape_of("sagemaker", "CreateCluster")
    found = answers(shape, bases, lambda one: hyperpod.drafted(one, "a", FILE))
    check(f"hyperpod-{'eks' if kubernetes else 'slurm'}", found, HYPERPOD | ONLY[kubernetes], request)


STATE = "what it is doing"
TOLD = {"ClusterStatus", "InstanceGroups.Status", "InstanceGroups.CurrentCount"}
RUNNING_HYPERPOD: dict[str, str] = {
    "ClusterName": "a running cluster keeps its name, which a row of its own says",
    **{key: why for key, why in HYPERPOD.items() if key != "AutoScaling.AutoScalerType"},
    **{key.replace("Groups.", "Groups[]."): STATE for key in hyperpod_running.STATE - TOLD},
    "AutoScaling.": "there is one, and its state",
    "InstanceGroups[].AutoPatchConfig.CurrentPatchSchedule": STATE,
    "InstanceGroups[].AutoPatchConfig.DesiredPatchSchedule": STATE,
    "InstanceGroups[].CurrentImageId": "an image of HyperPod's own; one of the account is carried over",
    "InstanceGroups[].DesiredImageId": "an image of HyperPod's own; one of the account is carried over",
    "InstanceGroups[].InstanceRequirements.CurrentInstanceTypes[]": "the desired ones count",
    "InstanceGroups[].InstanceStorageConfigs[].Fsx": "DnsName says which file system",
}


LIVE: list[dict[str, Any]] = [
    *UPDATES[:2],
    {"InstanceType": None, "InstanceRequirements": {"CurrentInstanceTypes": ["ml.g5.12xlarge"]}},
]


def test_every_key_of_describe_cluster(request: pytest.FixtureRequest) -> None:
    group = {
        "InstanceGroupName": "gpu", "InstanceType": "ml.g5.12xlarge", "TargetCount": 2,
        "SlurmConfig": {"NodeType": "Compute"},
    }  # fmt: skip
    base = {"ClusterName": "a", "InstanceGroups": [group], "Orchestrator": {"Slurm": {}}, "VpcConfig": VPC}
    tiers = {"TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20}}
    bases = [base, *({**base, "InstanceGroups": [{**group, **one}]} for one in LIVE), {**base, **tiers}]
    draft: Draft = lambda one: hyperpod_running.drafted(one, "a", RUNNING, None)  # noqa: E731
    found = answers(shape_of("sagemaker", "DescribeCluster"), bases, draft)
    check("running-hyperpod", found, RUNNING_HYPERPOD, request)


TEMPLATE = {
    "BlockDeviceMappings[].": "follows from the image, or the environment's own",
    "CapacityReservationSpecification.CapacityReservationPreference": "its target counts",
    "EbsOptimized": "every type of the catalogue is",
    "SecurityGroups[]": "are named by id, too",
}
RUNNING_EKS: dict[str, str] = {
    **{f"nodegroups[].launchTemplate.{key}": why for key, why in TEMPLATE.items()},
    **dict.fromkeys(
        (
            "cluster.arn", "cluster.certificateAuthority", "cluster.clientRequestToken", "cluster.createdAt",
            "cluster.connectorConfig", "cluster.endpoint", "cluster.id", "cluster.identity",
            "cluster.name", "cluster.platformVersion", "nodegroups[].clusterName",
            "nodegroups[].createdAt", "nodegroups[].modifiedAt", "nodegroups[].nodegroupArn",
            "nodegroups[].releaseVersion", "nodegroups[].resources", "nodegroups[].version",
        ),
        "what it is, and not what it should be",
    ),
    "accessEntries[].type": "entries of nodes and of AWS's services are made again",
    "cluster.encryptionConfig[].resources[]": "there is one: secrets",
    "cluster.kubernetesNetworkConfig.serviceIpv6Cidr": "ipFamily tells it",
    "cluster.resourcesVpcConfig.endpointPrivateAccess": "the API always answers in the VPC",
    "cluster.resourcesVpcConfig.vpcId": "that of the nodes' subnets",
    "nodegroups[].launchTemplate.InstanceType": "instanceTypes is there, too",
    "nodegroups[].launchTemplate.SecurityGroupIds[]": "a group of the old control plane goes with it",
    "nodegroups[].scalingConfig.minSize": "desiredSize counts, and the group does not grow",
}  # fmt: skip


def test_every_key_of_eks(request: pytest.FixtureRequest) -> None:
    template = shape_of("ec2", "", shape="ResponseLaunchTemplateData")
    shape = {
        "cluster": shape_of("eks", "DescribeCluster")["cluster"],
        "nodegroups": [{**shape_of("eks", "DescribeNodegroup")["nodegroup"], "launchTemplate": template}],
        "addons": ["string"],
        "accessEntries": [
            {
                **shape_of("eks", "DescribeAccessEntry")["accessEntry"],
                "policies": shape_of("eks", "ListAssociatedAccessPolicies")["associatedAccessPolicies"],
            }
        ],
        "fargateProfiles": ["string"],
        "podIdentities": ["object"],
    }
    base: dict[str, Any] = {
        "cluster": {"name": "a", "status": "ACTIVE"},
        "nodegroups": [
            {
                "nodegroupName": "gpu",
                "instanceTypes": ["g5.12xlarge"],
                "subnets": [SUBNET.id],
                "scalingConfig": {"desiredSize": 2},
                "launchTemplate": {"UserData": "eA=="},
            }
        ],
    }
    group = base["nodegroups"][0]
    disk = {"BlockDeviceMappings": [{"Ebs": {"VolumeType": "io2"}}], "ImageId": "ami-0123456789abcdef0"}
    other = {
        "cluster": {
            **base["cluster"],
            "status": "FAILED",
            "resourcesVpcConfig": {"endpointPublicAccess": True},
        },
        "nodegroups": [{**group, "status": "DEGRADED", "amiType": "CUSTOM", "launchTemplate": disk}],
    }
    found = answers(shape, [base, other], lambda one: eks_running.drafted(one, "a", RUNNING))
    check("running-eks", found, RUNNING_EKS, request)


RUNNING_PCS: dict[str, str] = {
    **{f"groups[].launchTemplate.{key}": why for key, why in TEMPLATE.items()},
    **dict.fromkeys(
        (
            *(f"{of}.{key}" for of in ("cluster", "groups[]", "queues[]") for key in ("arn", "createdAt")),
            *(f"{of}.modifiedAt" for of in ("cluster", "groups[]", "queues[]")),
            "cluster.endpoints", "cluster.id", "cluster.name", "groups[].clusterId", "queues[].clusterId",
            "queues[].id", "groups[].launchTemplateMode",
        ),
        "what it is, and not what it should be",
    ),
    "cluster.scheduler.type": "there is one",
    "groups[].customLaunchTemplate": "its data is there",
    "groups[].launchTemplate.InstanceType": "instanceConfigs has the types",
}  # fmt: skip


def test_every_key_of_pcs(request: pytest.FixtureRequest) -> None:
    template = shape_of("ec2", "", shape="ResponseLaunchTemplateData")
    shape = {
        "cluster": shape_of("pcs", "GetCluster")["cluster"],
        "queues": [shape_of("pcs", "GetQueue")["queue"]],
        "groups": [
            {**shape_of("pcs", "GetComputeNodeGroup")["computeNodeGroup"], "launchTemplate": template}
        ],
        "tags": "object",
    }
    base: dict[str, Any] = {
        "cluster": {"name": "a", "status": "ACTIVE"},
        "queues": [{"name": "q", "computeNodeGroupConfigurations": [{"computeNodeGroupId": "g"}]}],
        "groups": [
            {
                "name": "gpu",
                "id": "g",
                "instanceConfigs": [{"instanceType": "g5.12xlarge"}],
                "subnetIds": [SUBNET.id],
                "launchTemplate": {"UserData": "eA=="},
            }
        ],
    }
    group = base["groups"][0]
    disk = {"BlockDeviceMappings": [{"Ebs": {"VolumeType": "io2"}}]}
    spot = {"purchaseOption": "SPOT", "status": "CREATE_FAILED", "launchTemplate": disk}
    pair = {"parameterName": "Weight", "parameterValue": "1"}
    keys = ("slurmCustomSettings", "slurmdbdCustomSettings", "cgroupCustomSettings")
    own: dict[str, Any] = {**{key: [pair] for key in keys}, "accounting": {"mode": "STANDARD"}}
    of_queue = {"slurmCustomSettings": [pair]}
    other = {
        "cluster": {"name": "a", "status": "CREATE_FAILED", "slurmConfiguration": own},
        "queues": [{**base["queues"][0], "status": "CREATE_FAILED", "slurmConfiguration": of_queue}],
        "groups": [{**group, **spot, "slurmConfiguration": of_queue}],
    }
    found = answers(shape, [base, other], lambda one: pcs_running.drafted(one, "a", RUNNING))
    check("running-pcs", found, RUNNING_PCS, request)
