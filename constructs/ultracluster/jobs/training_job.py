"""A training job, as people ask for it; the same for Kubernetes and Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ultracluster.kubernetes.checkpoints import Place
from ultracluster.model.team_shares import Pool

Kind = Literal["restart", "checkpointless", "elastic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resilience:
    """What becomes of a job whose processes or nodes fail."""

    kind: Kind
    spares: int = 0
    """Nodes that are kept for it, and wait."""
    most_nodes: int | None = None
    """Elastic: nodes at the most."""
    step: int = 1
    """Elastic: by how many nodes it grows and shrinks."""
    sizes: tuple[int, ...] = ()
    """Elastic: numbers of nodes that it may have, in place of `step`."""
    log_line: str | None = None
    """Regular expression of a line that each step prints."""
    log_seconds: int = 600
    """Without such a line for so long the job hangs, and is restarted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchJob:
    """What is asked for."""

    pool: Pool
    nodes: int
    name: str
    script: str
    """Path of the program that torchrun starts."""
    processes: int
    """On a node."""
    image: str | None = None
    team: str | None = None
    priority: str
    within: str | None = None
    """The level of the network that the job must not leave; close to each other by default."""
    time_limit: str | None = None
    """As sbatch takes it, on Slurm; the partition's by default."""
    checkpoints: str | None = None
    """Folder of checkpoints on Slurm: the program is told the newest one."""
    look: bool = True
    """Look at the nodes first, on Slurm."""
    resilience: Resilience | None = None
    """A job of HyperPod's training operator; by default one of the scheduler's own."""
    checkpoints_to: Place | None = None
    """Tiered checkpoints, and where the last tier is; none by default."""
    framework: Literal["pytorch", "jax", "ray"] = "pytorch"
    workdir: bool = False
    """It starts in a folder that travels with it."""
    program: tuple[str, ...] = ()
    """Words that Ray's head starts instead of python with the script."""


def reserved_nodes(nodes: int, asked: Resilience | None) -> int:
    """Nodes that a job can have at once, those that wait for it among them."""
    if asked is None:
        return nodes
    return max(nodes, asked.most_nodes or 0) + asked.spares
