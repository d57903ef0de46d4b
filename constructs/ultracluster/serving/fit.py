"""Which GPUs a model server can have: parts of nodes, whole ones, several, within a team's limit."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.model.cluster import Cluster
from ultracluster.model.job_fit import JobError, job_pool, most_nodes_of_job
from ultracluster.model.team_shares import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one replica takes of its nodes."""

    gpus: int
    """Of each of its nodes."""
    nodes: int = 1
    whole: bool
    """It has its nodes to itself."""


def serving_pool(cluster: Cluster, group: str | None) -> Pool:
    """The accelerators of a group; by default of the first that `serving.groups` names, else of the first.

    Raises:
        JobError: the group has none, or they are not NVIDIA's.
    """
    settings = cluster.kubernetes
    if group is None and settings and settings.serving:
        group = settings.serving.groups[0]
    pool = job_pool(cluster, group)
    if pool.resource != "nvidia.com/gpu":
        raise JobError(
            f"{pool.group} has {pool.instance_type.name}: servers are written for NVIDIA GPUs; for Neuron a "
            "model is compiled first"
        )
    return pool


def share_of(pool: Pool, gpus: int | None, nodes: int = 1) -> Share:
    """Return what one replica takes; a whole node by default.

    Raises:
        JobError: a node has fewer, or a replica over several nodes leaves GPUs of them.
    """
    gpus = pool.per_node if gpus is None else gpus
    if nodes > pool.nodes:
        raise JobError(
            f"{pool.group} has {pool.nodes} nodes: a replica over {nodes} nodes never starts. Use at most: "
            f"--nodes {pool.nodes}"
        )
    if gpus > pool.per_node:
        raise JobError(
            f"a node of {pool.group} has {pool.per_node} GPUs, and a replica has {gpus} of each: "
            f"--gpus {pool.per_node}, and more nodes for a larger model"
        )
    if nodes > 1 and gpus < pool.per_node:
        raise JobError(
            f"a replica over {nodes} nodes has all GPUs of them, {pool.per_node} each: without --gpus"
        )
    return Share(gpus=gpus, nodes=nodes, whole=gpus == pool.per_node)


def check_replicas(cluster: Cluster, pool: Pool, share: Share, replicas: int, team: str | None) -> None:
    """Refuse replicas that can never all run: pods would wait forever.

    Raises:
        JobError: the group, or the limit of the team, is too small.
    """
    fitting = pool.nodes * (pool.per_node // share.gpus) if share.nodes == 1 else pool.nodes // share.nodes
    if replicas > fitting:
        raise JobError(
            f"{pool.group} has {pool.nodes} nodes with {pool.per_node} GPUs: {replicas} replicas never all "
            f"run. Use at most {fitting}"
        )
    wanted = replicas * share.gpus * share.nodes
    allowed = most_nodes_of_job(cluster, pool, team) * pool.per_node
    if wanted > allowed:
        raise JobError(f"the limit of {team} allows {allowed} GPUs of {pool.group}, and this takes {wanted}")
