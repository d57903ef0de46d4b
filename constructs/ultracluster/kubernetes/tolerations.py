"""What a pod must tolerate to run on the nodes of a group."""

from __future__ import annotations

from ultracluster.kubernetes.charts import GPU_TAINT, NEURON_TAINT
from ultracluster.model.team_shares import Pool


def tolerations(pool: Pool) -> list[dict[str, str]]:
    """The group's own taints, and the one that keeps accelerated nodes for those who ask for accelerators.

    Nothing else is tolerated: a node that is being repaired or ended has taints, too.
    """
    keys = {GPU_TAINT if pool.resource.startswith("nvidia.com/") else NEURON_TAINT: "NoSchedule"}
    made = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys.items()]
    for taint in pool.settings.taints:
        if taint.effect == "PreferNoSchedule" or (taint.key in keys and taint.effect == "NoSchedule"):
            continue
        same = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
        made.append({"key": taint.key, **same, "effect": taint.effect})
    return made


__all__ = ["tolerations"]
