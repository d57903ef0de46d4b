"""Nodes and partitions as slurm.conf and gres.conf have them."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.catalog import InstanceType
from ultracluster.config.orchestrator import ParallelCluster, Pcs
from ultracluster.config.slurm import Partition
from ultracluster.model import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """What NodeName and gres.conf say of the nodes of a group; who writes the lines is the service."""

    group: str
    partition: str
    nodes: int
    """At the most."""
    cpus: int | None
    """None for an unknown type."""
    memory_mib: int | None
    """Of the instance; a service leaves some of it to the node itself."""
    gpus: int
    """NVIDIA GPUs that jobs ask Slurm for."""
    gpu_type: str
    """`h100`; empty without GPUs."""

    @property
    def gres(self) -> str:
        """`gpu:h100:8`; empty without GPUs."""
        return f"gpu:{self.gpu_type}:{self.gpus}" if self.gpus else ""

    @property
    def gpu_files(self) -> str:
        """Device files, as gres.conf has them: `/dev/nvidia[0-7]`."""
        return f"/dev/nvidia[0-{self.gpus - 1}]" if self.gpus > 1 else "/dev/nvidia0" * self.gpus


def node_lines(cluster: Cluster) -> dict[str, NodeLine]:
    """Of all compute groups, by name."""
    return {
        name: node_line(name, group.partition or name, group.most_nodes, group.type)
        for name, group in cluster.with_role("compute").items()
    }


def node_line(group: str, partition: str, nodes: int, instance_type: InstanceType | None) -> NodeLine:
    """Of one group; of accelerators by AWS no device files are published for Slurm."""
    gpus = instance_type.accelerator if instance_type else None
    nvidia = gpus is not None and gpus.manufacturer == "NVIDIA"
    return NodeLine(
        group=group,
        partition=partition,
        nodes=nodes,
        cpus=instance_type.vcpu or None if instance_type else None,
        memory_mib=int(instance_type.memory_gib * 1024)
        if instance_type and instance_type.memory_gib
        else None,
        gpus=gpus.count if gpus and nvidia else 0,
        gpu_type=gpu_type(gpus.name) if gpus and nvidia else "",
    )


def gpu_type(name: str) -> str:
    """A GPU's name as jobs write it: `h100`, `rtxpro6000`."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def default_partition(cluster: Cluster) -> str:
    """The partition that is yours to be the default, or the first one."""
    names = list(cluster.partitions)
    chosen = [name for name in names if says(partition_of(cluster, name), "Default", "YES")]
    return next(iter((*chosen, *names)), "")


def partition_settings(cluster: Cluster, name: str) -> dict[str, str]:
    """Parameters of a partition: whole nodes if it is exclusive, and whether it is the default; yours win."""
    partition = partition_of(cluster, name)
    settings = {key: str(value) for key, value in partition.slurm_settings.items()}
    if isinstance(cluster.settings, Pcs):
        if partition.exclusive and not (says(partition, "OverSubscribe") or says(partition, "Exclusive")):
            settings["OverSubscribe"] = "EXCLUSIVE"
        if name == default_partition(cluster) and not _any_says(cluster, "Default"):
            settings["Default"] = "YES"
    return settings


def partition_of(cluster: Cluster, name: str) -> Partition:
    """What the environment says of a partition."""
    settings = cluster.settings
    named = settings.partitions.get(name) if isinstance(settings, ParallelCluster | Pcs) else None
    return named or Partition()


def says(partition: Partition, name: str, value: str | None = None) -> bool:
    """Whether a parameter is given, and has the value; Slurm does not tell either apart by case."""
    return any(
        key.lower() == name.lower() and (value is None or str(own_value).lower() == value.lower())
        for key, own_value in partition.slurm_settings.items()
    )


def _any_says(cluster: Cluster, name: str) -> bool:
    return any(says(partition_of(cluster, partition), name) for partition in cluster.partitions)
