"""Leases: groups whose nodes go at a time that is known, that of their Capacity Block or training plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ultracluster.config.base import is_token
from ultracluster.config.capacity import CapacityBlock, TrainingPlan
from ultracluster.model.cluster import Cluster, Group

SIGNAL_MINUTES = 15
"""Before AWS takes the nodes: jobs that asked for it get their signal, and write a checkpoint."""
STOP_MINUTES = 5
"""Before AWS takes the nodes: jobs go back into the queue, and the reservation begins."""

_BLOCK_MINUTES = 30
"""EC2 User Guide, "Monitor Capacity Blocks using EventBridge": 40 minutes before the end comes a warning that
instances begin to end in 10."""
_ULTRASERVER_MINUTES = 60
"""EC2 User Guide, "Capacity Blocks for ML", Considerations: instances of P6e-GB200 must be ended at least 60
minutes before (2026-11-28). Of Trn2 UltraServers it says nothing; too early only costs the last minutes."""
_PLAN_MINUTES = 60
"""SageMaker AI Developer Guide, "Training plans": instances of HyperPod are taken an hour before the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Nodes of one group, and what they are leased by."""

    group: str
    partition: str
    kind: Literal["capacity-block", "training-plan"]
    id: str
    """Id of the block's reservation, or ARN of the plan."""
    reclaimed_minutes: int
    """Before the end, when AWS begins to take the nodes."""
    node_pattern: str
    """A regular expression of the nodes' names in Slurm; empty on HyperPod, where nodes are named by their
    addresses, and its own file tells their groups."""


def leases(cluster: Cluster) -> tuple[Lease, ...]:
    """Those of the compute groups of a cluster with Slurm; not one that only a deploy knows (a CDK token)."""
    found: list[Lease] = []
    for group in cluster.with_role("compute").values():
        partition = group.partition or group.name
        match group.capacity:
            case CapacityBlock(id=block) if not is_token(block):
                minutes = _ULTRASERVER_MINUTES if _is_ultraserver(group) else _BLOCK_MINUTES
                found.append(_lease(cluster, group, partition, "capacity-block", block, minutes))
            case TrainingPlan(arn=plan) if not is_token(plan):
                found.append(_lease(cluster, group, partition, "training-plan", plan, _PLAN_MINUTES))
            case _:
                continue
    return tuple(found)


def asked_of(cluster: Cluster, kind: Literal["capacity-block", "training-plan"]) -> tuple[str, ...]:
    """Ids of the leases of a kind whose end a node of the cluster asks for: none where it runs no scripts."""
    if not (cluster.traits.slurm and cluster.runs_scripts):
        return ()
    return tuple(dict.fromkeys(lease.id for lease in leases(cluster) if lease.kind == kind))


def _lease(
    cluster: Cluster,
    group: Group,
    partition: str,
    kind: Literal["capacity-block", "training-plan"],
    lease: str,
    minutes: int,
) -> Lease:
    names = {"partition": re.escape(partition), "group": re.escape(group.name)}
    pattern = cluster.traits.slurm_nodes.format(**names)
    return Lease(
        group=group.name,
        partition=partition,
        kind=kind,
        id=lease,
        reclaimed_minutes=minutes,
        node_pattern=pattern,
    )


def _is_ultraserver(group: Group) -> bool:
    return any(known.ultraserver for known in group.known_types)


__all__ = ["SIGNAL_MINUTES", "STOP_MINUTES", "Lease", "asked_of", "leases"]
