"""How near to each other the nodes of a job must be, as Slurm honours it on this cluster."""

from __future__ import annotations

from ultracluster.catalog.instances import ultraserver
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.model import Cluster
from ultracluster.model.slurm_topology import SlurmTopology, slurm_topology

WAIT = "24:00:00"
"""How long a job waits for nodes below one switch, before it takes others: `max_switch_wait` as
`slurm.configuration` sets it."""


def placement_options(cluster: Cluster, job: PyTorchJob) -> dict[str, str | None]:
    """Options of sbatch: `switches` or `segment`, or neither.

    Raises:
        ValueError: Slurm would ignore what is asked, or could never start the job.
    """
    if job.within is None:
        return {}
    known = _topology(cluster, job)
    if job.within == "ultraserver":
        return {"segment": _segment(job, known)}
    if job.within != "layer-3":
        raise ValueError(
            f"Slurm knows switches, not `{job.within}`: --within layer-3 keeps a job below one leaf of them"
        )
    if known.kind == "block":
        raise ValueError(
            f"Slurm has UltraServers here and no switches ({known.why}): "
            "--within ultraserver keeps a job in one"
        )
    if known.kind == "flat":
        raise ValueError(f"Slurm would ignore --within layer-3, it knows no switches here: {known.why}")
    return {"switches": f"1@{WAIT}"}


def placement_note(cluster: Cluster, job: PyTorchJob) -> str:
    """Return what to know of an option that is written and may not be honoured; empty where it is."""
    if job.within is None:
        return ""
    known = _topology(cluster, job)
    if known.kind == "unknown":
        return (
            f"--switches=1 counts only if Slurm has switches, which is not known here: {known.why}. "
            "`scontrol show topology` on the cluster tells."
        )
    if job.within == "layer-3":
        return (
            f"The job waits up to {WAIT} for nodes below one switch, less where SchedulerParameters has a "
            "shorter max_switch_wait, and then takes others: `ultracluster job why` shows which."
        )
    return ""


def _topology(cluster: Cluster, job: PyTorchJob) -> SlurmTopology:
    return slurm_topology(cluster, cluster.groups[job.pool.group])


def _segment(job: PyTorchJob, known: SlurmTopology) -> str:
    """All nodes of the job in one block.

    Raises:
        ValueError: Slurm knows no blocks here, or none is so large.
    """
    if known.kind not in ("block", "unknown"):
        raise ValueError(
            f"Slurm would ignore --within ultraserver, it knows no UltraServers here: {known.why}"
        )
    sizes = [found.instances for name in job.pool.instance_type.ultraserver if (found := ultraserver(name))]
    if not sizes:
        raise ValueError(f"{job.pool.instance_type.name} is part of no UltraServer")
    if job.nodes > max(sizes):
        raise ValueError(
            f"{job.nodes} nodes do not fit into one UltraServer of at most {max(sizes)}: "
            f"--nodes {max(sizes)}, or no --within"
        )
    return str(job.nodes)
