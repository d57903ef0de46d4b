"""Types that neither moto's CloudFormation nor its API has: judged and stored here, described by nobody.

Each is judged by the published schema, by botocore's model of the operation that creates it, by what its
properties refer to, by names that must be unique, and by resources that still need it when it is deleted.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import jmespath
from botocore.exceptions import ClientError

from emulated_account import api_model
from emulated_account.adapter import Adapter, Place
from emulated_account.refusal import ApiError, say_not_judged


def _listed(name: str, known: list[str]) -> None:
    if name not in known:
        raise ClientError({"Error": {"Code": "NotFound"}}, "Describe")


# Per account, region and type: the resources by identifier.
stores: dict[tuple[str, str, str], dict[str, Stored]] = defaultdict(dict)
LOOKUPS: dict[str, Callable[[Place, str], Any]] = {
    "role": lambda at, arn: at.client("iam").get_role(RoleName=arn.rpartition("/")[2]),
    "profile": lambda at, arn: at.client("iam").get_instance_profile(
        InstanceProfileName=arn.rpartition("/")[2]
    ),
    "subnet": lambda at, name: at.client("ec2").describe_subnets(SubnetIds=[name]),
    "security group": lambda at, name: at.client("ec2").describe_security_groups(GroupIds=[name]),
    "launch template": lambda at, name: at.client("ec2").describe_launch_templates(LaunchTemplateIds=[name]),
    "file system": lambda at, name: _listed(
        name, [one["FileSystemId"] for one in at.client("fsx").describe_file_systems()["FileSystems"]]
    ),
    "bucket": lambda at, path: at.client("s3").head_bucket(Bucket=path.removeprefix("s3://").split("/")[0]),
    "EKS cluster": lambda at, name: at.client("eks").describe_cluster(name=name),
    "secret": lambda at, name: at.client("secretsmanager").describe_secret(SecretId=name),
}


class Stored(Adapter):
    """A row: operation, identifier, attributes, what properties refer to, what must be unique."""

    prefix: ClassVar[str]
    attribute_paths: ClassVar[dict[str, str]]
    # Property (a path): a row of LOOKUPS, or the type of another stored resource.
    refers: ClassVar[dict[str, str]]
    unique: ClassVar[tuple[str, ...]]
    conflict: ClassVar[str]
    # Properties (paths) that the operation calls otherwise.
    renamed: ClassVar[dict[str, str]]

    def create(self) -> None:
        self._judge(self.properties)
        mine = tuple(str(self.properties.get(name)) for name in self.unique)
        for other in self._store().values():
            if self.unique and mine == tuple(str(other.properties.get(name)) for name in self.unique):
                message = f"{self.resource_type} already exists: {', '.join(mine)}"
                raise ApiError(self.conflict, message)
        identity = f"{self.prefix}{uuid.uuid4().hex[:10]}"
        arn = f"arn:aws:{self.judged_by.split(':')[0]}:{self.place.region}:{self.place.account}:{identity}"
        known = {"id": identity, "arn": arn, "own": self.properties}
        self.attributes = {
            name: jmespath.search(path, known) for name, path in self.attribute_paths.items() if name != "Ref"
        }
        self.physical_resource_id = jmespath.search(self.attribute_paths.get("Ref", "id"), known)
        self._store()[self.physical_resource_id] = self
        say_not_judged(f"descriptions of {self.resource_type}: stored here, no API answers")

    def update(self, properties: dict[str, Any]) -> None:
        self._judge(properties)

    def remove(self) -> None:
        names = {self.physical_resource_id, *map(str, self.attributes.values())}
        for (account, region, kind), resources in stores.items():
            if (account, region) != (self.place.account, self.place.region):
                continue
            for other in resources.values():
                if names & set(other.parents(self.resource_type)):
                    message = f"{self.physical_resource_id} is in use by {kind} {other.physical_resource_id}"
                    raise ApiError("ConflictException", message)
        del self._store()[self.physical_resource_id]

    def parents(self, kind: str) -> list[str]:
        """What of a type this resource refers to."""
        return [
            value
            for path, name in self.refers.items()
            if name == kind
            for value in _values(path, self.properties)
        ]

    def _store(self) -> dict[str, Stored]:
        return stores[self.place.account, self.place.region, self.resource_type]

    def _judge(self, properties: dict[str, Any]) -> None:
        service, _, operation = self.judged_by.partition(":")
        if operation:
            request = api_model.known_to(service, operation, _renamed(properties, self.renamed))
            shape: Any = api_model.operation(service, operation).input_shape
            for name in getattr(shape, "required_members", []):
                if (shape and shape.members[name].metadata.get("idempotencyToken")) or name.endswith("Token"):
                    request.setdefault(name, str(uuid.uuid4()))
            api_model.judge(service, operation, request)
        for path, kind in self.refers.items():
            for value in _values(path, properties):
                self._exists(kind, value, path)

    def _exists(self, kind: str, value: str, path: str) -> None:
        if kind in LOOKUPS:
            try:
                LOOKUPS[kind](self.place, value)
            except ClientError as error:
                code = error.response["Error"]["Code"]
                message = f"{path}: the {kind} {value} does not exist ({code})"
                raise ApiError("ResourceNotFoundException", message) from None
            return
        known = stores[self.place.account, self.place.region, kind].values()
        if not any(value in (one.physical_resource_id, *one.attributes.values()) for one in known):
            raise ApiError("ResourceNotFoundException", f"{path}: the {kind} {value} does not exist")


def _renamed(value: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    found = {}
    for key, item in value.items():
        below = {path.partition(".")[2]: name for path, name in names.items() if path.startswith(f"{key}.")}
        found[names.get(key, key)] = _renamed(item, below) if below else item
    return found


def _values(path: str, properties: dict[str, Any]) -> list[str]:
    found = jmespath.search(path, properties)
    return [] if found is None else found if isinstance(found, list) else [found]


def stored(
    resource_type: str,
    judged_by: str,
    prefix: str,
    attributes: dict[str, str],
    refers: dict[str, str],
    unique: tuple[str, ...] = (),
    conflict: str = "ConflictException",
    renamed: dict[str, str] | None = None,
) -> type[Stored]:
    own = {
        "resource_type": resource_type,
        "judged_by": judged_by,
        "prefix": prefix,
        "attribute_paths": attributes,
        "refers": refers,
        "unique": unique,
        "conflict": conflict,
        "renamed": renamed or {},
    }
    return type(resource_type.replace("AWS::", "").replace("::", ""), (Stored,), own)


# Names of errors come from botocore's models of the services; formats of identifiers are Unverified.
STORED = (
    stored(
        "AWS::FSx::DataRepositoryAssociation",
        "fsx:CreateDataRepositoryAssociation",
        "dra-",
        {"AssociationId": "id", "ResourceARN": "arn"},
        {"FileSystemId": "file system", "DataRepositoryPath": "bucket"},
        ("FileSystemId", "FileSystemPath"),
        "BadRequest",
    ),
    stored(
        "AWS::Grafana::Workspace",
        "grafana:CreateWorkspace",
        "g-",
        {"Id": "id", "Endpoint": "id", "CreationTimestamp": "id", "Status": "id"},
        {"RoleArn": "role", "VpcConfiguration.SubnetIds": "subnet"},
        renamed={
            "Name": "workspaceName",
            "Description": "workspaceDescription",
            "DataSources": "workspaceDataSources",
            "NotificationDestinations": "workspaceNotificationDestinations",
            "RoleArn": "workspaceRoleArn",
        },
    ),
    stored(
        "AWS::PCS::Cluster",
        "pcs:CreateCluster",
        "pcs_",
        {"Ref": "arn", "Arn": "arn", "Id": "id"},
        {"Networking.SubnetIds": "subnet", "Networking.SecurityGroupIds": "security group"},
        ("Name",),
        renamed={"Name": "clusterName"},
    ),
    stored(
        "AWS::PCS::ComputeNodeGroup",
        "pcs:CreateComputeNodeGroup",
        "pcs_",
        {"Ref": "arn", "Arn": "arn", "Id": "id"},
        {
            "ClusterId": "AWS::PCS::Cluster",
            "SubnetIds": "subnet",
            "IamInstanceProfileArn": "profile",
            "CustomLaunchTemplate.TemplateId": "launch template",
        },
        ("ClusterId", "Name"),
        renamed={
            "Name": "computeNodeGroupName",
            "ClusterId": "clusterIdentifier",
            "CustomLaunchTemplate.TemplateId": "id",
        },
    ),
    stored(
        "AWS::PCS::Queue",
        "pcs:CreateQueue",
        "pcs_",
        {"Ref": "arn", "Arn": "arn", "Id": "id"},
        {
            "ClusterId": "AWS::PCS::Cluster",
            "ComputeNodeGroupConfigurations[].ComputeNodeGroupId": "AWS::PCS::ComputeNodeGroup",
        },
        ("ClusterId", "Name"),
        renamed={"Name": "queueName", "ClusterId": "clusterIdentifier"},
    ),
    stored(
        "AWS::EKS::Addon",
        "eks:CreateAddon",
        "addon/",
        {"Ref": "join('|', [own.ClusterName, own.AddonName])", "Arn": "arn"},
        {"ClusterName": "EKS cluster", "ServiceAccountRoleArn": "role"},
        ("ClusterName", "AddonName"),
        "ResourceInUseException",
    ),
    stored(
        "AWS::EKS::AccessEntry",
        "eks:CreateAccessEntry",
        "access-entry/",
        {"Ref": "join('|', [own.PrincipalArn, own.ClusterName])", "AccessEntryArn": "arn"},
        {"ClusterName": "EKS cluster"},
        ("ClusterName", "PrincipalArn"),
        "ResourceInUseException",
    ),
    stored(
        "AWS::EKS::PodIdentityAssociation",
        "eks:CreatePodIdentityAssociation",
        "a-",
        {"Ref": "arn", "AssociationArn": "arn", "AssociationId": "id"},
        {"ClusterName": "EKS cluster", "RoleArn": "role"},
        ("ClusterName", "Namespace", "ServiceAccount"),
        "ResourceInUseException",
    ),
    # Moto has sources of logs for a few services only.
    stored(
        "AWS::Logs::DeliverySource",
        "logs:PutDeliverySource",
        "delivery-source:",
        {"Ref": "own.Name", "Arn": "arn"},
        {},
        ("Name",),
    ),
    stored(
        "AWS::Logs::Delivery",
        "logs:CreateDelivery",
        "delivery:",
        {"DeliveryId": "id", "Arn": "arn"},
        {"DeliverySourceName": "AWS::Logs::DeliverySource"},
        ("DeliverySourceName", "DeliveryDestinationArn"),
    ),
    stored(
        "AWS::SecretsManager::SecretTargetAttachment",
        "secretsmanager",
        "attachment-",
        {"Ref": "own.SecretId", "Id": "own.SecretId"},
        {"SecretId": "secret"},
        ("SecretId",),
    ),
)
