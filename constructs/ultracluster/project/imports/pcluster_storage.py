"""Shared storage of ParallelCluster: Lustre file systems that it makes, and what it only mounts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ultracluster.config.base import s3_place
from ultracluster.project.imports.ledger import Ledger, Part

_EVENTS = {
    "NEW": ["new"],
    "NEW_CHANGED": ["new", "changed"],
    "NEW_CHANGED_DELETED": ["new", "changed", "deleted"],
}
_HOMES = (
    "storage.openzfs is the shared file system for homes (deployment, capacity_gib, throughput_mbps), "
    "storage.lustre the one for data; copy what is there with AWS DataSync"
)
_MADE_ELSEWHERE = (
    "`aws fsx describe-file-systems` prints DNS name and mount name: write deployment existing with id, "
    "dns_name, mount_name and security_group_id, and network.vpc and network.subnet so that nodes are in its "
    "network"
)


def storage(
    entries: list[Part], ledger: Ledger, settled: Mapping[str, Any], buckets: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """The `storage` of an environment."""
    del settled
    found: dict[str, Any] = {}
    for entry in entries:
        kind, name = entry.text("StorageType"), entry.text("Name") or ""
        path = f"/{(entry.text('MountDir') or '').strip('/')}"
        if kind == "FsxLustre":
            if lustre := _lustre(entry.part("FsxLustreSettings"), path, ledger):
                _add(found, lustre, name)
        elif kind in ("Ebs", "Efs"):
            for key in list(entry.data):
                entry.any(key)
            ledger.left(entry.where, f"{kind} file systems are not mounted", _HOMES)
        else:
            for key in list(entry.data):
                entry.any(key)
            ledger.left(
                entry.where,
                f"the file has only an id of this {kind or 'storage'}, and nodes need its address and group",
                "an OpenZFS goes into storage.openzfs with deployment existing, id, dns_name, volume_id and "
                "security_group_id; others a node step of your own may mount (docs/own-steps.md)",
            )  # fmt: skip
    if buckets:
        found["job_buckets"] = list(buckets.values())
    return found


def _add(storage: dict[str, Any], lustre: dict[str, Any], name: str) -> None:
    if "lustre" not in storage:
        storage["lustre"] = lustre
        return
    further: dict[str, Any] = storage.setdefault("further_lustre", {})
    word = re.sub(r"[^a-z0-9]", "", name.lower()).lstrip("0123456789")[:14] or "lustre"
    further[word if word not in further else f"{word}{len(further)}"] = lustre


def _lustre(settings: Part, path: str, ledger: Ledger) -> dict[str, Any] | None:
    if (number := settings.text("FileSystemId")) is not None:
        ledger.left(
            settings.where,
            f"the file has only the id {number}, and nodes need its mount name",
            _MADE_ELSEWHERE,
        )
        return None
    if settings.text("BackupId") is not None:
        ledger.left(
            settings.where, "a file system is never made from a backup here",
            "restore it with `aws fsx create-file-system-from-backup`, then name it: " + _MADE_ELSEWHERE,
        )  # fmt: skip
        for key in list(settings.data):
            settings.any(key)
        return None
    size = settings.number("StorageCapacity")
    if size is None:
        ledger.refuse(settings.place("StorageCapacity"), "is missing", "write the size in GiB, e.g. 1200")
    found: dict[str, Any] = {**_deployment(settings), "capacity_gib": size or 0, "mount_path": path}
    if (tier := settings.number("PerUnitStorageThroughput")) is not None and "scratch" not in found[
        "deployment"
    ]:
        found["throughput_mbps_per_tib"] = tier
    found["compression"] = (settings.text("DataCompressionType") or "none").lower()
    if window := settings.text("WeeklyMaintenanceStartTime"):
        found["maintenance_window"] = window
    if days := settings.number("AutomaticBackupRetentionDays"):
        start = settings.text("DailyAutomaticBackupStartTime")
        found["backups"] = {"retention_days": days, **({"start_time": start} if start else {})}
    if links := _links(settings):
        found["data_repositories"] = links
    return found


def _deployment(settings: Part) -> dict[str, Any]:
    kind = settings.text("DeploymentType") or "SCRATCH_2"
    disks, cache = settings.text("StorageType"), settings.text("DriveCacheType")
    if kind == "PERSISTENT_1" and disks == "HDD":
        return {"deployment": "persistent-1-hdd", "drive_cache": (cache or "none").lower()}
    word = kind.lower().replace("_", "-")
    return {"deployment": word if kind.startswith("SCRATCH") else f"{word}-ssd"}


def _links(settings: Part) -> dict[str, dict[str, Any]]:
    """Folders that are tied to S3: associations, and the older import path."""
    links: dict[str, dict[str, Any]] = {}
    if path := settings.text("ImportPath"):
        policy = settings.text("AutoImportPolicy") or ""
        links["/"] = _link(path, settings.number("ImportedFileChunkSize"), _EVENTS.get(policy, []), [])
    for one in settings.parts("DataRepositoryAssociations"):
        one.text("Name")
        folder = one.needed("FileSystemPath", "write the folder of the file system")
        link = _link(
            one.needed("DataRepositoryPath", "write s3://bucket/prefix"),
            one.number("ImportedFileChunkSize"),
            [event.lower() for event in one.texts("AutoImportPolicy")],
            [event.lower() for event in one.texts("AutoExportPolicy")],
        )
        if not one.flag("BatchImportMetaDataOnCreate"):
            link["import_existing"] = False
        links[folder] = link
    return links


def _link(path: str, chunk: int | None, imports: list[str], exports: list[str]) -> dict[str, Any]:
    bucket, prefix = s3_place(path)
    link: dict[str, Any] = {"bucket": bucket}
    link |= {"prefix": f"{prefix}/"} if prefix else {}
    link |= {"import_events": imports} if imports else {}
    link |= {"export_events": exports} if exports else {}
    return link | ({"chunk_mib": chunk} if chunk else {})
