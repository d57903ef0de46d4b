"""Pairs of templates to compare: a HyperPod cluster, a file system, and what changes in them."""

from __future__ import annotations

import json
from typing import Any

from ultracluster.change import Change, blast_radius

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


def refuses(policy: str, name: str, kind: str, action: str = "Update:Delete") -> bool:
    """As CloudFormation's guide reads a policy: what no statement allows is denied, and a denial wins."""
    allowed = False
    for one in json.loads(policy)["Statement"]:
        actions, resources = ([x] if isinstance(x, str) else x for x in (one["Action"], one["Resource"]))
        types = one.get("Condition", {}).get("StringEquals", {}).get("ResourceType", [kind])
        fits = {action, "Update:*"} & set(actions) and {f"LogicalResourceId/{name}", "*"} & set(resources)
        if fits and kind in types:
            if one["Effect"] == "Deny":
                return True
            allowed = True
    return not allowed
