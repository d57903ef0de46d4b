"""The cluster's properties, held against botocore's model of CreateCluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from project import ENVIRONMENTS
from templates import Synthesised

MODEL = (
    botocore.session.get_session().get_service_model("sagemaker").operation_model("CreateCluster").input_shape
)
KNOWN = {
    "DnsName": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
    "MountName": "abcdefgh",
    "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
    "SourceS3Uri": "s3://sagemaker-scripts/prod/0123456789ab",
    "VolumeKmsKeyId": "arn:aws:kms:us-east-2:111122223333:key/12345678-1234-1234-1234-123456789012",
    "Endpoint": "db.example.com",
    "SecretArn": "arn:aws:secretsmanager:us-east-2:111122223333:secret:slurm-AbCdEf",
    "SecurityGroupIds": "sg-0123456789abcdef0",
    "Subnets": "subnet-0123456789abcdef0",
}
"""What a deploy puts in place of each token, by property."""


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_api_takes_the_cluster(name: str, synthesised: Callable[[str], Synthesised]) -> None:
    (cluster,) = synthesised(name).resources("AWS::SageMaker::Cluster").values()
    request = resolved(cluster["Properties"])

    assert ParamValidator().validate(request, MODEL).generate_report() == ""
    assert list(enums_and_patterns(request, MODEL, "")) == []


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
    elif shape.type_name == "string":
        pattern = shape.metadata.get("pattern")
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value} is none of {shape.enum}"
        elif pattern and r"\p" not in pattern and not re.fullmatch(pattern, value):  # \p is Java's, in tags
            yield f"{path}: {value} does not match {pattern}"
