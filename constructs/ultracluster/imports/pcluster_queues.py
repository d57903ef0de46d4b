"""Queues and compute resources of ParallelCluster as partitions and node groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ultracluster.catalog import instance_type
from ultracluster.config.slurm import SlurmValue
from ultracluster.imports.ledger import Ledger, Part

_ALLOCATIONS = ("lowest-price", "capacity-optimized", "price-capacity-optimized")
_SLURM_VALUE: TypeAdapter[Any] = TypeAdapter(SlurmValue)
_SLURM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DEFAULT_MOST = 10
"""Nodes of a compute resource without MaxCount."""


class Queues:
    """What was read of the queues so far."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.groups: dict[str, dict[str, Any]] = {}
        self.partitions: dict[str, dict[str, Any]] = {}
        self.buckets: dict[str, dict[str, Any]] = {}
        """Buckets that jobs of any queue reach."""
        self.nvme = ""

    def add(self, queue: Part) -> None:
        """One queue with its compute resources."""
        name = queue.needed("Name", "name the queue")
        checks = _checks(queue)
        # ParallelCluster shares nodes between jobs unless it is told otherwise
        partition: dict[str, Any] = {"exclusive": bool(queue.flag("JobExclusiveAllocation"))}
        if checks is not None:
            partition["gpu_health_checks"] = checks
        place = queue.place("CustomSlurmSettings")
        if settings := slurm_settings(queue.map("CustomSlurmSettings"), place, self.ledger):
            partition["slurm_settings"] = settings
        nodes = _of_nodes(queue, self)
        others: dict[str, bool] = {}
        for resource in queue.parts("ComputeResources"):
            group = _Resource(queue, resource, self.ledger).group(nodes)
            key = self._free(name, resource.needed("Name", "name the compute resource"), resource)
            self.groups[key] = {**group, "partition": name}
            own = _checks(resource)
            if own is not None and own != bool(checks):
                others[key] = own
        if others:
            partition["gpu_health_checks_by_group"] = others
        if partition != {"exclusive": True}:
            self.partitions[name] = partition

    def _free(self, queue: str, name: str, resource: Part) -> str:
        """A name for the group: two queues may each have a compute resource of one name."""
        taken = {"head", *self.groups}
        if name not in taken:
            return name
        other = f"{queue}-{name}"
        self.ledger.changed(
            resource.place("Name"), f"another group is called {name}, and groups have one name each",
            f"it is called {other}",
        )  # fmt: skip
        return other


class _Resource:
    """A compute resource as a node group."""

    def __init__(self, queue: Part, resource: Part, ledger: Ledger) -> None:
        self.queue = queue
        self.resource = resource
        self.ledger = ledger
        self.efa = bool(resource.part("Efa").flag("Enabled"))

    def group(self, nodes: Mapping[str, Any]) -> dict[str, Any]:
        resource = self.resource
        kind = self._type()
        least = resource.number("MinCount") or 0
        most = resource.number("MaxCount")
        most = max(least, _DEFAULT_MOST) if most is None else most
        group: dict[str, Any] = {"role": "compute", "instance_type": kind, "count": least}
        capacity = self._capacity()
        if most != least:
            group["max_count"] = most
        group |= {**nodes, **capacity}
        if resource.flag("DisableSimultaneousMultithreading"):
            group["threads_per_core"] = 1
        place = resource.place("CustomSlurmSettings")
        if settings := slurm_settings(resource.map("CustomSlurmSettings"), place, self.ledger):
            group["slurm_settings"] = settings
        self._fabric(kind, group)
        return group

    def _type(self) -> str:
        alone = self.resource.text("InstanceType")
        several = [part.text("InstanceType") or "" for part in self.resource.parts("Instances")]
        if alone is None and not several:
            self.ledger.refuse(
                self.resource.place("InstanceType"),
                "is missing",
                "write the type, which a reservation has, too",
            )
        if len(several) > 1:
            self.ledger.changed(
                self.resource.place("Instances"),
                f"a group has one type, which leaves out {', '.join(several[1:])}",
                "make a group for each further type, with the same partition",
            )  # fmt: skip
        return alone or next(iter(several), "")

    def _capacity(self) -> dict[str, Any]:
        kind = (self.queue.text("CapacityType") or "ONDEMAND").upper()
        allocation = self.queue.text("AllocationStrategy")
        target = self.resource.part("CapacityReservationTarget") or self.queue.part(
            "CapacityReservationTarget"
        )
        self.queue.any("CapacityReservationTarget")
        one, several = (
            target.text("CapacityReservationId"),
            target.text("CapacityReservationResourceGroupArn"),
        )
        if kind == "SPOT":
            spot: dict[str, Any] = {"kind": "spot"}
            if allocation in _ALLOCATIONS:
                spot["allocation"] = allocation
            return {"capacity": spot}
        if allocation is not None and allocation != "lowest-price":
            self.ledger.left(
                self.queue.place("AllocationStrategy"), "only Spot has one here", "nothing to do"
            )
        if kind == "CAPACITY_BLOCK":
            if one is None:
                self.ledger.refuse(
                    self.resource.place("CapacityReservationTarget.CapacityReservationId"), "is missing",
                    "write the id of the block's reservation, cr-...",
                )  # fmt: skip
            return {"capacity": {"kind": "capacity-block", "id": one or ""}}
        if one:
            return {"capacity": {"kind": "reservation", "id": one}}
        if several:
            return {"capacity": {"kind": "reservation", "resource_group_arn": several}}
        return {}

    def _fabric(self, kind: str, group: dict[str, Any]) -> None:
        own = self.resource.part("Networking").part("PlacementGroup")
        placement = own or self.queue.part("Networking").part("PlacementGroup")
        enabled, name = placement.flag("Enabled"), placement.text("Name") or placement.text("Id")
        known = instance_type(kind)
        has_efa = known is not None and bool(known.efa_interfaces)
        if has_efa and not self.efa:
            self.ledger.changed(
                self.resource.place("Efa"),
                f"nodes of {kind} always have their EFA interfaces here",
                "nothing to do",
            )
        capacity = group.get("capacity", {})
        if name and capacity.get("kind") == "reservation":
            capacity["placement_group"] = name
        elif name:
            self.ledger.changed(
                placement.where, "a placement group is made for the nodes instead of this one",
                "nothing, unless a reservation was made in it: then write capacity.placement_group",
            )  # fmt: skip
        elif enabled is False and has_efa and not capacity:
            group["placement_group"] = "none"
        elif enabled and capacity.get("kind") in ("reservation", "capacity-block"):
            self.ledger.left(
                placement.place("Enabled"), "nodes of a reservation are where the reservation is",
                "where it was made in a placement group, write capacity.placement_group",
            )  # fmt: skip


