"""The resources of PCS, held against botocore's model of the service."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from pcs_support import (
    IMAGE,
)
from templates import Synthesised

Get = Callable[[str], Synthesised]
MODEL = get_session().get_service_model("pcs")


KNOWN = {
    "clusterId": "pcs_0123456789",
    "computeNodeGroupId": "pcs_0123456789",
    "iamInstanceProfileArn": "arn:aws:iam::111122223333:instance-profile/aws-pcs/nodes",
    "id": "lt-0123456789abcdef0",
    "version": "1",
    "subnetIds": "subnet-0123456789abcdef0",
    "securityGroupIds": "sg-0123456789abcdef0",
    "scriptLocation": "s3://example-scripts/cluster/0123456789ab/node.sh",
    "arguments": "fs-0123456789abcdef0.fsx.us-east-2.amazonaws.com",
}
"""What a deploy puts in place of each token, by field of the API."""
RENAMED: dict[str, dict[str, str]] = {
    "AWS::PCS::Cluster": {"name": "clusterName"},
    "AWS::PCS::ComputeNodeGroup": {"name": "computeNodeGroupName", "clusterId": "clusterIdentifier"},
    "AWS::PCS::Queue": {"name": "queueName", "clusterId": "clusterIdentifier"},
}
OPERATIONS = {
    "AWS::PCS::Cluster": "CreateClusterRequest",
    "AWS::PCS::ComputeNodeGroup": "CreateComputeNodeGroupRequest",
    "AWS::PCS::Queue": "CreateQueueRequest",
}


def request(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    """CloudFormation's properties as the API takes them."""
    fields: dict[str, Any] = as_api(properties, "")
    if "scalingConfiguration" in fields and "customLaunchTemplate" in fields:
        template = fields["customLaunchTemplate"]
        fields["customLaunchTemplate"] = {"id": template["templateId"], "version": template["version"]}
    return {RENAMED[kind].get(name, name): value for name, value in fields.items()}


def as_api(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
            return KNOWN.get(key) or KNOWN["id"]
        if key in ("tags", "gresCustomSettings"):
            return value
        return {small(name): as_api(part, small(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [as_api(part, key) for part in value]
    return value


def small(name: str) -> str:
    return "s3VersionId" if name == "S3VersionId" else name[0].lower() + name[1:]


def problems(value: Any, shape: Any, path: str) -> Iterator[str]:
    """What the client-side validator of botocore leaves to the service: patterns and enumerations."""
    if shape.type_name == "structure":
        for name, part in value.items():
            yield from problems(part, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, part in enumerate(value):
            yield from problems(part, shape.member, f"{path}[{index}]")
    elif shape.type_name == "string":
        pattern, longest = shape.metadata.get("pattern"), shape.metadata.get("max")
        if (pattern and not re.fullmatch(pattern, value)) or (longest and len(value) > longest):
            yield f"{path}: {value!r}"
        if shape.enum and value not in shape.enum:
            yield f"{path}: {value!r} is none of {shape.enum}"


def refused(kind: str, properties: dict[str, Any]) -> list[str]:
    shape = MODEL.shape_for(OPERATIONS[kind])
    # CloudFormation reads parameters before it asks the service
    text = re.sub(r"\{\{resolve:ssm:[^}]+\}\}", IMAGE, json.dumps(properties))
    fields = request(kind, json.loads(text))
    report = ParamValidator().validate(fields, shape).generate_report()
    return ([report] if report else []) + list(problems(fields, shape, ""))


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_api_takes_what_is_shipped(kind: str, synthesised: Get) -> None:
    resources = synthesised("pcs-p6-b200").resources(kind)

    assert resources
    for resource in resources.values():
        assert refused(kind, resource["Properties"]) == []


def test_the_check_can_fail(synthesised: Get) -> None:
    kind = "AWS::PCS::ComputeNodeGroup"
    for resource in synthesised("pcs-p6-b200").resources(kind).values():
        properties = resource["Properties"]
        assert "under_score" in refused(kind, properties | {"Name": "under_score"})[0]
        assert "latest" in refused(kind, properties | {"AmiId": "latest"})[0]
        assert "PurchaseOption" in str(refused(kind, properties | {"PurchaseOption": "PurchaseOption"}))
        assert refused(kind, properties | {"ScalingConfiguration": {"MinInstanceCount": -1}})
