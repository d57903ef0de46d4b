"""What AWS PCS accepts: limits, sizes, Slurm versions, settings.

`pcs.json` holds the facts, with source and date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from string import Template
from typing import Literal

from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.files import catalog_file

_document = partial(catalog_file, "pcs")

SettingLevel = Literal["cluster", "group", "partition"]
"""Where parameters of slurm.conf are said."""
ConfigurationFile = Literal["cgroup", "slurmdbd"]
"""Slurm's other files, of which a cluster has parameters."""
SizeName = Literal["small", "medium", "large"]

_SIZES: tuple[SizeName, ...] = ("small", "medium", "large")


@dataclass(frozen=True, slots=True, kw_only=True)
class PcsSize:
    """A size of the controller."""

    name: SizeName
    nodes: int
    """Nodes of all groups together, login nodes included."""
    jobs: int
    """Jobs, running and waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PcsSettings:
    """All Slurm parameters that PCS takes at one level."""

    names: tuple[str, ...]
    since: Mapping[str, str]
    """Slurm version from which a parameter is taken, where that is not the oldest."""
    values_since: Mapping[str, Mapping[str, str]]
    """The same of single values of a parameter."""

    def __contains__(self, name: str) -> bool:
        """Whether PCS takes the parameter; Slurm does not tell names apart by case."""
        return any(name.lower() == one.lower() for one in self.names)

    def nearest(self, name: str) -> str:
        """The parameter most like `name`; empty when nothing is."""
        return next(iter(nearest(name, self.names, "", 1)), "")

    def since_of(self, name: str, value: str = "") -> tuple[str, str]:
        """What is taken from a later version only, `HealthCheckNodeState=REBOOT_ONLY`, and that version; both
        empty for what every version takes."""
        for setting, version in self.since.items():
            if setting.lower() == name.lower():
                return setting, version
        for setting, versions in self.values_since.items():
            if setting.lower() == name.lower():
                given = {part.strip().lower() for part in value.split(",")}
                late = {part: version for part, version in versions.items() if part.lower() in given}
                if late:
                    part = max(late, key=lambda part: late[part])
                    return f"{setting}={part}", late[part]
        return "", ""


def pcs_limit(name: Literal["groups", "queues", "clusters_per_region"]) -> int:
    """A default quota of PCS; AWS raises each on request."""
    return int(_document()["limits"][name])


def pcs_regions() -> tuple[str, ...]:
    """Regions in which the guide has an endpoint of PCS."""
    return tuple(_document()["regions"])


def pcs_sizes() -> tuple[PcsSize, ...]:
    """The sizes, the smallest first."""
    return tuple(PcsSize(name=name, **_document()["sizes"][name]) for name in _SIZES)


def pcs_size_for(nodes: int) -> PcsSize:
    """The smallest size that holds so many nodes; the largest when none does."""
    sizes = pcs_sizes()
    return next((size for size in sizes if nodes <= size.nodes), sizes[-1])


def pcs_name_limits() -> tuple[int, int, str]:
    """Shortest and longest name of a group or queue, and its form as a regular expression."""
    names = _document()["names"]
    return names["shortest"], names["longest"], names["form"]


def pcs_slurm_versions() -> Mapping[str, date | None]:
    """Slurm's releases on PCS, the oldest first, each with the last day of its support if it is published."""
    rows: Mapping[str, Mapping[str, str | None]] = _document()["slurm_versions"]
    return {
        version: date.fromisoformat(end) if (end := row["end_of_life"]) else None
        for version, row in rows.items()
    }


def pcs_since(feature: Literal["rest", "detects_gpus", "auto_detect", "group_idle_time"]) -> str:
    """The Slurm version from which PCS has a feature."""
    return _document()["since"][feature]


def pcs_agent(feature: Literal["lifecycle_actions", "rolling_upgrade"]) -> str:
    """The oldest version of the agent with a feature."""
    return _document()["agent"][feature]


def pcs_settings(level: SettingLevel | ConfigurationFile) -> PcsSettings:
    """The Slurm parameters that PCS takes at a level of slurm.conf, or in another file."""
    row = _document()["settings"][level]
    return PcsSettings(names=tuple(row["names"]), since=row["since"], values_since=row["values_since"])


def pcs_image_parameter(architecture: str) -> str:
    """The SSM parameter with the newest PCS-ready DLAMI for `x86_64` or `arm64`."""
    return Template(_document()["image_parameter"]).substitute(architecture=architecture)
