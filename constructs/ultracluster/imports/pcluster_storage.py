"""Shared storage of ParallelCluster: Lustre file systems that it makes, and what it only mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.config.base import s3_place
from ultracluster.imports.file_systems import add, add_lustre
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.surroundings import Surroundings

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
    entries: list[Part], ledger: Ledger, around: Surroundings | None, buckets: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """The `storage` of an environment."""
    found: dict[str, Any] = {}
    for entry in entries:
        kind, name = entry.text("StorageType"), entry.text("Name") or ""
        path = f"/{(entry.text('MountDir') or '').strip('/')}"
        if around is not None and (text := _existing(entry, around, ledger)):
            add(found, ledger, entry.where, around, text, path)
        elif kind == "FsxLustre":
            if lustre := _lustre(entry.part("FsxLustreSettings"), path, ledger):
                add_lustre(found, lustre, name)
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


def _existing(entry: Part, around: Surroundings, ledger: Ledger) -> str:
    """The id of what an entry mounts, where the account was asked."""
    settings = entry.part("FsxLustreSettings")
    volume = entry.part("FsxOpenZfsSettings").text("VolumeId")
    if text := settings.text("FileSystemId") or volume:
        return text
    made = around.made(entry.text("Name") or "") if settings else None
    if made is None:
        return ""
    if (settings.text("DeletionPolicy") or "Delete") != "Retain":
        ledger.changed(
            settings.place("DeletionPolicy"),
            f"{made.id} belongs to the old cluster's stack, which deletes it together with the cluster",
            "write DeletionPolicy: Retain there, and `pcluster update-cluster`, before the old one ends",
        )
    settings.map_all()
    return made.id


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
    scratch = found["deployment"].startswith("scratch")
    if scratch:
        ledger.changed(
            "storage.lustre", "a scratch file system is kept as it was: data is lost with a server of it",
            "deployment: persistent-2-ssd keeps copies; what must last belongs in S3 (data_repositories)",
        )  # fmt: skip
    if not scratch and (tier := settings.number("PerUnitStorageThroughput")) is not None:
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
    if kind == "PERSISTENT_1" and settings.data.get("StorageType") == "HDD":
        cache = (settings.text("DriveCacheType") or "none").lower()
        settings.any("StorageType")
        return {"deployment": "persistent-1-hdd", "drive_cache": cache}
    word = kind.lower().replace("_", "-")
    return {"deployment": word if kind.startswith("SCRATCH") else f"{word}-ssd"}


def _links(settings: Part) -> dict[str, dict[str, Any]]:
    """Folders that are tied to S3: associations, and the older import path."""
    links: dict[str, dict[str, Any]] = {}
    if place := settings.text("ExportPath"):
        bucket, prefix = s3_place(place)
        where = f"{bucket}/{prefix}".rstrip("/")
        settings.ledger.left(
            settings.place("ExportPath"), f"checkpoints are no longer exported to s3://{where}",
            "give their folder export_events in storage.lustre.data_repositories before you train: what is "
            "not exported is lost with the file system",
            first=True,
        )  # fmt: skip
        settings.any("AutoExportPolicy")
    if path := settings.text("ImportPath"):
        policy = settings.text("AutoImportPolicy") or ""
        links["/"] = _link(path, settings.number("ImportedFileChunkSize"), _EVENTS.get(policy, []), [])
    for part in settings.parts("DataRepositoryAssociations"):
        part.text("Name")
        folder = part.needed("FileSystemPath", "write the folder of the file system")
        link = _link(
            part.needed("DataRepositoryPath", "write s3://bucket/prefix"),
            part.number("ImportedFileChunkSize"),
            [event.lower() for event in part.texts("AutoImportPolicy")],
            [event.lower() for event in part.texts("AutoExportPolicy")],
        )
        if not part.flag("BatchImportMetaDataOnCreate"):
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
