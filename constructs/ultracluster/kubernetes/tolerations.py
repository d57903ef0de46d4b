"""Which taints pods tolerate: those of jobs, and those of what runs on system nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ultracluster.config.nodes import Taint
from ultracluster.kubernetes.labels import GPU_TAINT, NEURON_TAINT
from ultracluster.model import Cluster
from ultracluster.model.team_shares import Pool

Tolerations = list[dict[str, str]]

# what charts and add-ons tolerate by default, and a list of ours would take away
_USUAL = {"key": "CriticalAddonsOnly", "operator": "Exists"}


def job_tolerations(pool: Pool) -> Tolerations:
    """The group's own taints, and the one that keeps accelerated nodes for pods that request accelerators.

    Nothing else is tolerated: a node that is being repaired or ended has taints, too.
    """
    key = GPU_TAINT if pool.resource.startswith("nvidia.com/") else NEURON_TAINT
    own = (
        _toleration(taint)
        for taint in pool.settings.taints
        if taint.effect != "PreferNoSchedule" and (taint.key, taint.effect) != (key, "NoSchedule")
    )
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"}, *own]


def system_tolerations(cluster: Cluster) -> Tolerations:
    """The taints of all groups of role `system`, as tolerations; empty where none has any."""
    tolerations: Tolerations = []
    for group in cluster.with_role("system").values():
        for taint in group.settings.taints:
            toleration = _toleration(taint)
            if taint.effect != "PreferNoSchedule" and toleration not in tolerations:
                tolerations.append(toleration)
    return [_USUAL, *tolerations] if tolerations else []


def with_tolerations(
    values: Mapping[str, Any], keys: Iterable[str], tolerations: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Values with the tolerations at each of `keys`, as `controller.tolerations`; as they are without any."""
    result = dict(values)
    for key in keys if tolerations else ():
        *parents, last = key.split(".")
        place = result
        for parent in parents:
            inner = dict(cast("Mapping[str, Any]", place.get(parent, {})))
            place[parent] = inner
            place = inner
        place[last] = [dict(toleration) for toleration in tolerations]
    return result


def _toleration(taint: Taint) -> dict[str, str]:
    same = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
    return {"key": taint.key, **same, "effect": taint.effect}
