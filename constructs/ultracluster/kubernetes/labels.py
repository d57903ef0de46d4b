"""Labels and taints of Kubernetes nodes, whoever launches them."""

from __future__ import annotations

from collections.abc import Sequence

from ultracluster.catalog import InstanceType
from ultracluster.config.nodes import GROUP_LABEL, ROLE_LABEL, NodeGroup, Taint
from ultracluster.kubernetes.gpu_sharing import sharing_labels

GPU_LABEL = "nvidia.com/gpu.present"
"""On every node with NVIDIA GPUs; the charts of NVIDIA look for it."""
GPU_TAINT, NEURON_TAINT = "nvidia.com/gpu", "aws.amazon.com/neuron"


def node_labels(name: str, group: NodeGroup, instance_type: InstanceType) -> dict[str, str]:
    """The group's own labels and ours: a node's group and role, its GPUs and how pods share them."""
    labels = {GROUP_LABEL: name, ROLE_LABEL: group.role}
    if instance_type.accelerator and instance_type.accelerator.manufacturer == "NVIDIA":
        labels[GPU_LABEL] = "true"
    return labels | sharing_labels(name, group) | group.labels


def default_taints(group: NodeGroup, instance_type: InstanceType) -> Sequence[Taint]:
    """The group's own taints; without any, accelerated nodes are kept for pods that request accelerators.

    HyperPod's nodes have only their own: the service taints a node until its health checks have passed.
    """
    if group.taints or instance_type.accelerator is None or group.role != "compute":
        return group.taints
    nvidia = instance_type.accelerator.manufacturer == "NVIDIA"
    return (Taint(key=GPU_TAINT if nvidia else NEURON_TAINT, value="present", effect="NoSchedule"),)


__all__ = ["GPU_LABEL", "GPU_TAINT", "NEURON_TAINT", "default_taints", "node_labels"]
