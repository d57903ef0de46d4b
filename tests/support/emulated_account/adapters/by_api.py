"""Resources that one API call creates and one deletes: types whose model in moto's CloudFormation is broken.

The calls go through botocore's models to moto's own API, which refuses what it knows of.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any, ClassVar

import jmespath
from botocore import xform_name

from emulated_account import api_model
from emulated_account.adapter import Adapter
from emulated_account.refusal import ApiError

Request = Callable[[dict[str, Any]], dict[str, Any]]


class ByApi(Adapter):
    """A row: operations, the request, and where the answer has identifier and attributes."""

    service: ClassVar[str]
    operations: ClassVar[tuple[str, str]]
    request: ClassVar[Request]
    identifier: ClassVar[str]
    found: ClassVar[dict[str, str]]
    deletion: ClassVar[dict[str, Any]]

    def create(self) -> None:
        request = type(self).request(self.properties)
        answer = self._call(self.operations[0], request) | {"own": self.properties, "request": request}
        self.physical_resource_id = jmespath.search(self.identifier, answer)
        self.attributes = {name: jmespath.search(path, answer) for name, path in self.found.items()}
        self.settle(self.properties)

    def settle(self, properties: dict[str, Any]) -> None:
        """Calls that follow the creation, and make a change."""

    def update(self, properties: dict[str, Any]) -> None:
        self.settle(properties)

    def remove(self) -> None:
        self._call(self.operations[1], {key: self._identity(value) for key, value in self.deletion.items()})

    def _identity(self, value: Any) -> Any:
        """An ellipsis is the identifier; a text that begins with a dot is a property or attribute."""
        if isinstance(value, list):
            return [self._identity(item) for item in value]
        if value is ...:
            return self.physical_resource_id
        if isinstance(value, str) and value.startswith("."):
            return self.attributes.get(value[1:]) or self.properties[value[1:]]
        return value

    def _call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        request = api_model.judge(self.service, operation, parameters)
        return getattr(self.place.client(self.service), xform_name(operation))(**request)


def _specification(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    tags = properties.get("Tags", [])
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


class RouteTable(ByApi):
    resource_type = "AWS::EC2::RouteTable"
    judged_by = "ec2:CreateRouteTable"
    service = "ec2"
    operations = ("CreateRouteTable", "DeleteRouteTable")
    request = staticmethod(lambda own: {"VpcId": own["VpcId"]} | _specification("route-table", own))
    identifier = "RouteTable.RouteTableId"
    found: ClassVar = {"RouteTableId": "RouteTable.RouteTableId"}
    deletion: ClassVar = {"RouteTableId": ...}


class SubnetRouteTableAssociation(ByApi):
    """Moto's own is identified by its table, and is never deleted."""

    resource_type = "AWS::EC2::SubnetRouteTableAssociation"
    judged_by = "ec2:AssociateRouteTable"
    service = "ec2"
    operations = ("AssociateRouteTable", "DisassociateRouteTable")
    request = staticmethod(lambda own: {key: own[key] for key in ("RouteTableId", "SubnetId")})
    identifier = "AssociationId"
    found: ClassVar = {"Id": "AssociationId"}
    deletion: ClassVar = {"AssociationId": ...}

    def create(self) -> None:
        client = self.place.client("ec2")
        tables = client.describe_route_tables(RouteTableIds=[self.properties["RouteTableId"]])["RouteTables"]
        subnets = client.describe_subnets(SubnetIds=[self.properties["SubnetId"]])["Subnets"]
        if tables[0]["VpcId"] != subnets[0]["VpcId"]:
            raise ApiError("InvalidParameterValue", "route table and subnet belong to different networks")
        super().create()


def row(
    resource_type: str,
    create: str,
    delete: str,
    deletion: dict[str, Any],
    identifier: str,
    found: dict[str, str],
    request: Request | None = None,
) -> type[ByApi]:
    """A type whose request is its properties, where nothing else is said."""
    service, _, operation = create.partition(":")
    own = {
        "resource_type": resource_type,
        "judged_by": create,
        "service": service,
        "operations": (operation, delete),
        "request": staticmethod(request or (lambda own: api_model.known_to(service, operation, own))),
        "identifier": identifier,
        "found": found,
        "deletion": deletion,
    }
    return type(resource_type.replace("AWS::", "").replace("::", ""), (ByApi,), own)


