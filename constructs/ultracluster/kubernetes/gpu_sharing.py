"""GPUs that several pods share: by MIG, which cuts them, or by turns.

MIG is the GPU operator's business: its MIG manager reads a label of the node and cuts the GPUs, whether EKS
or HyperPod launched it. Turns are the device plugin's, which has named configurations and reads the name of
a node's own from a label, too (NVIDIA/k8s-device-plugin, README, "Shared Access to GPUs", "Updating Per-Node
Configuration With a Node Label").
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ultracluster.config.nodes import NodeGroup

MIG_LABEL = "nvidia.com/mig.config"
"""What the GPU operator's MIG manager cuts GPUs by."""
PLUGIN_LABEL = "nvidia.com/device-plugin.config"
"""Which configuration of the device plugin a node has."""
SHARED_GPU = "nvidia.com/gpu.shared"
"""What pods ask for on nodes whose GPUs take turns."""
WHOLE = "default"
"""Name of the configuration of nodes whose GPUs are not shared."""


def sharing_labels(group: NodeGroup) -> dict[str, str]:
    """Labels of a group's nodes by which their GPUs are shared; none where they are not."""
    labels: dict[str, str] = {}
    if group.mig_profile:
        labels[MIG_LABEL] = f"all-{group.mig_profile}"
    if group.gpu_time_slices:
        labels[PLUGIN_LABEL] = _name(group.gpu_time_slices)
    return labels


def plugin_configurations(groups: Iterable[NodeGroup]) -> dict[str, str]:
    """The device plugin's configurations by name, as YAML; none where no group's GPUs take turns.

    A pod gets one turn, however many it asks for, so that it may ask for one only. The resource has a name of
    its own: no training job lands on a shared GPU.
    """
    slices = sorted({group.gpu_time_slices for group in groups if group.gpu_time_slices})
    if not slices:
        return {}
    return {WHOLE: _yaml({})} | {_name(one): _yaml({"sharing": _turns(one)}) for one in slices}


def _turns(slices: int) -> dict[str, Any]:
    return {
        "timeSlicing": {
            "renameByDefault": True,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": "nvidia.com/gpu", "replicas": slices}],
        }
    }


def _name(slices: int) -> str:
    return f"time-slices-{slices}"


def _yaml(configuration: dict[str, Any]) -> str:
    return json.dumps({"version": "v1", **configuration})  # JSON is YAML


__all__ = ["MIG_LABEL", "PLUGIN_LABEL", "SHARED_GPU", "WHOLE", "plugin_configurations", "sharing_labels"]
