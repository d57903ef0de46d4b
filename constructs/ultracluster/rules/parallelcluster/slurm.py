"""Rules on: ParallelCluster. Slurm settings that are passed through, and those that it keeps to itself."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterPartition
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.config.slurm import SlurmSettings
from ultracluster.config.storage import Storage
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.parallelcluster.topology import uses_imex
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

DENIED = f"{PCLUSTER}, CustomSlurmSettingsValidator"


@PCL.error(40, DENIED, DATE)
def cluster_settings(settings: ParallelCluster) -> Breaches:
    """slurm_settings of the cluster leave out what ParallelCluster sets itself."""
    denied = parallelcluster().slurm_settings["cluster"]
    yield from _denied(settings.slurm_settings, denied, "the cluster")


@PCL.error(41, DENIED, DATE)
def accounting_settings(settings: ParallelCluster, storage: Storage) -> Breaches:
    """slurm_settings do not contradict the accounting database."""
    if storage.accounting_database:
        denied = parallelcluster().slurm_settings["accounting"]
        yield from _denied(settings.slurm_settings, denied, "a cluster with an accounting database")


@PCL.error(42, DENIED, DATE)
def partition_settings(partition: ParallelClusterPartition) -> Breaches:
    """slurm_settings of a partition leave out what ParallelCluster sets itself."""
    denied = parallelcluster().slurm_settings["partition"]
    yield from _denied(partition.slurm_settings, denied, "a partition")


@PCL.error(43, DENIED, DATE)
def group_settings(group: Group) -> Breaches:
    """slurm_settings of a group leave out what ParallelCluster sets itself."""
    if group.role == "compute":
        denied = parallelcluster().slurm_settings["group"]
        yield from _denied(group.settings.slurm_settings, denied, "a compute group")


@PCL.error(44, f"{PCLUSTER}, schema (HeadNode and LoginNodes have no CustomSlurmSettings)", DATE)
def settings_only_on_compute(group: Group) -> Breaches:
    """Only compute groups have slurm_settings."""
    if group.role in ("controller", "login") and group.settings.slurm_settings:
        yield at("slurm_settings").breach(
            f"a {group.role} node has no line in slurm.conf that could take these settings.",
            drop().noting("settings of the cluster belong in orchestrator.slurm_settings"),
        )


@PCL.error(45, f"{PCLUSTER}, CustomSlurmNodeNamesValidator", DATE)
def node_names(settings: ParallelCluster) -> Breaches:
    """NodeName does not look like a node name of ParallelCluster."""
    for key, value in settings.slurm_settings.items():
        marks = [mark for mark in parallelcluster().node_name_marks if mark in str(value)]
        if key.lower() == "nodename" and marks:
            yield at("slurm_settings", key).breach(
                f"{value} contains {marks[0]}, by which ParallelCluster recognises the nodes that it may "
                "terminate.",
                ask("decision", "use another name"),
            )


@PCL.error(46, f"{PCLUSTER}, schema (SlurmQueues ComputeResources)", DATE)
def partition_without_group(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """A partition with settings has a compute group."""
    for name in settings.partitions:
        if name not in cluster.partitions:
            free = [queue for queue in cluster.partitions if queue not in settings.partitions]
            near = difflib.get_close_matches(name, free, n=1)
            yield at("partitions", name).breach(
                f"no compute group is in partition `{name}`: its settings would have no effect.",
                rename(near[0]) if near else drop(),
            )


@PCL.warning(49, "ParallelCluster User Guide, Support NVIDIA-Imex", DATE)
def imex_setup(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """UltraServers are set up for NVLink between nodes."""
    queues = [queue for queue, groups in cluster.partitions.items() if any(map(uses_imex, groups.values()))]
    if queues and not settings.imex:
        yield at("imex").breach(
            f"with imex off, jobs in `{queues[0]}` have no IMEX configuration: NCCL does not use NVLink "
            "between nodes, or fails.",
            write(True),
        )
    for queue in queues:
        partition = settings.partitions.get(queue)
        if settings.imex and partition and not partition.exclusive:
            yield at("partitions", queue, "exclusive").breach(
                "the IMEX prolog acts only on jobs that have whole nodes: others have no NVLink between "
                "nodes.",
                write(True),
            )
    for key, value in settings.slurm_settings.items():
        if queues and key.lower() == "prologflags" and "nohold" not in str(value).lower():
            yield at("slurm_settings", key).breach(
                f"{value} without NoHold: the prologs of a job's nodes wait for each other before IMEX is up "
                "on any.",
                (drop() | write("Alloc,NoHold")).noting("PrologFlags are set for UltraServers by default"),
            )


def _denied(settings: SlurmSettings, denied: Mapping[str, str], where: str) -> Breaches:
    instead = {name.lower(): (name, text) for name, text in denied.items()}
    for key in settings:
        if key.lower() in instead:  # slurm.conf does not tell names apart by case
            name, text = instead[key.lower()]
            yield at("slurm_settings", key).breach(
                f"ParallelCluster sets {name} itself for {where} and refuses it here.",
                drop().noting(text.removeprefix("remove it: ")),
            )
