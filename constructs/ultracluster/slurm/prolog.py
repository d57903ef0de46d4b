"""Slurm settings that run our prologs: programs that slurmd runs on every node of a job before it starts.

A prolog is an executable file `NN_name` in a folder of the node; they run in the order of their names.
ParallelCluster has such a folder, `/opt/slurm/etc/scripts/prolog.d`, and sets `Prolog` itself; on PCS the
folder is ours, and `files/slurm_prolog.sh` runs what is in it (`ultracluster.config.pcs.PROLOG`).
"""

from __future__ import annotations

from ultracluster.config.slurm import PROLOG_FLAGS, SlurmSettings


def slurm_prolog(path: str | None = None) -> SlurmSettings:
    """Run the prologs on all nodes of a job at its allocation, so that they can wait for each other.

    AWS PCS User Guide, "Configure UltraServer instances"; ParallelCluster User Guide, "Support NVIDIA-Imex
    with p6e-gb200 instance".

    Args:
        path: of the program that runs them, where the orchestrator does not set it itself.
    """
    flags: SlurmSettings = {"PrologFlags": PROLOG_FLAGS}
    return {"Prolog": path, **flags} if path else flags


__all__ = ["slurm_prolog"]
