"""What FSx for Lustre and FSx for OpenZFS accept: tiers, steps, limits.

`fsx.json` holds the facts, each with source and date.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from ultracluster.catalog.files import catalog_file, record

_document = partial(catalog_file, "fsx")


@dataclass(frozen=True, slots=True)
class Series:
    """The whole numbers that a field accepts: some `first` ones, then multiples of `step`."""

    first: tuple[int, ...] = ()
    step: int | None = None
    minimum: int = 1
    """No multiple below this counts."""
    maximum: int | None = None
    """No multiple above this counts."""

    def __contains__(self, value: int) -> bool:
        if value in self.first:
            return True
        if not self.step or value % self.step or value < self.minimum:
            return False
        return self.maximum is None or value <= self.maximum

    def below(self, value: int) -> int | None:
        """The largest accepted number under `value`; None if there is none."""
        found = [number for number in self.first if number < value]
        if self.step:
            top = value - 1 if self.maximum is None else min(value - 1, self.maximum)
            multiple = top // self.step * self.step
            found += [multiple] if multiple in self else []
        return max(found, default=None)

    def above(self, value: int) -> int | None:
        """The smallest accepted number over `value`; None if there is none."""
        found = [number for number in self.first if number > value]
        if self.step:
            bottom = max(value + 1, self.minimum)
            multiple = -(-bottom // self.step) * self.step
            found += [multiple] if multiple in self else []
        return min(found, default=None)

    def neighbours(self, value: int) -> tuple[int, ...]:
        """The accepted numbers next to `value` on either side, at least one."""
        return tuple(n for n in (self.below(value), self.above(value)) if n is not None)

    def near(self, value: int) -> str:
        """The accepted numbers next to `value` in words: "4800 or 7200"."""
        return alternatives([str(number) for number in self.neighbours(value)])

    def __str__(self) -> str:
        words = [str(number) for number in self.first]
        if self.step == 1:
            words.append(f"{self.minimum} to {self.maximum}")
        elif self.step:
            limit = f" up to {self.maximum}" if self.maximum else ""
            words.append(f"a multiple of {self.step}{limit}")
        return alternatives(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreDeployment:
    """One kind of Lustre file system.

    Source: CreateFileSystem and its types in the FSx API; the FSx for Lustre User Guide for EFA.
    """

    name: str
    """As an environment file names it: "persistent-2-ssd"."""
    api_type: str
    """LustreDeploymentType: "PERSISTENT_2"."""
    storage_type: str
    """StorageType: "SSD", "HDD", "INTELLIGENT_TIERING"."""
    throughput: Series | None
    """MB/s per TiB, or MB/s of the whole where storage is elastic; None: no such field."""
    capacities: Mapping[str, Series]
    efa_capacities: Mapping[str, Series]
    metadata_iops: Series | None
    """None: takes no metadata configuration."""
    versions: tuple[str, ...]
    metadata_versions: tuple[str, ...] = ()
    """Versions that take a metadata configuration."""
    data_repositories: bool
    """Can be linked to S3 by data repository associations."""
    quota: str
    """Which default quota counts it."""

    def capacity(self, throughput: int | None = None, *, efa: bool = False) -> Series | None:
        """GiB accepted at a throughput tier; None for an unknown tier and for elastic storage."""
        table = self.efa_capacities if efa else self.capacities
        return table.get(str(throughput)) or table.get("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenZfsDeployment:
    """One kind of OpenZFS file system.

    Source: CreateFileSystemOpenZFSConfiguration in the FSx API; the guide's table of Regions.
    """

    name: str
    api_type: str
    """OpenZFSDeploymentType: "SINGLE_AZ_HA_2"."""
    throughput: Series
    """MB/s."""
    capacity: Series
    """GiB."""
    regions_without: tuple[str, ...]
    """Regions that AWS's table shows without it. A Region that is not here proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that do not depend on the deployment."""

    efa_connections: int
    """EFA connections per file system; each interface of each client is one."""
    data_repositories: int
    """Data repository associations per file system."""
    data_repository_versions: tuple[str, ...]
    nid_pattern: str
    """Regular expression of a client that root squash exempts."""
    quota_capacity_gib: Mapping[str, int]
    """Default quota by `LustreDeployment.quota`, in GiB."""
    quota_intelligent_tiering_mbps: int
    quota_codes: Mapping[str, str]
    """Service Quotas code by `LustreDeployment.quota`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreOffer:
    """What FSx for Lustre sells in a place that does not have all of it."""

    deployments: tuple[str, ...]
    limited: tuple[int, ...] = ()
    """The only tiers of persistent-2-ssd there, which then has no EFA; empty: all of them."""


def lustre_offer(region: str, zone_id: str, *, local: bool) -> LustreOffer | None:
    """What is sold in a zone of a Region; None where nothing is known to lack.

    `local`: the zone is a Local Zone. One that AWS's table does not list has an empty offer.
    """
    places: dict[str, Any] = _document()["places"]
    if local:
        named = (row for city, row in places["local_zones"].items() if zone_id.startswith(city))
        row = next(named, {"deployments": ()})
    else:
        row = places["regions"].get(region)
    if row is None:
        return None
    return record(LustreOffer, row)


def lustre(deployment: str) -> LustreDeployment:
    """The Lustre deployment that an environment file calls `deployment`.

    Raises:
        KeyError: there is none of this name.
    """
    return lustre_deployments()[deployment]


@cache
def lustre_deployments() -> Mapping[str, LustreDeployment]:
    """Every kind of Lustre file system by name; read-only."""
    return MappingProxyType(
        {
            name: record(
                LustreDeployment,
                row,
                name=name,
                api_type=row["api"][0],
                storage_type=row["api"][1],
                throughput=_series(row.get("throughput")),
                capacities=_table(row["capacity_gib"]),
                efa_capacities=_table(row.get("efa_capacity_gib", {})),
                metadata_iops=_series(row.get("metadata_iops")),
            )
            for name, row in _document()["lustre"].items()
        }
    )


def openzfs(deployment: str) -> OpenZfsDeployment:
    """The OpenZFS deployment that an environment file calls `deployment`.

    Raises:
        KeyError: there is none of this name.
    """
    return openzfs_deployments()[deployment]


@cache
def openzfs_deployments() -> Mapping[str, OpenZfsDeployment]:
    """Every kind of OpenZFS file system by name; read-only."""
    document = _document()
    capacity = _series(document["openzfs_capacity_gib"]["series"]) or Series()
    return MappingProxyType(
        {
            name: record(
                OpenZfsDeployment,
                row,
                name=name,
                api_type=row["api"],
                throughput=Series(tuple(row["throughput_mbps"])),
                capacity=capacity,
            )
            for name, row in document["openzfs"].items()
        }
    )


def read_cache(throughput_mbps: int) -> Series:
    """GiB of SSD read cache that an Intelligent-Tiering file system of this throughput accepts."""
    row = _document()["read_cache"]
    units = throughput_mbps // row["per_mbps"]
    return Series(step=1, minimum=row["minimum_gib"] * units, maximum=row["maximum_gib"] * units)


@cache
def limits() -> Limits:
    """Limits of FSx for Lustre."""
    document = _document()
    repositories, quotas = document["data_repositories"], document["default_quotas"]
    return Limits(
        efa_connections=document["efa"]["connections"],
        data_repositories=repositories["maximum"],
        data_repository_versions=tuple(repositories["versions"]),
        nid_pattern=document["root_squash"]["nid_pattern"],
        quota_capacity_gib=MappingProxyType(quotas["capacity_gib"]),
        quota_intelligent_tiering_mbps=quotas["intelligent_tiering_mbps"],
        quota_codes=MappingProxyType(quotas["codes"]),
    )


def alternatives(words: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _series(value: Any) -> Series | None:
    if value is None:
        return None
    row: dict[str, Any] = {"first": value} if isinstance(value, list) else value
    first = tuple(row.get("first", ()))
    return Series(first, row.get("step"), row.get("minimum", 1), row.get("maximum"))


def _table(rows: dict[str, Any]) -> Mapping[str, Series]:
    return MappingProxyType({tier: s for tier, row in rows.items() if (s := _series(row))})