def root_volume(volume: Part) -> dict[str, int]:
    """Size and speed of a root volume."""
    kind = volume.text("VolumeType")
    if kind not in (None, "gp3", "io1", "io2"):
        volume.ledger.left(volume.place("VolumeType"), "root volumes are gp3, or io2", "see root_volume_iops")
    found = {
        "root_volume_gib": volume.number("Size"),
        "root_volume_throughput_mbps": volume.number("Throughput"),
    }
    if kind in ("io1", "io2"):
        found["root_volume_iops"] = volume.number("Iops")
    if volume.flag("Encrypted") is False:
        volume.ledger.changed(volume.place("Encrypted"), "volumes are always encrypted", "nothing to do")
    return {key: value for key, value in found.items() if value is not None}


def slurm_settings(pairs: Mapping[str, Any], where: str, ledger: Ledger) -> dict[str, Any]:
    """Parameters of slurm.conf that can be written as such; rows for the others."""
    found: dict[str, Any] = {}
    for name, value in pairs.items():
        word = ("YES" if value else "NO") if isinstance(value, bool) else value
        word = f"{word:g}" if isinstance(word, float) else word
        try:
            if not _SLURM_NAME.fullmatch(name):
                raise ValueError
            found[name] = _SLURM_VALUE.validate_python(word, strict=True)
        except (ValidationError, ValueError):
            ledger.left(
                f"{where}.{name}", "it is not one word, or text in double quotes, as slurm.conf takes it",
                "correct it in slurm_settings",
            )  # fmt: skip
    return found


def _checks(part: Part) -> bool | None:
    return part.part("HealthChecks").part("Gpu").flag("Enabled")


def _of_nodes(queue: Part, queues: Queues) -> dict[str, Any]:
    """Return what all nodes of a queue have in common."""
    local = queue.part("ComputeSettings").part("LocalStorage")
    nodes: dict[str, Any] = root_volume(local.part("RootVolume"))
    if image := queue.part("Image").text("CustomAmi"):
        nodes["image"] = image
    if folder := local.part("EphemeralVolume").text("MountDir"):
        if queues.nvme and folder != queues.nvme:
            queues.ledger.changed(
                local.place("EphemeralVolume.MountDir"),
                f"all nodes have their NVMe disks at one place, {queues.nvme}",
                "correct paths in jobs",
            )  # fmt: skip
        queues.nvme = queues.nvme or folder
    for access in queue.part("Iam").parts("S3Access"):
        bucket = access.needed("BucketName", "name the bucket")
        prefix = (access.text("KeyName") or "").rstrip("*").strip("/")
        entry: dict[str, Any] = {"bucket": bucket, **({"prefix": prefix} if prefix else {})}
        if access.flag("EnableWriteAccess"):
            entry["write"] = True
        queues.buckets[f"{bucket}/{prefix}"] = {**queues.buckets.get(f"{bucket}/{prefix}", {}), **entry}
    return nodes
