"""A Lustre file system in one form, whichever deployment it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ultracluster.config.storage import (
    Backups,
    DataRepository,
    ExistingLustre,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)

NewLustre = (
    ScratchLustre
    | Persistent1SsdLustre
    | Persistent1HddLustre
    | Persistent2SsdLustre
    | IntelligentTieringLustre
)
"""A file system that is made."""
LustreSettings = NewLustre | ExistingLustre


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreFacts:
    """What code above must know of a Lustre file system without asking which deployment it is."""

    settings: LustreSettings
    efa: bool = False
    """Clients reach it over EFA."""
    efa_interfaces_per_client: int | None = None
    """The most that a client binds; None: as FSx's set-up does."""
    gds: bool = False
    """Clients read it straight into GPU memory (GPUDirect Storage)."""
    capacity_gib: int | None = None
    """None where it exists, or where it grows with what is in it."""
    throughput_mbps_per_tib: int | None = None
    """None where the deployment has no choice of it."""
    data_repositories: Mapping[str, DataRepository] = field(default_factory=dict[str, DataRepository])
    """Associations with S3 that are ours to make, by folder."""
    backups: Backups | None = None
    """None where it exists, or where the deployment has none."""

    @property
    def new(self) -> NewLustre | None:
        """Its settings where it is made; None where it exists already."""
        return None if isinstance(self.settings, ExistingLustre) else self.settings

    @property
    def mount_path(self) -> str:
        return self.settings.mount_path

    @property
    def groups(self) -> tuple[str, ...]:
        """Node groups that mount it; empty: all."""
        return tuple(self.settings.groups)

    def mounted_by(self, group: str) -> bool:
        """Whether the nodes of a group mount it."""
        return not self.groups or group in self.groups


def lustre_of(settings: LustreSettings) -> LustreFacts:
    """The file system in the one form."""
    match settings:
        case ExistingLustre():
            return LustreFacts(
                settings=settings,
                efa=settings.efa,
                efa_interfaces_per_client=settings.efa_interfaces_per_client,
                gds=settings.gds,
            )
        case ScratchLustre():
            return LustreFacts(
                settings=settings,
                capacity_gib=settings.capacity_gib,
                data_repositories=settings.data_repositories,
            )
        case Persistent1SsdLustre() | Persistent1HddLustre():
            return LustreFacts(
                settings=settings,
                capacity_gib=settings.capacity_gib,
                throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
                data_repositories=settings.data_repositories,
                backups=settings.backups,
            )
        case Persistent2SsdLustre():
            return LustreFacts(
                settings=settings,
                efa=settings.efa,
                efa_interfaces_per_client=settings.efa_interfaces_per_client,
                gds=settings.gds,
                capacity_gib=settings.capacity_gib,
                throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
                data_repositories=settings.data_repositories,
                backups=settings.backups,
            )
        case IntelligentTieringLustre():
            return LustreFacts(
                settings=settings,
                efa=settings.efa,
                efa_interfaces_per_client=settings.efa_interfaces_per_client,
                gds=settings.gds,
                backups=settings.backups,
            )
