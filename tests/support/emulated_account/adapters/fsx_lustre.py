"""File systems of FSx for Lustre and OpenZFS. Unverified: error codes, and what a line says so of."""

from __future__ import annotations

import uuid
from typing import Any

from moto.fsx.models import fsx_backends

from emulated_account import api_model
from emulated_account.adapter import Adapter
from emulated_account.refusal import ApiError

# MBps per TiB of SSD, and the least capacity and step with EFA, in GiB.
EFA_STEP = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
THROUGHPUT = {"PERSISTENT_1": {12, 40, 50, 100, 200}, "PERSISTENT_2": set(EFA_STEP)}
IOPS = {1500, 3000, 6000, *range(12000, 192001, 12000)}
LNET = 988
# MBps by generation of the deployment type (API reference of FSx). Unverified.
OPEN_ZFS = {
    1: (64, 128, 256, 512, 1024, 2048, 3072, 4096),
    2: (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240),
}


class FileSystem(Adapter):
    resource_type = "AWS::FSx::FileSystem"
    judged_by = "fsx:CreateFileSystem"

    def create(self) -> None:
        request = api_model.judge("fsx", "CreateFileSystem", self._request(self.properties))
        if request["FileSystemType"] not in ("LUSTRE", "OPENZFS"):
            raise ApiError("BadRequest", "this account has file systems for Lustre and OpenZFS only")
        _judge_lustre(request) if request["FileSystemType"] == "LUSTRE" else _judge_open_zfs(request)
        self._judge_network(request)
        self._judge_key(request)
        made = self.place.client("fsx").create_file_system(**request)["FileSystem"]
        self.physical_resource_id = made["FileSystemId"]
        mount_name = uuid.uuid4().hex[:8]
        stored = fsx_backends[self.place.account][self.place.region].file_systems[made["FileSystemId"]]
        stored.lustre_configuration = (stored.lustre_configuration or {}) | {"MountName": mount_name}
        self.attributes = {
            "Id": made["FileSystemId"],
            "ResourceARN": made["ResourceARN"],
            "DNSName": made["DNSName"],
            "LustreMountName": mount_name,
            "RootVolumeId": f"fsvol-{uuid.uuid4().hex[:17]}",
        }

    def update(self, properties: dict[str, Any]) -> None:
        old, new = (int(one.get("StorageCapacity", 0)) for one in (self.properties, properties))
        if new < old:
            raise ApiError("BadRequest", "Storage capacity cannot be decreased")
        request = api_model.judge("fsx", "CreateFileSystem", self._request(properties))
        _judge_lustre(request) if request["FileSystemType"] == "LUSTRE" else _judge_open_zfs(request)
        stored = fsx_backends[self.place.account][self.place.region].file_systems[self.physical_resource_id]
        stored.storage_capacity = new

    def remove(self) -> None:
        self.place.client("fsx").delete_file_system(FileSystemId=self.physical_resource_id)

    def _request(self, properties: dict[str, Any]) -> dict[str, Any]:
        return {"ClientRequestToken": str(uuid.uuid4())} | api_model.known_to(
            "fsx", "CreateFileSystem", properties
        )

    def _judge_network(self, request: dict[str, Any]) -> None:
        client = self.place.client("ec2")
        if len(request["SubnetIds"]) != 1:
            raise ApiError("InvalidNetworkSettings", "a file system has exactly one subnet")
        vpc = client.describe_subnets(SubnetIds=request["SubnetIds"])["Subnets"][0]["VpcId"]
        groups = client.describe_security_groups(GroupIds=request.get("SecurityGroupIds", []))[
            "SecurityGroups"
        ]
        if not request.get("SecurityGroupIds"):
            groups = [one for one in groups if one["VpcId"] == vpc and one["GroupName"] == "default"]
        if any(one["VpcId"] != vpc for one in groups):
            raise ApiError("InvalidNetworkSettings", "security groups and subnet must be in the same VPC")
        if request["FileSystemType"] == "LUSTRE" and not any(_admits_itself(one) for one in groups):
            message = (
                "The file system cannot be created because the provided security group "
                f"doesn't permit Lustre LNET network traffic on port {LNET}"
            )
            raise ApiError("InvalidNetworkSettings", message)

    def _judge_key(self, request: dict[str, Any]) -> None:
        key = request.get("KmsKeyId")
        if key and not self.place.client("kms").describe_key(KeyId=key)["KeyMetadata"]["Enabled"]:
            raise ApiError("BadRequest", f"the key {key} is not enabled")


