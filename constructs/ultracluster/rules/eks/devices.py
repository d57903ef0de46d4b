"""Rules on: Kubernetes on EKS. What makes devices of nodes usable: GPU plugins, Lustre over EFA."""

from __future__ import annotations

from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import drop, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EKS


@EKS.error(33, "NVIDIA/gpu-operator; Neuron documentation, Neuron Helm chart")
def gpu_operator_needs_gpus(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """The GPU operator is installed only where there are NVIDIA GPUs."""
    if settings.gpu_plugin == "gpu-operator" and not _makers(cluster) & {"NVIDIA", None}:
        yield at("gpu_plugin").breach(
            "no compute group has NVIDIA GPUs, and Neuron devices always get their own plugin.",
            write("device-plugin"),
        )


@EKS.warning(34, "Kubernetes documentation, Device Plugins")
def gpus_need_device_plugin(settings: Eks | HyperPodEks, cluster: Cluster) -> Breaches:
    """A device plugin makes the GPUs available to pods."""
    if settings.gpu_plugin == "none" and "NVIDIA" in _makers(cluster):
        yield at("gpu_plugin").breach(
            "without a device plugin no pod gets a GPU, unless you install one yourself.",
            write("device-plugin"),
        )


@EKS.warning(35, "EKS User Guide, FSx for Lustre performance on nodes with EFA (fsx-csi-tuning-efa)")
def lustre_efa_needs_lifecycle(settings: Eks, cluster: Cluster) -> Breaches:
    """Lifecycle scripts set nodes up for Lustre over EFA."""
    if settings.lifecycle == "none" and any(lustre.efa for lustre in cluster.lustres.values()):
        yield at("lifecycle").breach(
            "a Lustre file system uses EFA, and no script sets nodes up for it before they join: Lustre "
            "would silently use TCP.",
            drop().noting("the default runs our scripts"),
        )


def _makers(cluster: Cluster) -> set[str | None]:
    """Makers of the accelerators; None stands for a type that is not known."""
    types = [group.type for group in cluster.with_role("compute").values()]
    return {kind.accelerator.manufacturer if kind.accelerator else "" for kind in types if kind} | (
        {None} if None in types else set()
    )
