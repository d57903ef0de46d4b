"""KAI Scheduler: teams as a tree of queues, whole jobs placed at once, close to each other.

Objects of kai-scheduler/KAI-Scheduler v0.17.0: `scheduling.run.ai/v2` and `kai.scheduler/v1alpha1`.
"""

from __future__ import annotations

from typing import Any

from ultracluster.kubernetes.teams import priority_classes
from ultracluster.kubernetes.topology import kinds_of, levels
from ultracluster.model import Cluster
from ultracluster.model.team_shares import parents_first, pools, quotas, teams_of, total_amount

Manifest = dict[str, Any]

PARENT = "teams"
DEFAULT_QUEUE = "default-queue"
"""The chart's own, for clusters without teams."""
SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
TOPOLOGY = "kai.scheduler/topology"
REQUIRED, PREFERRED = (
    "kai.scheduler/topology-required-placement",
    "kai.scheduler/topology-preferred-placement",
)
_UNLIMITED = -1


def kai_values() -> dict[str, Any]:
    """Values of the chart: its own priorities stay, because it gives jobs without one its `train`."""
    return {"defaultPriorityClasses": {"enabled": True}}


def kai_objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """Topologies, priorities, and a queue for each team.

    Raises:
        ValueError: quotas that the cluster does not have.
    """
    node_pools = pools(cluster)
    topologies = [
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": kind},
            "spec": {"levels": [{"nodeLabel": label} for label in levels(kind)]},
        }
        for kind in kinds_of(cluster, node_pools)
    ]
    team_quotas = {name: sum(quota.values()) for name, quota in quotas(cluster).items()}
    queues: list[Manifest] = []
    teams = cluster.environment.teams
    if team_quotas:
        everything = sum(team_quotas[name] for name in teams_of(teams, None))
        queues.append(_queue(PARENT, {"quota": everything, "limit": _UNLIMITED}))
    for name in parents_first(teams):
        team = teams[name]
        gpu = {
            "quota": team_quotas[name],
            "limit": _UNLIMITED if team.limit is None else total_amount(team.limit),
        }
        queues.append(_queue(name, gpu, weight=team.weight, parent=team.parent or PARENT))
    return (*topologies, *priority_classes(), *queues)


def _queue(name: str, gpu: dict[str, int], *, weight: int = 1, parent: str | None = None) -> Manifest:
    # processors and memory are not shared out: who has the GPUs has the rest of the node
    rest = {"quota": _UNLIMITED, "limit": _UNLIMITED, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {"gpu": {**gpu, "overQuotaWeight": weight}, "cpu": rest, "memory": rest},
        },
    }


__all__ = [
    "DEFAULT_QUEUE",
    "PARENT",
    "PREFERRED",
    "QUEUE_LABEL",
    "REQUIRED",
    "SCHEDULER",
    "TOPOLOGY",
    "kai_objects",
    "kai_values",
]