def _judge_open_zfs(request: dict[str, Any]) -> None:
    own = request.get("OpenZFSConfiguration")
    if not own:
        raise ApiError("BadRequest", "OpenZFSConfiguration is required")
    allowed = OPEN_ZFS[1 if own["DeploymentType"].endswith("_1") else 2]
    if own["ThroughputCapacity"] not in allowed:
        raise ApiError("BadRequest", f"ThroughputCapacity {own['ThroughputCapacity']} is none of {allowed}")


def _admits_itself(group: dict[str, Any]) -> bool:
    """Whether a group admits Lustre's port from itself, and lets it out."""
    return all(
        any(
            rule["IpProtocol"] == "-1" or (rule.get("FromPort", 0) <= LNET <= rule.get("ToPort", 0))
            for rule in group[way]
            if any(pair.get("GroupId") == group["GroupId"] for pair in rule["UserIdGroupPairs"])
            or rule["IpRanges"]
        )
        for way in ("IpPermissions", "IpPermissionsEgress")
    )


def _judge_lustre(request: dict[str, Any]) -> None:
    lustre = request.get("LustreConfiguration", {})
    kind = lustre.get("DeploymentType", "SCRATCH_1")
    storage = request.get("StorageType", "SSD")
    capacity, throughput = request.get("StorageCapacity"), lustre.get("PerUnitStorageThroughput")
    if storage == "INTELLIGENT_TIERING":
        if capacity is not None:
            raise ApiError("BadRequest", "StorageCapacity must be absent for Intelligent-Tiering")
        return
    if capacity is None:
        raise ApiError("BadRequest", "StorageCapacity is required")
    if throughput is not None and throughput not in THROUGHPUT.get(kind, set()):
        raise ApiError("BadRequest", f"PerUnitStorageThroughput {throughput} is not valid for {kind}")
    if throughput is None and kind in THROUGHPUT:
        raise ApiError("BadRequest", f"PerUnitStorageThroughput is required for {kind}")
    _judge_capacity(kind, storage, capacity, throughput)
    metadata = lustre.get("MetadataConfiguration")
    if metadata and kind != "PERSISTENT_2":
        raise ApiError("BadRequest", "MetadataConfiguration is supported by PERSISTENT_2 only")
    if metadata and metadata.get("Mode") == "AUTOMATIC" and "Iops" in metadata:
        raise ApiError("BadRequest", "Iops must not be set with AUTOMATIC metadata")
    if metadata and metadata.get("Mode") == "USER_PROVISIONED" and metadata.get("Iops") not in IOPS:
        raise ApiError("BadRequest", f"Iops {metadata.get('Iops')} is not valid")
    version = request.get("FileSystemTypeVersion")
    if kind == "PERSISTENT_2" and version == "2.10":
        raise ApiError("BadRequest", "PERSISTENT_2 needs Lustre 2.12 or 2.15")
    if lustre.get("EfaEnabled"):
        _judge_efa(kind, capacity, throughput, metadata)


def _judge_capacity(kind: str, storage: str, capacity: int, throughput: int | None) -> None:
    step = 3600 if kind == "SCRATCH_1" else 2400
    if storage == "HDD":
        step = 6000 if throughput == 12 else 1800
    if (
        capacity % step
        and not (capacity == 1200 and storage == "SSD")
        and not (kind == "SCRATCH_1" and capacity == 2400)
    ):
        raise ApiError(
            "BadRequest", f"StorageCapacity {capacity} is not valid: 1200 GiB, or multiples of {step} GiB"
        )


def _judge_efa(kind: str, capacity: int, throughput: Any, metadata: dict[str, Any] | None) -> None:
    if kind != "PERSISTENT_2" or not metadata:
        raise ApiError("BadRequest", "EFA needs PERSISTENT_2 and a MetadataConfiguration")
    step = EFA_STEP[throughput]
    if capacity % step:
        raise ApiError("BadRequest", f"with EFA, StorageCapacity must be a multiple of {step} GiB")
