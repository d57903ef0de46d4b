"""Settings of a Lustre file system as CloudFormation and as its construct take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_logs as logs

from ultracluster.catalog.fsx import lustre
from ultracluster.config.lustre import NewLustre, lustre_of
from ultracluster.config.storage import (
    Backups,
    DataRepository,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ReadCache,
    RootSquash,
    ScratchLustre,
)
from ultracluster.guard import Figure

LustreDeployment = Literal[
    "scratch-1",
    "scratch-2",
    "persistent-1-ssd",
    "persistent-1-hdd",
    "persistent-2-ssd",
    "intelligent-tiering",
]
MODELS: Mapping[LustreDeployment, type[NewLustre]] = {
    "scratch-1": ScratchLustre,
    "scratch-2": ScratchLustre,
    "persistent-1-ssd": Persistent1SsdLustre,
    "persistent-1-hdd": Persistent1HddLustre,
    "persistent-2-ssd": Persistent2SsdLustre,
    "intelligent-tiering": IntelligentTieringLustre,
}
"""What the settings of a deployment are made into."""
USUAL_DEPLOYMENT: LustreDeployment = "persistent-2-ssd"
USUAL_THROUGHPUT = {"persistent-2-ssd": 125}
"""MB/s per TiB where the caller names none: the least that the deployment has."""


class LustreArguments(TypedDict, total=False):
    """Fields of the configuration's models for new Lustre file systems, which say what each means."""

    deployment: LustreDeployment
    capacity_gib: Figure
    throughput_mbps_per_tib: Figure
    throughput_mbps: Figure
    drive_cache: Literal["none", "read"]
    metadata_iops: int | Literal["automatic"] | None
    read_cache: ReadCache
    efa: bool
    efa_interfaces_per_client: Literal[8, 4, 2, 1] | None
    gds: bool
    data_repositories: Mapping[str, DataRepository]
    backups: Backups
    mount_path: str
    groups: Sequence[str]
    version: Literal["2.10", "2.12", "2.15"]
    compression: Literal["none", "lz4"]
    maintenance_window: str | None
    log_level: Literal["disabled", "warn-only", "error-only", "warn-error"]
    root_squash: RootSquash | None


def lustre_configuration(
    config: NewLustre, log_group: logs.LogGroup | None
) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    facts = lustre_of(config)
    backups = facts.backups or Backups()
    return fsx.CfnFileSystem.LustreConfigurationProperty(
        deployment_type=lustre(config.deployment).api_type,
        data_compression_type=config.compression.upper(),
        per_unit_storage_throughput=facts.throughput_mbps_per_tib,
        drive_cache_type=config.drive_cache.upper() if isinstance(config, Persistent1HddLustre) else None,
        throughput_capacity=config.throughput_mbps if isinstance(config, IntelligentTieringLustre) else None,
        data_read_cache_configuration=_read_cache(config),
        metadata_configuration=_metadata(config),
        efa_enabled=True if facts.efa else None,
        automatic_backup_retention_days=backups.retention_days if facts.backups else None,
        daily_automatic_backup_start_time=backups.start_time,
        copy_tags_to_backups=True if backups.retention_days else None,
        weekly_maintenance_start_time=config.maintenance_window,
        log_configuration=_log_configuration(config, log_group),
    )


def _log_configuration(
    config: NewLustre, log_group: logs.LogGroup | None
) -> fsx.CfnFileSystem.LogConfigurationProperty | None:
    level = config.log_level.upper().replace("-", "_")
    if log_group is None:
        return None
    stack = Stack.of(log_group)
    arn = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=log_group.log_group_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return fsx.CfnFileSystem.LogConfigurationProperty(level=level, destination=arn)


def _metadata(config: NewLustre) -> fsx.CfnFileSystem.MetadataConfigurationProperty | None:
    if not isinstance(config, Persistent2SsdLustre | IntelligentTieringLustre):
        return None
    iops = config.metadata_iops
    if iops is None:
        return None
    if iops == "automatic":
        return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="AUTOMATIC")
    return fsx.CfnFileSystem.MetadataConfigurationProperty(mode="USER_PROVISIONED", iops=iops)


def _read_cache(config: NewLustre) -> fsx.CfnFileSystem.DataReadCacheConfigurationProperty | None:
    if not isinstance(config, IntelligentTieringLustre):
        return None
    mode = {
        "none": "NO_CACHE",
        "proportional": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY",
        "sized": "USER_PROVISIONED",
    }[config.read_cache.mode]
    return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
        sizing_mode=mode, size_gib=config.read_cache.gib
    )
