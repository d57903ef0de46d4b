"""Partitions as ParallelCluster's queues, compute groups as its compute resources."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from ultracluster.catalog import InstanceType
from ultracluster.clusters.parallelcluster.actions import has_imex, queue_actions
from ultracluster.clusters.parallelcluster.deployed_values import DeployedValues
from ultracluster.config import Environment
from ultracluster.config.capacity import Reservation, Spot
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterPartition
from ultracluster.config.slurm import SlurmSettings
from ultracluster.model.capacity import fabric_of, market_options, placement_for
from ultracluster.model.partitions import partitions
from ultracluster.model.root_volume import INCLUDED_MBPS, root_iops, root_throughput
from ultracluster.model.types import instance_type_of

Mapped = dict[str, Any]
Value = TypeVar("Value", bound=Hashable)

CAPACITY_TYPES = {"spot": "SPOT", "capacity-block": "CAPACITY_BLOCK"}
"""CapacityType of a queue; ONDEMAND where the kind of capacity is another."""

ULTRASERVER_SETTINGS: SlurmSettings = {
    # prologs run on all nodes before the job starts, and their failure does not hold it
    "PrologFlags": "Alloc,NoHold",
    # seconds; while the IMEX domain of a job comes up, nodes answer late
    "MessageTimeout": 240,
}
"""ParallelCluster User Guide, "Support NVIDIA-Imex"."""


def queues(environment: Environment, values: DeployedValues) -> list[Mapped]:
    """All queues.

    Raises:
        ValueError: groups of one partition differ where a queue has one setting.
    """
    return [_queue(environment, values, name, groups) for name, groups in partitions(environment).items()]


def slurm_settings(environment: Environment, values: DeployedValues) -> Mapped:
    """The settings of the scheduler as a whole."""
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, ParallelCluster)
    settings: Mapped = {
        "ScaledownIdletime": orchestrator.scaledown_minutes,
        "QueueUpdateStrategy": orchestrator.queue_update.replace("-", "_").upper(),
        "EnableMemoryBasedScheduling": orchestrator.memory_scheduling,
    }
    if environment.network.egress == "closed":
        # Route 53, where names of nodes would be entered, is reached through no endpoint of a VPC
        settings["Dns"] = {"DisableManagedDns": True, "UseEc2Hostnames": True}
    if database := environment.storage.accounting_database:
        port = database.port if database.kind == "existing" else 3306
        username = (database.username if database.kind == "existing" else None) or "slurm"
        settings["Database"] = {
            "Uri": f"{values.database_endpoint}:{port}",
            "UserName": username,
            "PasswordSecretArn": values.database_secret_arn,
            "DatabaseName": database.database_name,
        }
    custom = dict(orchestrator.slurm_settings)
    if any(has_imex(environment, name) for name in environment.groups("compute")):
        custom = ULTRASERVER_SETTINGS | custom
    if custom:
        # one key per entry: ParallelCluster lets pass what it denies when an entry has two
        settings["CustomSlurmSettings"] = [{key: value} for key, value in custom.items()]
    return settings


def root_volume(environment: Environment, groups: Mapping[str, NodeGroup], gib: int) -> Mapped:
    """The root volumes of a queue, as fast as the group of it that needs it most."""
    throughput = max(
        root_throughput(group, instance_type_of(environment, group)) for group in groups.values()
    )
    volume: Mapped = {"Size": gib, "Encrypted": True}
    if throughput > INCLUDED_MBPS:
        volume |= {"VolumeType": "gp3", "Throughput": throughput, "Iops": root_iops(throughput)}
    return volume


def node_iam(values: DeployedValues) -> Mapped:
    """What nodes may do beyond what ParallelCluster itself needs: one small policy of ours."""
    return {"AdditionalIamPolicies": [{"Policy": values.node_policy_arn}]}


def _queue(
    environment: Environment, values: DeployedValues, name: str, groups: dict[str, NodeGroup]
) -> Mapped:
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, ParallelCluster)
    partition = orchestrator.partitions.get(name, ParallelClusterPartition())
    capacity = _one(
        name, "capacity", groups, lambda group: CAPACITY_TYPES.get(group.capacity.kind, "ONDEMAND")
    )
    allocation = _one(
        name, "capacity.allocation", groups,
        lambda group: group.capacity.allocation if isinstance(group.capacity, Spot) else None,
    )  # fmt: skip
    image = _one(name, "image", groups, lambda group: group.image_in_template)
    size = _one(name, "root_volume_gib", groups, lambda group: group.root_volume_gib)
    queue: Mapped = {
        "Name": name,
        "CapacityType": capacity,
        "JobExclusiveAllocation": partition.exclusive,
        "HealthChecks": {"Gpu": {"Enabled": partition.gpu_health_checks}},
        "Networking": {"SubnetIds": [values.subnet_id], "SecurityGroups": [values.security_group_id]},
        "ComputeSettings": {"LocalStorage": {"RootVolume": root_volume(environment, groups, size)}},
        "Iam": node_iam(values),
    }
    if any(kind and kind.local_nvme_disks for kind in map(_kind(environment), groups.values())):
        local = queue["ComputeSettings"]["LocalStorage"]
        local["EphemeralVolume"] = {"MountDir": orchestrator.nvme_mount_path}
    if allocation:
        queue["AllocationStrategy"] = allocation
    if image:
        queue["Image"] = {"CustomAmi": image}
    if partition.slurm_settings:
        queue["CustomSlurmSettings"] = dict(partition.slurm_settings)
    if actions := queue_actions(environment, values, name, list(groups)):
        queue["CustomActions"] = actions
    queue["ComputeResources"] = [_resource(environment, *item) for item in groups.items()]
    return queue


def _resource(environment: Environment, name: str, group: NodeGroup) -> Mapped:
    kind = instance_type_of(environment, group)
    resource: Mapped = {
        "Name": name,
        "InstanceType": group.instance_type,
        "MinCount": group.count,
        # all of a block is launched at once: ParallelCluster wants both counts equal there
        "MaxCount": group.count if group.capacity.kind == "capacity-block" else group.greatest,
    }
    if group.threads_per_core == 1 or has_imex(environment, name):
        resource["DisableSimultaneousMultithreading"] = True
    if kind and fabric_of(kind) != "none":
        resource["Efa"] = {"Enabled": True}
    if kind and (placement := _placement(group, kind)):
        resource["Networking"] = {"PlacementGroup": placement}
    if target := _target(group):
        resource["CapacityReservationTarget"] = target
    if group.slurm_settings:
        resource["CustomSlurmSettings"] = dict(group.slurm_settings)
    return resource


def _placement(group: NodeGroup, kind: InstanceType) -> Mapped:
    """The placement group, or the choice of none, which has to be written down beside EFA; else empty."""
    reserved_in = group.capacity.placement_group if isinstance(group.capacity, Reservation) else None
    placement = placement_for(
        group.capacity,
        instance_type=kind,
        orchestrator="parallelcluster",
        reserved_in_group=reserved_in is not None,
        declined=group.placement_group == "none",
    )
    if placement.kind == "reservation-group":
        return {"Name": reserved_in}
    return {"Enabled": placement.kind == "cluster"} if fabric_of(kind) != "none" else {}


def _target(group: NodeGroup) -> Mapped:
    options = market_options(group.capacity, orchestrator="parallelcluster")
    if options.reservation_id:
        return {"CapacityReservationId": options.reservation_id}
    if options.resource_group_arn:
        return {"CapacityReservationResourceGroupArn": options.resource_group_arn}
    return {}  # an open reservation matches by itself


def _kind(environment: Environment) -> Callable[[NodeGroup], InstanceType | None]:
    return lambda group: instance_type_of(environment, group)


def _one(partition: str, what: str, groups: dict[str, NodeGroup], of: Callable[[NodeGroup], Value]) -> Value:
    """What all groups of a partition have in common."""
    found = {name: of(group) for name, group in groups.items()}
    if len(set(found.values())) > 1:
        each = ", ".join(f"{name} {value}" for name, value in found.items())
        raise ValueError(
            f"ParallelCluster has one {what} for the queue {partition!r}, its groups differ: {each}; "
            "give them partitions of their own"
        )
    return next(iter(found.values()))
