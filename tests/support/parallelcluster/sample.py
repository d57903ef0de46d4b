"""A configuration written by hand, as ParallelCluster documents it: what the harness itself is tried on."""

from __future__ import annotations

import copy
from typing import Any

from parallelcluster.account import (
    ACCOUNT,
    BUCKET,
    LUSTRE,
    NODES,
    OPENZFS_VOLUME,
    SUBNET,
    Facts,
    account,
)
from parallelcluster.harness import Case

REGION, ZONE = "us-east-1", "use1-az1"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:db"
POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
SCRIPT = f"s3://{BUCKET}/node.sh"


def configuration(**compute: Any) -> dict[str, Any]:
    """A head node, a login node and one queue with p5; `compute` changes its compute resource."""
    resource = {"Name": "p5", "InstanceType": "p5.48xlarge", "MinCount": 4, "MaxCount": 4}
    return copy.deepcopy(
        {
            "Region": REGION,
            "Imds": {"ImdsSupport": "v2.0"},
            "Image": {"Os": "ubuntu2404"},
            "HeadNode": {
                "InstanceType": "m5.8xlarge",
                "Networking": {"SubnetId": SUBNET, "SecurityGroups": [NODES]},
                "Iam": {"AdditionalIamPolicies": [{"Policy": POLICY}]},
                "CustomActions": {"OnNodeConfigured": {"Script": SCRIPT, "Args": ["controller"]}},
            },
            "Scheduling": {
                "Scheduler": "slurm",
                "SlurmSettings": {
                    "Database": {"Uri": "db.example.com:3306", "UserName": "a", "PasswordSecretArn": SECRET},
                    "CustomSlurmSettings": [{"SlurmctldTimeout": 300}],
                },
                "SlurmQueues": [
                    {
                        "Name": "gpu",
                        "CapacityType": "ONDEMAND",
                        "Networking": {
                            "SubnetIds": [SUBNET],
                            "SecurityGroups": [NODES],
                            "PlacementGroup": {"Enabled": True},
                        },
                        "ComputeResources": [{**resource, "Efa": {"Enabled": True}, **compute}],
                    }
                ],
            },
            "SharedStorage": [
                {
                    "Name": "lustre",
                    "MountDir": "/fsx",
                    "StorageType": "FsxLustre",
                    "FsxLustreSettings": {"FileSystemId": LUSTRE},
                },
                {
                    "Name": "home",
                    "MountDir": "/shared",
                    "StorageType": "FsxOpenZfs",
                    "FsxOpenZfsSettings": {"VolumeId": OPENZFS_VOLUME},
                },
            ],
        }
    )


def queue(configuration: dict[str, Any]) -> dict[str, Any]:
    return configuration["Scheduling"]["SlurmQueues"][0]


def facts(*types: str) -> Facts:
    known = account(region=REGION, zone_id=ZONE, types=["m5.8xlarge", "p5.48xlarge", *types])
    known["secrets"][SECRET] = {"ARN": SECRET, "Name": "db"}
    known["policies"][POLICY] = {"Arn": POLICY, "PolicyName": "AmazonSSMManagedInstanceCore"}
    known["objects"][SCRIPT] = {}
    return known


def sample(name: str, configuration: dict[str, Any], known: Facts | None = None) -> Case:
    return Case(
        name=name,
        cluster_name="gpu",
        region=REGION,
        configuration=configuration,
        facts=facts() if known is None else known,
    )
