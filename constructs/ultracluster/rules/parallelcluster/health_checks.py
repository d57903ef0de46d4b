"""Rules on: ParallelCluster. Its own test of GPUs before jobs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.findings import YamlPath
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterPartition
from ultracluster.config.remedy import drop, rename, write
from ultracluster.model import Cluster, Group
from ultracluster.model.gpu_checks import GPU_CHECK_SECONDS, checks_gpus
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

GUIDE = "ParallelCluster User Guide, SlurmQueues, HealthChecks"


@PCL.warning(
    47,
    "aws/aws-parallelcluster#6777",
    DATE,
)
def hanging_health_checks(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """GPU health checks run only on types where they do not hang."""
    for queue, partition, groups in _checked(settings, cluster):
        for group in groups:
            kind = group.settings.instance_type
            if kind.partition(".")[0] in parallelcluster().hanging_health_checks:
                yield at(*_where(queue, partition, group)).breach(
                    f"DCGM's check was reported to hang before jobs on {kind}: the node neither starts the "
                    "job nor is drained.",
                    write(False).noting("and run `ultracluster acceptance` on new nodes"),
                )
                break


@PCL.warning(48, "ParallelCluster User Guide, HealthChecks: nodes without NVIDIA GPUs run none", DATE)
def health_checks_without_gpu(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """GPU health checks run only on NVIDIA GPUs."""
    for queue, partition, groups in _checked(settings, cluster):
        if not any(map(_maybe_nvidia, groups)):
            yield at(*_where(queue, partition, groups[0])).breach(
                "no group of the partition has NVIDIA GPUs, and DCGM tests only these.", write(False)
            )


@PCL.error(84, f"{PCLUSTER}, schema (ComputeResources HealthChecks)", "2026-11-23")
def health_check_group(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """Groups with a GPU health check of their own are in the partition."""
    for queue, partition in settings.partitions.items():
        there = cluster.partitions.get(queue, {})
        for name in partition.gpu_health_checks_by_group:
            if there and name not in there:
                near = difflib.get_close_matches(name, there, n=1)
                yield at("partitions", queue, "gpu_health_checks_by_group", name).breach(
                    f"`{name}` is no compute group of the partition, which has {', '.join(there)}.",
                    rename(near[0])
                    if near and near[0] not in partition.gpu_health_checks_by_group
                    else drop(),
                )


@PCL.warning(
    85, f"{GUIDE}: of several checks that begin on a node at once, the first alone runs", "2026-11-23"
)
def health_check_needs_whole_nodes(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """GPU health checks run where jobs have whole nodes."""
    for queue, partition, _ in _checked(settings, cluster):
        if not partition.exclusive:
            yield at("partitions", queue, "exclusive").breach(
                "jobs share nodes here: of checks that begin together only the first runs, and jobs start on "
                "GPUs that nobody has tested.",
                write(True),
            )


@PCL.warning(
    86,
    f"{GUIDE} (three minutes are typical with eight A100); slurm.conf manual, PrologEpilogTimeout",
    "2026-11-23",
)
def health_check_timeout(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """Prologs have the time that a GPU health check takes."""
    if not checks_gpus(cluster):
        return
    for key, value in settings.slurm_settings.items():
        if key.lower() == "prologepilogtimeout" and str(value).isdigit() and int(value) < 300:
            yield at("slurm_settings", key).breach(
                f"Slurm ends a prolog after {value} seconds and drains the node, and the check in it takes "
                "minutes.",
                write(GPU_CHECK_SECONDS) | drop(),
            )


def _checked(
    settings: ParallelCluster, cluster: Cluster
) -> Iterator[tuple[str, ParallelClusterPartition, list[Group]]]:
    """Each partition with groups whose nodes are tested, and these."""
    for queue, groups in cluster.partitions.items():
        partition = settings.partitions.get(queue)
        tested = [group for name, group in groups.items() if partition and partition.checks_gpus(name)]
        if partition and tested:
            yield queue, partition, tested


def _where(queue: str, partition: ParallelClusterPartition, group: Group) -> YamlPath:
    """What says that the group's nodes are tested."""
    if group.name in partition.gpu_health_checks_by_group:
        return ("partitions", queue, "gpu_health_checks_by_group", group.name)
    return ("partitions", queue, "gpu_health_checks")


def _maybe_nvidia(group: Group) -> bool:
    kind = group.type
    return kind is None or (kind.accelerator is not None and kind.accelerator.manufacturer == "NVIDIA")
