"""Checkpoints: how large they are, how fast they are written, and the Lustre file system that is fast enough.

Figures are those of `catalog/sizing.json` and `catalog/guidelines.json`, with their sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog.fsx import lustre as lustre_deployment
from ultracluster.catalog.guidelines import checkpoint_share
from ultracluster.catalog.sizing import (
    lustre_client_gbps,
    lustre_read_mbps_per_tib,
    lustre_write_mbps_per_tib,
    model_state,
)
from ultracluster.config.lustre import LustreFacts
from ultracluster.config.storage import ExistingLustre, IntelligentTieringLustre
from ultracluster.model.cluster import Group

GIB_PER_TIB = 1000
"""FSx sells 1200 GiB as 1.2 TiB, and counts throughput by these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreSpeed:
    """MB/s that the servers of a file system move for as long as it lasts."""

    read_mbps: float
    write_mbps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpeed:
    """MB/s at which the nodes of a group together write."""

    mbps: float
    limit: Literal["file system", "clients"]

    def seconds(self, gigabytes: float) -> float | None:
        """Time to write so many GB (10^9 bytes); None where nothing is written at all."""
        return gigabytes * 1000 / self.mbps if self.mbps else None


def checkpoint_gb(parameters: float) -> float:
    """GB (10^9 bytes) of the checkpoint of a model."""
    return parameters * model_state().checkpoint_bytes / 1e9


def state_gib(parameters: float) -> float:
    """GiB of accelerator memory that training a model takes, without activations."""
    return parameters * model_state().memory_bytes / 2**30


def likely_parameters(accelerator_memory_gib: float) -> float:
    """Parameters of the model whose training state fills the usual share of this accelerator memory."""
    return accelerator_memory_gib * checkpoint_share() * 2**30 / model_state().memory_bytes


def lustre_speed(lustre: LustreFacts) -> LustreSpeed | None:
    """What the servers of a file system move; None where it exists already: its size is not known here."""
    settings, tier = lustre.settings, lustre.throughput_mbps_per_tib
    if isinstance(settings, ExistingLustre):
        return None
    if isinstance(settings, IntelligentTieringLustre):
        return LustreSpeed(read_mbps=settings.throughput_mbps, write_mbps=settings.throughput_mbps)
    tib = settings.capacity_gib / GIB_PER_TIB
    return LustreSpeed(
        read_mbps=tib * (lustre_read_mbps_per_tib(settings.deployment, tier) or 0),
        write_mbps=tib * (lustre_write_mbps_per_tib(settings.deployment, tier) or 0),
    )


def write_speed(lustre: LustreFacts | None, group: Group) -> WriteSpeed | None:
    """How fast all nodes of a group write together; None where the file system's speed is unknown."""
    speed = lustre_speed(lustre) if lustre else None
    if lustre is None or speed is None:
        return None
    instance_type = group.type
    efa = lustre.efa and bool(instance_type and instance_type.lustre_efa_client)
    gds = lustre.gds and bool(instance_type and instance_type.lustre_gds_client)
    clients = max(1, group.most_nodes) * lustre_client_gbps(efa=efa, gds=gds) * 1000 / 8
    if clients < speed.write_mbps:
        return WriteSpeed(mbps=clients, limit="clients")
    return WriteSpeed(mbps=speed.write_mbps, limit="file system")


def smallest_lustre(
    deployment: str, gib: float, mbps: float, *, efa: bool, grows: bool, tiers: Sequence[int] = ()
) -> tuple[int, int]:
    """The capacity in GiB and the throughput tier of a file system with a choice of tiers.

    It is the least capacity that is at least `gib` and writes `mbps`, with the lowest tier that does; the
    greatest throughput where none does.

    Args:
        deployment: as an environment file names it; one with tiers.
        gib: capacity that is needed in any case.
        mbps: MB/s that should be written.
        efa: sizes are those of file systems with EFA.
        grows: more capacity may be taken for more throughput.
        tiers: the only ones that are sold there; empty for all.
    """
    facts = lustre_deployment(deployment)
    found: list[tuple[int, int]] = []
    for tier in facts.throughput.first if facts.throughput else ():
        if tiers and tier not in tiers:
            continue
        series = facts.capacity(tier, efa=efa)
        need = max(gib, mbps / tier * GIB_PER_TIB if grows else 0)
        if series is not None:
            found.append((_at_least(series.first, series.step, need), tier))
    enough = [(capacity, tier) for capacity, tier in found if capacity / GIB_PER_TIB * tier >= mbps]
    return min(enough) if enough else max(found, key=lambda row: row[0] * row[1])


def _at_least(first: Sequence[int], step: int | None, need: float) -> int:
    for size in first:
        if size >= need:
            return size
    return step * max(1, -(-int(need) // step)) if step else first[-1]
