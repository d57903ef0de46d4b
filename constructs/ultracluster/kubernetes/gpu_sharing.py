"""GPUs that several pods share: by MIG, which cuts them, or by turns.

MIG is the GPU operator's business: its MIG manager reads a label of the node and cuts the GPUs, whether EKS
or HyperPod launched it. Turns are the device plugin's, which has named configurations and reads the name of
a node's own from a label, too (NVIDIA/k8s-device-plugin, README, "Shared Access to GPUs", "Updating Per-Node
Configuration With a Node Label").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ultracluster.catalog.mig import mig_devices
from ultracluster.config.nodes import NodeGroup
from ultracluster.model import Group
from ultracluster.model.mig import gpu_layouts

MIG_LABEL = "nvidia.com/mig.config"
"""What the GPU operator's MIG manager cuts GPUs by."""
PLUGIN_LABEL = "nvidia.com/device-plugin.config"
"""Which configuration of the device plugin a node has."""
SHARED_GPU = "nvidia.com/gpu.shared"
"""What pods ask for on nodes whose GPUs take turns."""
WHOLE = "default"
"""Name of the configuration of nodes whose GPUs are not shared."""


def sharing_labels(name: str, group: NodeGroup) -> dict[str, str]:
    """Labels of a group's nodes by which their GPUs are shared; none where they are not."""
    labels: dict[str, str] = {}
    if group.mig_key:
        labels[MIG_LABEL] = _configuration(name, group)
    if group.gpu_time_slices:
        labels[PLUGIN_LABEL] = _name(group.gpu_time_slices)
    return labels


def mig_configurations(groups: Mapping[str, Group]) -> str:
    """Configurations of the MIG manager by name, as YAML; empty where each group's is one that it has itself,
    for it knows profiles and `all-balanced` of every GPU, and either its own configurations or ours
    (NVIDIA/gpu-operator v26.7.0, values.yaml, migManager.config)."""
    cut = {name: group for name, group in groups.items() if group.settings.mig_key}
    if all(_known(group.settings) for group in cut.values()):
        return ""
    configurations: dict[str, list[dict[str, Any]]] = {
        "all-disabled": [{"devices": "all", "mig-enabled": False}]
    }
    for name, group in cut.items():
        entries = configurations.setdefault(_configuration(name, group.settings), [])
        for instance_type in group.known_types:
            # the same profile makes more of a GPU with more memory
            only = {"device-filter": list(mig_devices(instance_type))} if _known(group.settings) else {}
            layouts = [only | entry for entry in _entries(gpu_layouts(group.settings, instance_type))]
            entries += [entry for entry in layouts if entry not in entries]
    return json.dumps({"version": "v1", "mig-configs": configurations})  # JSON is YAML


def _known(group: NodeGroup) -> bool:
    return bool(group.mig_profile) or group.mig_layout == "all-balanced"


def _configuration(name: str, group: NodeGroup) -> str:
    if group.mig_profile:
        return f"all-{group.mig_profile.replace('+', '.')}"
    return "all-balanced" if _known(group) else f"ultracluster-{name}"


def _entries(layouts: Sequence[Mapping[str, int]]) -> list[dict[str, Any]]:
    """GPUs that are cut alike together, as mig-parted reads it."""
    alike: dict[str, list[int]] = {}
    for number, layout in enumerate(layouts):
        alike.setdefault(json.dumps(dict(layout)), []).append(number)
    return [
        {
            "devices": "all" if len(alike) == 1 else numbers,
            "mig-enabled": layout != "{}",
            **({} if layout == "{}" else {"mig-devices": json.loads(layout)}),
        }
        for layout, numbers in alike.items()
    ]


def plugin_configurations(groups: Iterable[NodeGroup]) -> dict[str, str]:
    """The device plugin's configurations by name, as YAML; none where no group's GPUs take turns.

    A pod gets one turn, however many it asks for, so that it may ask for one only. The resource has a name of
    its own: no training job lands on a shared GPU.
    """
    slices = sorted({group.gpu_time_slices for group in groups if group.gpu_time_slices})
    if not slices:
        return {}
    return {WHOLE: _yaml({})} | {_name(count): _yaml({"sharing": _turns(count)}) for count in slices}


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
