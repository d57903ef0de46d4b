"""Parameters, values and combinations with which the daemons of a Slurm release do not start.

`slurm_keys.json` has the parameters that a parser knows, written by `tools/slurm_keys.py` from Slurm's
sources; `slurm_refusals.json` the values and combinations that end a daemon, each with its place there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ultracluster.catalog.files import catalog_file, record

SlurmFile = Literal[
    "slurm.conf", "NodeName", "PartitionName", "NodeSet", "cgroup.conf", "gres.conf", "slurmdbd.conf"
]
"""A file of Slurm's, or a line of slurm.conf that has parameters of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmKey:
    """A parameter as parsers read it."""

    name: str
    type: str
    """`string`, `uint16`, `uint32`, `uint64`, `long`, `float`, `boolean`, `array`."""
    since: str = ""
    """First release that knows it; empty for all here."""
    until: str = ""
    """Last release that knows it; empty for all here."""
    defunct: str = ""
    """First release that reports it and ignores it."""

    def known_in(self, release: str) -> bool:
        """Return whether the release reads it."""
        return self.since <= release and not (self.until and release > self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalFacts:
    """Values of parameters with which a daemon does not start."""

    file: SlurmFile = "slurm.conf"
    key: str
    """The parameter that is reported."""
    conditions: tuple[tuple[str, str, Any], ...]
    """Parameter, test and operand in small letters; all must hold."""
    says: str
    """Words that the daemon writes."""
    source: str
    bad: Mapping[str, str]
    """Settings with which the daemon ends."""
    since: str = ""
    until: str = ""
    rule: str = ""
    """A rule that reports it with a remedy of its own."""
    instead: str = ""
    """The nearest value that works; empty where the parameter can be removed."""
    name: str = ""
    """The parameter that is meant."""

    def holds_in(self, release: str) -> bool:
        """Return whether a daemon of the release ends with it."""
        return self.since <= release and not (self.until and release > self.until)


def slurm_releases() -> tuple[str, ...]:
    """The releases that are known here, the oldest first."""
    return tuple(catalog_file("slurm_keys")["releases"])


@cache
def slurm_keys(file: SlurmFile) -> Mapping[str, SlurmKey]:
    """Every parameter of a file, by its name in small letters."""
    rows: Mapping[str, Mapping[str, str]] = catalog_file("slurm_keys")["files"][file]["keys"]
    return {name.lower(): record(SlurmKey, row, name=name, **_releases(row)) for name, row in rows.items()}


@cache
def slurm_refusals() -> tuple[RefusalFacts, ...]:
    """Every value and combination that is known to end a daemon."""
    return tuple(
        record(
            RefusalFacts,
            row,
            conditions=tuple((key, test, _small(operand)) for key, test, operand in row["if"]),
            **_releases(row),
        )
        for row in catalog_file("slurm_refusals")["rows"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRefusal:
    """A file, or lines of slurm.conf, with which a daemon does not start."""

    file: str
    """`topology.yaml`, `plugstack.conf` (slurmd ends) or `slurm.conf`."""
    says: str
    source: str
    bad: Any
    """Lines, or a topology of `ultracluster.jobs.placement.slurm_topology`."""
    good: Any
    """The nearest content that is read."""
    since: str = ""


@cache
def slurm_file_refusals() -> tuple[FileRefusal, ...]:
    """Every content that is known to end a daemon and is not made of single settings."""
    return tuple(
        record(FileRefusal, row, since=row.get("from", "")) for row in catalog_file("slurm_refusals")["files"]
    )


def _releases(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"since": row.get("from", ""), "until": row.get("to", "")}


@cache
def slurm_defaults() -> Mapping[str, str]:
    """Slurm's own defaults of what the conditions ask for, by name in small letters."""
    rows: Mapping[str, str] = catalog_file("slurm_refusals")["defaults"]
    return {name.lower(): value for name, value in rows.items()}


def _small(operand: Any) -> Any:
    return json.loads(json.dumps(operand).lower())


__all__ = [
    "FileRefusal",
    "RefusalFacts",
    "SlurmFile",
    "SlurmKey",
    "slurm_defaults",
    "slurm_file_refusals",
    "slurm_keys",
    "slurm_refusals",
    "slurm_releases",
]
