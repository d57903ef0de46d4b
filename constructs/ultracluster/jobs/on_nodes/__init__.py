"""Which jobs run on nodes, before somebody takes the nodes away.

running = jobs_on(fleet, nodes)
running.jobs     # each with its id, user and nodes
running.unknown  # why it could not be asked; empty where it could
"""

from __future__ import annotations

from collections.abc import Sequence

from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.sessions_shell import Sessions
from ultracluster.account.wait.shell import RunCommand, Shell
from ultracluster.jobs.on_nodes.cordon import Cordoned, cordon_nodes, uncordon_nodes
from ultracluster.jobs.on_nodes.kubernetes_jobs import jobs_on_kubernetes
from ultracluster.jobs.on_nodes.running_job import Job, Running
from ultracluster.jobs.on_nodes.slurm_jobs import jobs_on_slurm

__all__ = ["Cordoned", "Job", "Running", "close_to_jobs", "jobs_on", "open_to_jobs", "shell_of"]


def jobs_on(fleet: Fleet, nodes: Sequence[Node]) -> Running:
    """Return what runs on nodes; what cannot be asked is said in the answer, never raised."""
    there = [node for node in nodes if node.id]  # a place without an instance runs nothing
    if not there:
        return Running()
    if fleet.wanted.traits.kubernetes:
        return jobs_on_kubernetes(there, lambda: KubernetesApi(fleet.account, fleet.wanted.cluster_name))
    return jobs_on_slurm(there, fleet.entrance(), shell_of(fleet))


def close_to_jobs(fleet: Fleet, nodes: Sequence[Node], action: str) -> Cordoned:
    """Close nodes to new jobs before they are taken; running jobs continue."""
    return cordon_nodes(fleet, nodes, shell_of(fleet), action)


def open_to_jobs(fleet: Fleet, cordoned: Cordoned) -> str:
    """Open the nodes again that `close_to_jobs` closed; why one stays closed, or nothing."""
    return uncordon_nodes(fleet, cordoned, shell_of(fleet))


def shell_of(fleet: Fleet) -> Shell:
    """Return how a command runs on the cluster's nodes."""
    if fleet.cluster:
        return Sessions(fleet.account, fleet.cluster.id)
    return RunCommand(fleet.account)
