"""What counts against a quota: other clusters and instances, by family and purchase."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from preflight_account import OWNER, World, ask, shipped

from ultracluster.account.preflight import quotas

pytestmark = pytest.mark.usefixtures("aws_account")
USAGE = "sagemaker: ml.g6e.12xlarge for cluster usage"


def group(count: int, target: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.g6e.12xlarge",
        "CurrentCount": count,
        "TargetCount": count if target is None else target,
        **more,
    }


def test_other_clusters_count_and_the_environments_own_does_not() -> None:
    world = World(shipped("dev", account=OWNER))
    world.clusters = {
        "one": {"InstanceGroups": [group(1, target=3)]},
        "two": {"InstanceGroups": [group(2, CapacityRequirements={"Spot": {}})]},
        "dev": {"InstanceGroups": [group(2)]},
    }
    rows = ask(quotas, world)
    assert "in use 3, needed 2" in rows[USAGE].found
    total = "sagemaker: Total number of instances allowed across SageMaker HyperPod clusters"
    assert "in use 5, needed 4" in rows[total].found


def test_running_instances_count_by_family_and_purchase() -> None:
    environment = shipped("parallelcluster-p5")
    world = World(environment)
    ec2 = boto3.client("ec2", environment.region)
    image = ec2.register_image(Name="nodes", Architecture="x86_64")["ImageId"]
    ours = {"Key": "parallelcluster:cluster-name", "Value": environment.cluster_name}
    for kind, tag in (("p5.48xlarge", {}), ("p4d.24xlarge", {}), ("m5.xlarge", {}), ("p5.48xlarge", ours)):
        tags = [{"ResourceType": "instance", "Tags": [tag]}] if tag else []
        ec2.run_instances(ImageId=image, InstanceType=kind, MinCount=1, MaxCount=1, TagSpecifications=tags)
    row = ask(quotas, world)["ec2: Running On-Demand P instances"]
    assert f"in use {192 + 96}, needed {8 * 192} vCPUs" in row.found
