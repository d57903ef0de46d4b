"""The cluster's properties, held against botocore's model of CreateCluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from templates import Synthesised, assembly, templates_alone

from ultracluster.config import load
from ultracluster.config.orchestrator import HYPERPOD

MODEL = (
    botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateCluster").input_shape
)
KNOWN = {
    "DnsName": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
    "MountName": "abcdefgh",
    "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
    "SourceS3Uri": "s3://sagemaker-scripts/prod/0123456789ab",
    "VolumeKmsKeyId": "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012",
    "ClusterArn": "arn:aws:eks:us-east-2:111122223333:cluster/hyperpod-eks-p5",
    "ClusterRole": "arn:aws:iam::111122223333:role/karpenter",
    "Endpoint": "db.example.com",
    "SecretArn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:slurm-AbCdEf",
    "SecurityGroupIds": "sg-0123456789abcdef0",
    "Subnets": "subnet-0123456789abcdef0",
}
"""What a deploy puts in place of each token, by property."""


NAMES = [
    name
    for name in ENVIRONMENTS
    if load(ROOT / "environments" / f"{name}.yaml").environment.orchestrator.kind in HYPERPOD
]
KUBERNETES_OPTIONS: dict[str, Any] = {
    "orchestrator.autoscaling": {"max_nodes": 8, "idle_minutes": 30},
    "orchestrator.gpu_plugin": "gpu-operator",
    "orchestrator.tiered_checkpoints_percent": 100,
    "node_groups.train.patching": {
        "kind": "scheduled",
        "schedule": "cron(0 3 ? * SUN *)",
        "batch_percent": 5,
    },
    "node_groups.train.taints": [{"key": "example.com/team", "effect": "NoExecute"}],
    "node_groups.train.image": "ami-0123456789abcdef0",
    "node_groups.elastic": {
        "role": "compute",
        "instance_type": "g6e.24xlarge",
        "instance_types": ["g6e.12xlarge"],
        "count": 0,
        "capacity": {"kind": "spot"},
        "labels": {"example.com/use": "tests"},
        "patching": {"kind": "when-all-idle", "rollback_alarms": ["errors"]},
    },
    "node_groups.shared": {
        "role": "compute",
        "instance_type": "p5.48xlarge",
        "count": 1,
        "threads_per_core": 1,
        "mig_profile": "3g.40gb",
        "taints": [{"key": "shared", "value": "yes", "effect": "PreferNoSchedule"}],
    },
}
"""Every option of HyperPod on EKS at once."""


@pytest.mark.parametrize("name", ["groups", "restricted-groups"])
def test_the_api_takes_groups_of_every_kind(name: str) -> None:
    config = load(ROOT / "environments" / "wishes" / f"{name}.yaml").environment
    template = templates_alone(config)[config.stack_name("cluster")]
    (cluster,) = (one for one in template["Resources"].values() if one["Type"] == "AWS::SageMaker::Cluster")

    assert problems(cluster["Properties"]) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_api_takes_the_cluster(name: str, synthesised: Callable[[str], Synthesised]) -> None:
    (cluster,) = synthesised(name).resources("AWS::SageMaker::Cluster").values()

    assert problems(cluster["Properties"]) == []


def test_the_api_takes_every_option_on_kubernetes() -> None:
    config = loaded(changed(environment_data("hyperpod-eks-p5"), KUBERNETES_OPTIONS)).environment
    made = assembly(config)
    (cluster,) = made.resources("AWS::SageMaker::Cluster").values()
    properties = cluster["Properties"]
    elastic, shared = (
        next(group for group in properties["InstanceGroups"] if group["InstanceGroupName"] == name)
        for name in ("elastic", "shared")
    )

    assert problems(properties) == []
    assert made.findings == set()
    assert properties["AutoScaling"] == {"AutoScalerType": "Karpenter", "Mode": "Enable"}
    assert elastic["InstanceRequirements"] == {"InstanceTypes": ["ml.g6e.24xlarge", "ml.g6e.12xlarge"]}
    assert "InstanceType" not in elastic
    assert elastic["CapacityRequirements"] == {"Spot": {}}
    assert shared["KubernetesConfig"]["Labels"]["nvidia.com/mig.config"] == "all-3g.40gb"
    assert {group["LifeCycleConfig"]["OnCreate"] for group in properties["InstanceGroups"]} == {
        "hyperpod_eks_on_create.sh"
    }


def problems(properties: dict[str, Any]) -> list[str]:
    """What botocore's validator and its model's patterns and enumerations say."""
    request = resolved(properties)
    report = ParamValidator().validate(request, MODEL).generate_report()
    return [*([report] if report else []), *enums_and_patterns(request, MODEL, "")]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("InstanceGroups", 0, "SlurmConfig", "NodeType"), "Worker", "Worker"),
        (("InstanceGroups", 0, "InstanceType"), "ml.p99.48xlarge", "ml.p99.48xlarge"),
        (("ClusterName",), "under_score", "under_score"),
    ],
)
def test_the_check_can_fail(
    path: tuple[Any, ...], value: str, problem: str, synthesised: Callable[[str], Synthesised]
) -> None:
    (cluster,) = synthesised("dev").resources("AWS::SageMaker::Cluster").values()
    request = resolved(cluster["Properties"])
    target = request
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value

    assert any(problem in found for found in enums_and_patterns(request, MODEL, ""))


def resolved(value: Any, key: str = "") -> Any:
    """Properties with every token replaced by what it becomes."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
            return KNOWN[key]
        return {name: resolved(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [resolved(part, key) for part in value]
    return value


def enums_and_patterns(value: Any, shape: Any, path: str):
    """What the client-side validator of botocore leaves to the service."""
    if shape.type_name == "structure":
        for name, part in value.items():
            yield from enums_and_patterns(part, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, part in enumerate(value):
            yield from enums_and_patterns(part, shape.member, f"{path}[{index}]")
    elif shape.type_name == "map":
        for name, part in value.items():
            yield from enums_and_patterns(name, shape.key, f"{path}.{name}")
            yield from enums_and_patterns(part, shape.value, f"{path}.{name}")
    elif shape.type_name == "string":
        pattern = shape.metadata.get("pattern")
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value} is none of {shape.enum}"
        elif pattern and r"\p" not in pattern and not re.fullmatch(pattern, value):  # \p is Java's, in tags
            yield f"{path}: {value} does not match {pattern}"
