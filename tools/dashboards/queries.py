"""PromQL for what is chosen at the top of a board."""

from __future__ import annotations

CLUSTER = 'cluster="$cluster"'
NODES = 'cluster="$cluster",node_group=~"$node_group",node=~"$node"'
JOB = 'cluster="$cluster",job_id=~"$job"'
JOB_NODES = (
    "(max by (cluster, node) (label_replace("
    f'ultracluster_slurm_job_node{{{JOB}}}, "node", "$1", "slurm_node", "(.+)") '
    f"or ultracluster_training_step{{{JOB}}}) > bool -1)"
)
"""1 for each node of the chosen job: of Slurm where it says so, else of what the job itself reports."""


def of(metric: str, *more: str, where: str = NODES) -> str:
    """A selector of a metric for what is chosen at the top of the board."""
    return f"{metric}{{{','.join((where, *more))}}}"


def rate(metric: str, *more: str, where: str = NODES) -> str:
    """Growth of a counter per second."""
    return f"rate({of(metric, *more, where=where)}[$__rate_interval])"


def of_job(expression: str) -> str:
    """An expression by cluster and node, for the nodes of the chosen job only."""
    return f"({expression}) * on (cluster, node) group_left () {JOB_NODES}"
