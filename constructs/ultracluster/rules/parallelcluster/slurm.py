"""Rules on: ParallelCluster. Slurm settings that are passed through, and those that it keeps to itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from ultracluster.catalog.parallelcluster import parallelcluster
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.config.slurm import SlurmSettings
from ultracluster.model.partitions import partitions
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.parallelcluster.groups import DATE, PACKAGE, asked
from ultracluster.rules.sets import PCL

DENIED = f"{PACKAGE}, CustomSlurmSettingsValidator"
_NO_FILE = ("topology/default", "topology/flat", "topology/none", "topology/3d_torus")
"""Plugins that read no topology.conf."""


@PCL.rule(
    40, "error", "Slurm settings of the cluster are not ParallelCluster's own", source=DENIED, date=DATE
)
def cluster_settings(environment: Environment) -> Iterator[Breach]:
    denied = parallelcluster().slurm_settings["cluster"]
    settings = asked(environment).slurm_settings
    yield from _denied(("orchestrator", "slurm_settings"), settings, denied, "the cluster")


@PCL.rule(
    41,
    "error",
    "Slurm settings do not contradict the accounting database",
    source=DENIED,
    date=DATE,
)
def accounting_settings(environment: Environment) -> Iterator[Breach]:
    if environment.storage.accounting_database:
        denied = parallelcluster().slurm_settings["accounting"]
        settings = asked(environment).slurm_settings
        where = "a cluster with an accounting database"
        yield from _denied(("orchestrator", "slurm_settings"), settings, denied, where)


@PCL.rule(
    42, "error", "Slurm settings of a partition are not ParallelCluster's own", source=DENIED, date=DATE
)
def partition_settings(environment: Environment) -> Iterator[Breach]:
    denied = parallelcluster().slurm_settings["partition"]
    for name, partition in asked(environment).partitions.items():
        path: Path = ("orchestrator", "partitions", name, "slurm_settings")
        yield from _denied(path, partition.slurm_settings, denied, "a partition")


@PCL.rule(43, "error", "Slurm settings of a group are not ParallelCluster's own", source=DENIED, date=DATE)
def group_settings(environment: Environment) -> Iterator[Breach]:
    denied = parallelcluster().slurm_settings["group"]
    for name, group in environment.groups("compute").items():
        path: Path = ("node_groups", name, "slurm_settings")
        yield from _denied(path, group.slurm_settings, denied, "a compute group")


@PCL.rule(
    44,
    "error",
    "Slurm settings of nodes are of compute groups",
    source=f"{PACKAGE}, schema (HeadNode and LoginNodes have no CustomSlurmSettings)",
    date=DATE,
)
def settings_of_others(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        if group.role in ("controller", "login") and group.slurm_settings:
            yield Breach(
                ("node_groups", name, "slurm_settings"),
                f"a {group.role} node has no line in slurm.conf.",
                drop().noting("orchestrator.slurm_settings are for the cluster"),
            )


@PCL.rule(
    45,
    "error",
    "Nodes of one's own are not called as ParallelCluster's",
    source=f"{PACKAGE}, CustomSlurmNodeNamesValidator",
    date=DATE,
)
def node_names(environment: Environment) -> Iterator[Breach]:
    for key, value in asked(environment).slurm_settings.items():
        marks = [mark for mark in parallelcluster().node_name_marks if mark in str(value)]
        if key.lower() == "nodename" and marks:
            yield Breach(
                ("orchestrator", "slurm_settings", key),
                f"{value} has {marks[0]} in it, by which ParallelCluster knows the nodes that it may end.",
                ask("decision", "another name"),
            )


@PCL.rule(
    46,
    "error",
    "A partition with settings has a compute group",
    source=f"{PACKAGE}, schema (SlurmQueues ComputeResources)",
    date=DATE,
)
def partition_without_group(environment: Environment) -> Iterator[Breach]:
    queues = list(partitions(environment))
    for name in asked(environment).partitions:
        if name not in queues:
            free = [one for one in queues if one not in asked(environment).partitions]
            near = difflib.get_close_matches(name, free, n=1)
            yield Breach(
                ("orchestrator", "partitions", name),
                f"no compute group is in partition `{name}`: its settings would say nothing.",
                rename(near[0]) if near else drop(),
            )


@PCL.rule(
    47,
    "warning",
    "GPU health checks run where they end",
    source="aws/aws-parallelcluster#6777",
    date=DATE,
)
def hanging_health_checks(environment: Environment) -> Iterator[Breach]:
    for queue, groups in partitions(environment).items():
        partition = asked(environment).partitions.get(queue)
        if not partition or not partition.gpu_health_checks:
            continue
        for group in groups.values():
            if group.instance_type.partition(".")[0] in parallelcluster().hanging_health_checks:
                yield Breach(
                    ("orchestrator", "partitions", queue, "gpu_health_checks"),
                    f"DCGM's check was reported to hang before jobs on {group.instance_type}: the node "
                    "neither starts the job nor is drained.",
                    write(False).noting("and run `ultracluster acceptance` on new nodes"),
                )
                break


@PCL.rule(
    48,
    "warning",
    "GPU health checks are for NVIDIA GPUs",
    source="ParallelCluster User Guide, HealthChecks: nodes without NVIDIA GPUs run none",
    date=DATE,
)
def health_checks_without_gpu(environment: Environment) -> Iterator[Breach]:
    for queue, groups in partitions(environment).items():
        partition = asked(environment).partitions.get(queue)
        kinds = [instance_type_of(environment, group) for group in groups.values()]
        nvidia = [
            kind is None or (kind.accelerator is not None and kind.accelerator.manufacturer == "NVIDIA")
            for kind in kinds
        ]
        if partition and partition.gpu_health_checks and not any(nvidia):
            yield Breach(
                ("orchestrator", "partitions", queue, "gpu_health_checks"),
                "no group of the partition has NVIDIA GPUs, and DCGM tests nothing else.",
                write(False),
            )


@PCL.rule(
    49,
    "warning",
    "UltraServers run NVLink between nodes",
    source="ParallelCluster User Guide, Support NVIDIA-Imex",
    date=DATE,
)
def imex(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    queues = [
        queue
        for queue, groups in partitions(environment).items()
        if any(_imex(environment, group) for group in groups.values())
    ]
    if queues and not orchestrator.imex:
        yield Breach(
            ("orchestrator", "imex"),
            f"nobody writes the IMEX configuration of jobs in `{queues[0]}`: NCCL leaves NVLink between "
            "nodes unused, or fails.",
            write(True),
        )
    for queue in queues:
        partition = orchestrator.partitions.get(queue)
        if orchestrator.imex and partition and not partition.exclusive:
            yield Breach(
                ("orchestrator", "partitions", queue, "exclusive"),
                "the IMEX prolog acts on jobs that have whole nodes: others have no NVLink between nodes.",
                write(True),
            )
    for key, value in orchestrator.slurm_settings.items():
        if queues and key.lower() == "prologflags" and "nohold" not in str(value).lower():
            yield Breach(
                ("orchestrator", "slurm_settings", key),
                f"{value} without NoHold: the prologs of a job's nodes wait for each other before IMEX is up "
                "on any.",
                (drop() | write("Alloc,NoHold")).noting("without it, it is set for UltraServers"),
            )


@PCL.rule(
    50,
    "warning",
    "A topology plugin comes with its file",
    source="ParallelCluster User Guide: block topology of UltraServers; "
    "aws-samples/sample-physical-ai-scaffolding-kit#14 (the jobs are refused)",
    date="2026-11-22",
)
def topology_file(environment: Environment) -> Iterator[Breach]:
    if any(_imex(environment, group) for group in environment.groups("compute").values()):
        return
    for key, value in asked(environment).slurm_settings.items():
        if key.lower() == "topologyplugin" and str(value).lower() not in _NO_FILE:
            yield Breach(
                ("orchestrator", "slurm_settings", key),
                f"{value} reads topology.conf, and ParallelCluster writes one for UltraServers only: without "
                "it Slurm refuses jobs (`Requested topology configuration is not available`).",
                drop().noting("or acknowledge this where a script of yours writes the file on the head node"),
            )


def _imex(environment: Environment, group: NodeGroup) -> bool:
    known = instance_type_of(environment, group)
    return known is not None and known.imex is True


def _denied(path: Path, settings: SlurmSettings, denied: Mapping[str, str], where: str) -> Iterator[Breach]:
    instead = {name.lower(): (name, text) for name, text in denied.items()}
    for key in settings:
        if key.lower() in instead:  # slurm.conf does not tell names apart by case
            name, text = instead[key.lower()]
            yield Breach(
                (*path, key),
                f"ParallelCluster sets {name} itself for {where} and refuses it here.",
                drop().noting(text.removeprefix("remove it: ")),
            )
