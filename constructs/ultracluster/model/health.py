"""What nodes are told of `health:`."""

from __future__ import annotations

from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model.cluster import Cluster


def health_settings(cluster: Cluster) -> dict[str, object]:
    """`health` of `cluster.json`; empty where nothing runs. `fresh_seconds`: a look before a job is spared
    when the last one is younger."""
    health = cluster.environment.health
    if not cluster.traits.slurm or health.mode == "off":
        return {}
    told: dict[str, object] = {
        "mode": health.mode,
        "orchestrator": cluster.traits.kind,
        "boot_gate": health.boot_gate,
        "ignore": list(health.ignore),
        "max_drained_percent": health.max_drained_percent,
        "max_closed_percent": health.max_closed_percent,
        "max_drained_per_hour": health.max_drained_per_hour or 0,
        "replace": health.replace,
        "max_resumes_per_day": health.max_resumes_per_day,
        "checkpoint_seconds": health.checkpoint_seconds,
        "fresh_seconds": 60,
    }
    if isinstance(cluster.settings, HyperPodSlurm):
        told["node_recovery"] = cluster.settings.node_recovery
    return told


__all__ = ["health_settings"]
