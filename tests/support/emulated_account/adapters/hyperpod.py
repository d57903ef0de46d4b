"""HyperPod clusters; moto's accept scripts in `s3://sagemaker-` only. Unverified: codes of its refusals."""

# Moto's stores and models have no types.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOptionalMemberAccess=false
from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from moto.sagemaker import models as moto
from moto.sagemaker.models import sagemaker_backends

from emulated_account import api_model
from emulated_account.adapter import Adapter
from emulated_account.refusal import ApiError

HEAD, LOGIN, COMPUTE = "Controller", "Login", "Compute"


class StoredCluster(moto.Cluster):
    """What moto's API describes, without moto's own refusals."""

    def __init__(self, request: dict[str, Any], account: str, region: str) -> None:
        groups, request = request["InstanceGroups"], dict(request)
        request["InstanceGroups"] = []
        super().__init__(
            request["ClusterName"], region, account, [], request.get("VpcConfig", {}), request.get("Tags")
        )
        self.more = {
            key: request[key]
            for key in ("Orchestrator", "NodeRecovery", "NodeProvisioningMode")
            if key in request
        }
        self.take(groups)

    def take(self, groups: list[dict[str, Any]]) -> None:
        """Instance groups and their nodes; nodes that still belong stay."""
        self.instance_groups = [
            group
            | {
                "CurrentCount": group["InstanceCount"],
                "TargetCount": group["InstanceCount"],
                "Status": "InService",
            }
            for group in groups
        ]
        wanted = {}
        for group in groups:
            for number in range(group["InstanceCount"]):
                key = f"{self.cluster_name}/{group['InstanceGroupName']}/{number}".encode()
                name = f"i-{hashlib.sha256(key).hexdigest()[:17]}"
                wanted[name] = self.nodes.get(name) or moto.ClusterNode(
                    self.region_name,
                    self.account_id,
                    self.cluster_name,
                    group["InstanceGroupName"],
                    group["InstanceType"],
                    group.get("LifeCycleConfig", {}),
                    group["ExecutionRole"],
                    name,
                    group.get("ThreadsPerCore", 1),
                )
        self.nodes = wanted

    def describe(self) -> dict[str, Any]:
        groups = [{k: v for k, v in group.items() if k != "InstanceCount"} for group in self.instance_groups]
        return super().describe() | self.more | {"InstanceGroups": groups}


