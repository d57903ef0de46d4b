"""Labels of HyperPod's Kubernetes nodes."""

from __future__ import annotations

from ultracluster.catalog.instances import InstanceType
from ultracluster.config.nodes import NodeGroup
from ultracluster.kubernetes.charts import GPU_LABEL

MIG_LABEL = "nvidia.com/mig.config"
"""What the GPU operator's MIG manager cuts GPUs by (SageMaker Developer Guide, GPU partitions)."""


def group_labels(name: str, group: NodeGroup, instance_type: InstanceType) -> dict[str, str]:
    """The group's own labels and ours: a node's group and role, whether it has GPUs and how they are cut.

    There are no taints of ours: HyperPod taints a node itself until its health checks are over.
    """
    labels = {"ultracluster/node-group": name, "ultracluster/role": group.role}
    if instance_type.accelerator and instance_type.accelerator.manufacturer == "NVIDIA":
        labels[GPU_LABEL] = "true"
    if group.mig_profile:
        labels[MIG_LABEL] = f"all-{group.mig_profile}"
    return labels | group.labels
