"""Sizes that a new environment begins with; `guidelines.json` holds them with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ultracluster.catalog.files import catalog_file

_document = partial(catalog_file, "guidelines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guideline:
    """Sizes for a number of compute nodes."""

    nodes: int
    """The row is for so many compute nodes at the most."""
    controller: str
    """Size of the Slurm controller, without a family: "4xlarge"."""
    login: str
    """Size of a login node."""
    login_nodes: int
    system_nodes: int
    """Nodes for the add-ons of Kubernetes."""
    lustre_tib: float
    """Lustre storage, where throughput does not ask for more; 1.2 TiB are 1200 GiB."""
    checkpoint_minutes: float
    """Time in which Lustre takes a checkpoint."""
    home_gib: int
    home_mbps: int
    """MB/s of the file system for home directories."""
    accounting_database: bool
    """Whether Slurm's accounting is worth a database of its own."""


def guideline(nodes: int) -> Guideline:
    """The sizes for so many compute nodes; those of the largest row for still more."""
    rows = [Guideline(**row) for row in _document()["rows"]]
    return next((row for row in rows if nodes <= row.nodes), rows[-1])


def checkpoint_share() -> float:
    """Part of the accelerators' memory that the training state is taken to fill."""
    return _document()["checkpoint_share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInterval:
    """How often a checkpoint is taken to be written. An assumption: no environment file says it."""

    minutes: float
    share: float
    """Part of it that writing may take."""

    @property
    def most_minutes(self) -> float:
        """Time that writing one checkpoint may take."""
        return self.minutes * self.share


def checkpoint_interval() -> CheckpointInterval:
    """How often a checkpoint is written, and how much of that time the writing may take."""
    document = _document()
    return CheckpointInterval(
        minutes=document["checkpoint_interval_minutes"], share=document["checkpoint_interval_share"]
    )


def general_families(kind: Literal["hyperpod", "x86_64", "arm64"]) -> tuple[str, ...]:
    """Families for nodes without accelerators, best first: HyperPod's, or by processor architecture."""
    return tuple(_document()["families"][kind])