class Key(ByApi):
    resource_type = "AWS::KMS::Key"
    judged_by = "kms:CreateKey"
    service = "kms"
    operations = ("CreateKey", "ScheduleKeyDeletion")
    identifier = "KeyMetadata.KeyId"
    found: ClassVar = {"Arn": "KeyMetadata.Arn", "KeyId": "KeyMetadata.KeyId"}
    deletion: ClassVar = {"KeyId": ..., "PendingWindowInDays": 30}

    @staticmethod
    def request(own: dict[str, Any]) -> dict[str, Any]:
        policy = own.get("KeyPolicy", {})
        return api_model.known_to("kms", "CreateKey", own) | {
            "Policy": policy if isinstance(policy, str) else json.dumps(policy),
            "Tags": [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in own.get("Tags", [])],
        }

    def settle(self, properties: dict[str, Any]) -> None:
        rotates = properties.get("EnableKeyRotation") in (True, "true")
        self._call(
            "EnableKeyRotation" if rotates else "DisableKeyRotation", {"KeyId": self.physical_resource_id}
        )
        policy = self.request(properties)["Policy"]
        self._call(
            "PutKeyPolicy", {"KeyId": self.physical_resource_id, "PolicyName": "default", "Policy": policy}
        )


# Seconds: Lambda's quota of a function's timeout.
LONGEST = 900


class Function(ByApi):
    """Moto's own creation drops layers, architectures and tags."""

    resource_type = "AWS::Lambda::Function"
    judged_by = "lambda:CreateFunction"
    service = "lambda"
    operations = ("CreateFunction", "DeleteFunction")
    identifier = "FunctionName"
    found: ClassVar = {"Arn": "FunctionArn"}
    deletion: ClassVar = {"FunctionName": ...}

    def create(self) -> None:
        name = self.properties.get("FunctionName", self.place.generated_name(64))
        self.properties = self.properties | {"FunctionName": name}
        if int(self.properties.get("Timeout", 3)) > LONGEST:
            message = f"Value '{self.properties['Timeout']}' at 'timeout' must be at most {LONGEST}"
            raise ApiError("ValidationException", message)
        roles = self.place.client("iam").list_roles()["Roles"]
        role = next((one for one in roles if one["Arn"] == self.properties["Role"]), None)
        if "lambda.amazonaws.com" not in str(role and role["AssumeRolePolicyDocument"]):
            message = "The role defined for the function cannot be assumed by Lambda."
            raise ApiError("InvalidParameterValueException", message)
        super().create()

    @staticmethod
    def request(own: dict[str, Any]) -> dict[str, Any]:
        code = dict(own["Code"])
        if "ZipFile" in code:
            code["ZipFile"] = _archive(code["ZipFile"], own["Runtime"])
        return api_model.known_to("lambda", "CreateFunction", own) | {"Code": code}

    def update(self, properties: dict[str, Any]) -> None:
        name = {"FunctionName": self.physical_resource_id}
        request = self.request(properties | name)
        self._call("UpdateFunctionCode", request["Code"] | name)
        self._call(
            "UpdateFunctionConfiguration",
            api_model.known_to("lambda", "UpdateFunctionConfiguration", request),
        )


def _archive(text: str, runtime: str) -> bytes:
    """Code that a template has as text is a file called index."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("index.py" if runtime.startswith("python") else "index.js", text)
    return data.getvalue()


class LayerVersion(ByApi):
    resource_type = "AWS::Lambda::LayerVersion"
    judged_by = "lambda:PublishLayerVersion"
    service = "lambda"
    operations = ("PublishLayerVersion", "DeleteLayerVersion")
    identifier = "LayerVersionArn"
    found: ClassVar = {"LayerVersionArn": "LayerVersionArn"}

    def create(self) -> None:
        name = self.properties.get("LayerName", self.place.logical_id)
        if "S3Key" in (content := self.properties["Content"]):
            self.place.client("s3").head_object(Bucket=content["S3Bucket"], Key=content["S3Key"])
        answer = self._call(
            self.operations[0],
            api_model.known_to("lambda", self.operations[0], self.properties) | {"LayerName": name},
        )
        self.physical_resource_id = self.attributes["LayerVersionArn"] = answer["LayerVersionArn"]

    def remove(self) -> None:
        name, version = self.physical_resource_id.split(":")[-2:]
        self._call(self.operations[1], {"LayerName": name, "VersionNumber": int(version)})
