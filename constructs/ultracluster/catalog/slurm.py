"""Settings of slurm.conf: which we set, on which orchestrator, from which release, and which are refused.

`slurm.json` holds the facts, with source and date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial

from ultracluster.catalog.files import catalog_file, record

_document = partial(catalog_file, "slurm")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFacts:
    """One parameter of slurm.conf or cgroup.conf."""

    name: str
    value: str | None
    """None where it is worked out from the cluster."""
    when: frozenset[str]
    """What a cluster must have for it; all of them."""
    who: Mapping[str, str]
    """By orchestrator: `ours`, `keep`, or what the service sets it to; absent where it cannot be set."""
    why: str
    source: str
    lead: str = ""
    """The parameter that it belongs to."""
    since: str = ""
    """Slurm's first release that takes it; empty for all that nodes may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPodSlurmFacts:
    """What HyperPod's agent keeps to itself in slurm.conf."""

    denied: Mapping[str, str]
    """What to do instead, by name of the parameter."""
    required_words: Mapping[str, str]
    """A word that a parameter must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """Settings that a service writes into slurm.conf beside ours and yours."""

    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    complete: bool = False
    """True where these are all of them: then Slurm's own default holds for what is missing."""


def slurm_settings() -> tuple[SettingFacts, ...]:
    """Those of slurm.conf."""
    return _rows("settings")


def cgroup_settings() -> tuple[SettingFacts, ...]:
    """Those of cgroup.conf."""
    return _rows("cgroup")


@cache
def word_lists() -> frozenset[str]:
    """Parameters whose value is a list of words, in lower case."""
    return frozenset(name.lower() for name in _document()["word_lists"])


@cache
def hyperpod_slurm() -> HyperPodSlurmFacts:
    return record(HyperPodSlurmFacts, _document()["hyperpod"])


def hyperpod_slurm_versions() -> tuple[str, ...]:
    """Slurm's releases of which HyperPod's images have one, the oldest first."""
    return tuple(_document()["versions"]["of_hyperpod"])


def parallelcluster_slurm_version(release: str) -> str:
    """Slurm's release in the images of a release of ParallelCluster."""
    given = _numbers(release)
    rows: list[Mapping[str, str]] = _document()["versions"]["of_parallelcluster"]
    return next((row["slurm"] for row in reversed(rows) if given >= _numbers(row["from"])), rows[0]["slurm"])


def service_settings(kind: str) -> ServiceFacts:
    """Settings of an orchestrator's service; nothing where it is not published."""
    return record(ServiceFacts, _document()["service"].get(kind, {}))


def words(value: str) -> tuple[str, ...]:
    """The words of a list, `bf_continue,bf_window=1440`, without quotes and empty ones."""
    return tuple(word for part in value.strip('"').split(",") if (word := part.strip()))


@cache
def _rows(what: str) -> tuple[SettingFacts, ...]:
    return tuple(
        record(SettingFacts, row, when=frozenset(row["when"].split()) - {"always"}, lead=row.get("with", ""))
        for row in _document()[what]
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


__all__ = [
    "HyperPodSlurmFacts",
    "ServiceFacts",
    "SettingFacts",
    "cgroup_settings",
    "hyperpod_slurm",
    "hyperpod_slurm_versions",
    "parallelcluster_slurm_version",
    "service_settings",
    "slurm_settings",
    "word_lists",
    "words",
]