class Cluster(Adapter):
    resource_type = "AWS::SageMaker::Cluster"
    judged_by = "sagemaker:CreateCluster"

    def create(self) -> None:
        known = api_model.known_to("sagemaker", "CreateCluster", self.properties)
        known.setdefault("ClusterName", self.place.logical_id.lower())
        request = api_model.judge("sagemaker", "CreateCluster", known)
        self._judge(request)
        backend = sagemaker_backends[self.place.account][self.place.region]
        stored = StoredCluster(request, self.place.account, self.place.region)
        backend.clusters[stored.cluster_name] = stored
        self.physical_resource_id = stored.arn
        self.attributes = {
            "ClusterArn": stored.arn,
            "ClusterStatus": stored.status,
            "CreationTime": str(stored.creation_time),
        }

    def update(self, properties: dict[str, Any]) -> None:
        stored = self._stored()
        known = api_model.known_to("sagemaker", "CreateCluster", properties) | {
            "ClusterName": stored.cluster_name
        }
        request = api_model.judge("sagemaker", "CreateCluster", known)
        before = {group["InstanceGroupName"]: group for group in stored.instance_groups}
        for group in request["InstanceGroups"]:
            old = before.get(group["InstanceGroupName"], group)
            for fixed in ("InstanceType", "ExecutionRole", "OverrideVpcConfig"):
                if old.get(fixed) != group.get(fixed):
                    message = f"{fixed} of instance group {group['InstanceGroupName']} cannot be changed"
                    raise ApiError("ValidationException", message)
        self._judge(request)
        stored.take(request["InstanceGroups"])

    def remove(self) -> None:
        self.place.client("sagemaker").delete_cluster(ClusterName=self.physical_resource_id)

    def _stored(self) -> StoredCluster:
        clusters = sagemaker_backends[self.place.account][self.place.region].clusters
        return next(one for one in clusters.values() if one.arn == self.physical_resource_id)

    def _judge(self, request: dict[str, Any]) -> None:
        groups, vpc = request.get("InstanceGroups", []), request.get("VpcConfig")
        names = Counter(group["InstanceGroupName"] for group in groups)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ApiError("ValidationException", f"instance group names must be unique: {', '.join(twice)}")
        orchestrator = request.get("Orchestrator")
        if orchestrator is not None and len(orchestrator) != 1:
            raise ApiError("ValidationException", "exactly one of Eks and Slurm must be set in Orchestrator")
        if "Eks" not in (orchestrator or {}):
            _judge_slurm(groups, vpc)
        if vpc:
            self._judge_network(vpc)
        for group in groups:
            self._judge_group(group)

    def _judge_network(self, vpc: dict[str, Any]) -> None:
        client = self.place.client("ec2")
        subnets = client.describe_subnets(SubnetIds=vpc["Subnets"])["Subnets"]
        groups = client.describe_security_groups(GroupIds=vpc["SecurityGroupIds"])["SecurityGroups"]
        if len({one["VpcId"] for one in subnets + groups}) != 1:
            raise ApiError("ValidationException", "subnets and security groups must be in the same VPC")

    def _judge_group(self, group: dict[str, Any]) -> None:
        name = group["InstanceGroupName"]
        role = self.place.client("iam").get_role(RoleName=group["ExecutionRole"].rpartition("/")[2])["Role"]
        if "sagemaker.amazonaws.com" not in str(role["AssumeRolePolicyDocument"]):
            raise ApiError("ValidationException", f"SageMaker cannot assume the role {role['Arn']} of {name}")
        for storage in group.get("InstanceStorageConfigs", []):
            if key := storage.get("EbsVolumeConfig", {}).get("VolumeKmsKeyId"):
                self.place.client("kms").describe_key(KeyId=key)
            if lustre := storage.get("FsxLustreConfig"):
                self._judge_lustre(lustre, name)
        self._judge_scripts(group)

    def _judge_lustre(self, lustre: dict[str, Any], name: str) -> None:
        systems = self.place.client("fsx").describe_file_systems()["FileSystems"]
        mounts = {(one["DNSName"], one["LustreConfiguration"]["MountName"]) for one in systems}
        if (lustre["DnsName"], lustre["MountName"]) not in mounts:
            raise ApiError(
                "ValidationException",
                f"{name}: no file system has {lustre['DnsName']} and {lustre['MountName']}",
            )

    def _judge_scripts(self, group: dict[str, Any]) -> None:
        cycle, name = group.get("LifeCycleConfig"), group["InstanceGroupName"]
        if not cycle:
            return
        entries = [cycle[key] for key in ("OnCreate", "OnInitComplete") if key in cycle]
        if len(entries) == 2:
            raise ApiError(
                "ValidationException", f"{name}: OnCreate and OnInitComplete are mutually exclusive"
            )
        if not entries or "SourceS3Uri" not in cycle:
            raise ApiError("ValidationException", f"{name}: LifeCycleConfig is incomplete")
        bucket, _, prefix = cycle["SourceS3Uri"].removeprefix("s3://").partition("/")
        found = (
            self.place.client("s3").list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/").get("Contents", [])
        )
        names = {one["Key"].removeprefix(f"{prefix}/") for one in found}
        if entries[0] not in names:
            raise ApiError(
                "ValidationException",
                f"{name}: lifecycle script {entries[0]} is not in {cycle['SourceS3Uri']}",
            )
        if "provisioning_parameters.json" in names and "SlurmConfig" in group:
            raise ApiError(
                "ValidationException", f"{name}: SlurmConfig cannot be used with provisioning_parameters.json"
            )


def _judge_slurm(groups: list[dict[str, Any]], vpc: dict[str, Any] | None) -> None:
    roles = {group["InstanceGroupName"]: group.get("SlurmConfig", {}).get("NodeType") for group in groups}
    if any(roles.values()):
        count = Counter(roles.values())
        if count[HEAD] != 1:
            message = "Cluster must have exactly one InstanceGroup with Controller node type"
            raise ApiError("ValidationException", f"{message}: {count[HEAD]} found")
        if count[LOGIN] > 1:
            raise ApiError(
                "ValidationException", f"{count[LOGIN]} Login groups found: at most one is allowed"
            )
    for group in groups:
        slurm, name = group.get("SlurmConfig", {}), group["InstanceGroupName"]
        partitions = slurm.get("PartitionNames", [])
        if partitions and slurm["NodeType"] != COMPUTE:
            raise ApiError(
                "ValidationException", f"{name}: Partitions can only be assigned to Compute node types"
            )
        if slurm.get("NodeType") == COMPUTE and len(partitions) != 1:
            raise ApiError(
                "ValidationException", f"{name}: Compute node types must have exactly one partition"
            )
        mounts = [one for one in group.get("InstanceStorageConfigs", []) if "FsxLustreConfig" in one]
        if mounts and not vpc:
            raise ApiError("ValidationException", "FSx configurations are only supported for Custom VPC")
        if len(mounts) > 1:
            raise ApiError(
                "ValidationException", f"{name}: at most one FSx for Lustre configuration is allowed"
            )
