"""What the lifecycle scripts must know of their cluster: the static part of `cluster.json`."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.rules.types import instance_type_of


def script_configuration(config: Environment) -> dict[str, object]:
    """The part of `cluster.json` that is known at synth; mounts are added when they are deployed."""
    groups: dict[str, dict[str, object]] = {}
    for name, group in config.node_groups.items():
        kind = instance_type_of(config, group)
        groups[name] = {
            "role": group.role,
            "instance_type": group.instance_type,
            "accelerators": kind.accelerator.count if kind and kind.accelerator else 0,
            "efa_interfaces": (kind.efa_interfaces or 0) if kind else 0,
            "local_nvme_disks": kind.local_nvme_disks if kind else 0,
        }
    return {
        "schema": 1,
        "environment": config.name,
        "cluster": config.cluster_name,
        "orchestrator": config.orchestrator.kind,
        "release": config.software.release,
        "mirror": config.software.mirror,
        # optional parts of the release that this environment asks for
        "components": ["nvidia-fs"] if getattr(config.storage.lustre, "gds", False) else [],
        # PCS images have several Slurm releases side by side
        "slurm_version": getattr(config.orchestrator, "slurm_version", None),
        "node_groups": groups,
    }
