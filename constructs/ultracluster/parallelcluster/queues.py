"""Partitions as ParallelCluster's queues, compute groups as its compute resources."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from ultracluster.config.capacity import Capacity, Reservation, Spot
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterPartition
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import fabric_of, market_options
from ultracluster.model.mounts import SLURMDBD_USER
from ultracluster.model.root_volume import INCLUDED_MBPS, root_iops, root_throughput
from ultracluster.parallelcluster.actions import has_imex, queue_actions
from ultracluster.parallelcluster.deployed_values import DeployedValues
from ultracluster.slurm.configuration import slurm_configuration

Mapped = dict[str, Any]
Value = TypeVar("Value", bound=Hashable)

CAPACITY_TYPES = {"spot": "SPOT", "capacity-block": "CAPACITY_BLOCK"}
"""CapacityType of a queue; ONDEMAND where the kind of capacity is another."""


def queues(cluster: Cluster, settings: ParallelCluster, values: DeployedValues) -> list[Mapped]:
    """All queues.

    Raises:
        ValueError: groups of one partition differ where a queue has one setting.
    """
    return [_queue(cluster, settings, values, name, groups) for name, groups in cluster.partitions.items()]


def slurm_settings(cluster: Cluster, settings: ParallelCluster, values: DeployedValues) -> Mapped:
    """The settings of the scheduler as a whole."""
    scheduler: Mapped = {
        "ScaledownIdletime": settings.scaledown_minutes,
        "QueueUpdateStrategy": settings.queue_update.replace("-", "_").upper(),
        "EnableMemoryBasedScheduling": settings.memory_scheduling,
    }
    if cluster.environment.network.egress == "closed":
        # Route 53, where names of nodes would be entered, is reached through no endpoint of a VPC
        scheduler["Dns"] = {"DisableManagedDns": True, "UseEc2Hostnames": True}
    if database := cluster.environment.storage.accounting_database:
        existing = database.kind == "existing"
        port = database.port if existing else 3306
        username = (database.username or "slurm") if existing else SLURMDBD_USER
        scheduler["Database"] = {
            "Uri": f"{values.database_endpoint}:{port}",
            "UserName": username,
            "PasswordSecretArn": values.database_secret_arn,
            "DatabaseName": database.database_name,
        }
    # one key per entry: ParallelCluster lets pass what it denies when an entry has two
    scheduler["CustomSlurmSettings"] = [
        {name: setting.value} for name, setting in slurm_configuration(cluster).handed_over.items()
    ]
    return scheduler


def root_volume(groups: Iterable[Group], gib: int) -> Mapped:
    """The root volumes of a queue, as fast as the group of it that needs it most."""
    groups = list(groups)
    throughput = max(root_throughput(group.settings, group.type) for group in groups)
    volume: Mapped = {"Size": gib, "Encrypted": True}
    if iops := max(group.settings.root_volume_iops or 0 for group in groups):
        return volume | {"VolumeType": "io2", "Iops": iops}
    if throughput > INCLUDED_MBPS:
        volume |= {"VolumeType": "gp3", "Throughput": throughput, "Iops": root_iops(throughput)}
    return volume


def node_iam(values: DeployedValues, own: str = "") -> Mapped:
    """What nodes may do beyond what ParallelCluster itself needs: one small policy of ours.

    Args:
        own: that of the role of node; by default the compute nodes'.
    """
    return {"AdditionalIamPolicies": [{"Policy": own or values.node_policy_arn}]}


def _queue(
    cluster: Cluster,
    settings: ParallelCluster,
    values: DeployedValues,
    name: str,
    groups: Mapping[str, Group],
) -> Mapped:
    partition = settings.partitions.get(name, ParallelClusterPartition())
    capacity = _one(
        name, "capacity", groups, lambda group: CAPACITY_TYPES.get(group.capacity.kind, "ONDEMAND")
    )
    allocation = _one(
        name, "capacity.allocation", groups,
        lambda group: group.capacity.allocation if isinstance(group.capacity, Spot) else None,
    )  # fmt: skip
    image = _one(name, "image", groups, lambda group: group.settings.image_in_template)
    size = _one(name, "root_volume_gib", groups, lambda group: group.settings.root_volume_gib)
    queue: Mapped = {
        "Name": name,
        "CapacityType": capacity,
        "JobExclusiveAllocation": partition.exclusive,
        "HealthChecks": {"Gpu": {"Enabled": partition.gpu_health_checks}},
        "Networking": {"SubnetIds": [values.subnet_id], "SecurityGroups": values.security_group_ids},
        "ComputeSettings": {"LocalStorage": {"RootVolume": root_volume(groups.values(), size)}},
        "Iam": node_iam(values),
    }
    if any(group.type and group.type.local_nvme_disks for group in groups.values()):
        local = queue["ComputeSettings"]["LocalStorage"]
        local["EphemeralVolume"] = {"MountDir": settings.nvme_mount_path}
    if allocation:
        queue["AllocationStrategy"] = allocation
    if image:
        queue["Image"] = {"CustomAmi": image}
    if partition.slurm_settings:
        queue["CustomSlurmSettings"] = dict(partition.slurm_settings)
    if actions := queue_actions(cluster, values, name, list(groups)):
        queue["CustomActions"] = actions
    queue["ComputeResources"] = [_resource(group, partition) for group in groups.values()]
    return queue


def _resource(group: Group, partition: ParallelClusterPartition) -> Mapped:
    settings = group.settings
    resource: Mapped = {
        "Name": group.name,
        "InstanceType": settings.instance_type,
        "MinCount": settings.count,
        # all of a block is launched at once: ParallelCluster requires both counts to be equal there
        "MaxCount": settings.count if group.capacity.kind == "capacity-block" else group.most_nodes,
    }
    if settings.threads_per_core == 1 or has_imex(group):
        resource["DisableSimultaneousMultithreading"] = True
    if _has_efa(group):
        resource["Efa"] = {"Enabled": True}
    if placement := _placement(group):
        resource["Networking"] = {"PlacementGroup": placement}
    if target := _target(group.capacity):
        resource["CapacityReservationTarget"] = target
    if group.name in partition.gpu_health_checks_by_group:
        resource["HealthChecks"] = {"Gpu": {"Enabled": partition.checks_gpus(group.name)}}
    if settings.slurm_settings:
        resource["CustomSlurmSettings"] = dict(settings.slurm_settings)
    return resource


def _has_efa(group: Group) -> bool:
    return group.type is not None and fabric_of(group.type) != "none"


def _placement(group: Group) -> Mapped:
    """The placement group, or the choice of none, which must be written down with EFA; else empty."""
    placement = group.placement
    if placement and placement.kind == "reservation-group" and isinstance(group.capacity, Reservation):
        return {"Name": group.capacity.placement_group}
    cluster = placement is not None and placement.kind == "cluster"
    return {"Enabled": cluster} if _has_efa(group) else {}


def _target(capacity: Capacity) -> Mapped:
    options = market_options(capacity, orchestrator="parallelcluster")
    if options.reservation_id:
        return {"CapacityReservationId": options.reservation_id}
    if options.resource_group_arn:
        return {"CapacityReservationResourceGroupArn": options.resource_group_arn}
    return {}  # an open reservation matches by itself


def _one(partition: str, what: str, groups: Mapping[str, Group], of: Callable[[Group], Value]) -> Value:
    """What all groups of a partition have in common."""
    values = {name: of(group) for name, group in groups.items()}
    if len(set(values.values())) > 1:
        each = ", ".join(f"{name} {value}" for name, value in values.items())
        raise ValueError(
            f"ParallelCluster has one {what} for the queue {partition!r}, its groups differ: {each}; "
            "give them partitions of their own"
        )
    return next(iter(values.values()))
