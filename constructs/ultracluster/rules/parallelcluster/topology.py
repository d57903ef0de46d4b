"""Rules on: ParallelCluster. What Slurm knows of the network."""

from __future__ import annotations

from ultracluster.catalog.parallelcluster import parallelcluster, version
from ultracluster.catalog.slurm import words
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.remedy import beside, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.model.slurm_topology import slurm_topology
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

_NO_FILE = ("topology/default", "topology/flat", "topology/none", "topology/3d_torus")
"""Plugins that read no topology.conf."""
_WORDS = {
    "switchasnoderank": ("tree",),
    "routetree": ("tree",),
    "dragonfly": ("tree",),
    "blockasnoderank": ("block",),
}
"""Kinds of topology that a word of TopologyParam is about (slurm.conf manual, 25.11)."""


@PCL.warning(
    50,
    "ParallelCluster User Guide: block topology of UltraServers; "
    "aws-samples/sample-physical-ai-scaffolding-kit#14 (the jobs are refused)",
    "2026-11-22",
)
def topology_file(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """A topology plugin has its topology.conf."""
    if any(map(uses_imex, cluster.with_role("compute").values())):
        return
    for key, value in settings.slurm_settings.items():
        if key.lower() == "topologyplugin" and str(value).lower() not in _NO_FILE:
            yield at("slurm_settings", key).breach(
                f"{value} reads topology.conf, and ParallelCluster writes one for UltraServers only: without "
                "it Slurm refuses jobs (`Requested topology configuration is not available`).",
                drop().noting(
                    "the head node then writes topology.yaml itself, from where EC2 has put the nodes; or "
                    "acknowledge this if a script of yours writes the file on the head node"
                ),
            )


@PCL.warning(51, "Slurm 26.05, seen to end: `Invalid partition topology`; topology.yaml(5)", "2026-11-22")
def partition_topology(settings: ParallelCluster) -> Breaches:
    """A partition's topology is there when Slurm starts."""
    for name, partition in settings.partitions.items():
        for key, value in partition.slurm_settings.items():
            if key.lower() == "topology" and str(value).lower() != "default":
                yield at("partitions", name, "slurm_settings", key).breach(
                    f"slurmctld does not start while no topology is called {value}, and the only one that is "
                    "written here is called default.",
                    drop().noting("or acknowledge this if topology.yaml of your image has it"),
                )


@PCL.error(
    91,
    f"{PCLUSTER}, templates/cluster_stack.py (p6egb200_block_sizes); aws/aws-parallelcluster-cookbook, "
    "block_topology.rb: blocks are written for P6e-GB200 alone; topology.yaml(5)",
    "2026-11-23",
)
def topology_supported(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """The topology that is asked for can be had."""
    wanted = settings.topology
    if wanted == "automatic":
        return
    groups = cluster.with_role("compute").values()
    ultraservers = any(map(uses_imex, groups))
    found = next((slurm_topology(cluster, group) for group in groups), None)
    if found is None or found.kind == wanted or found.writer == "you":
        return
    if ultraservers:
        why = "ParallelCluster writes the blocks of UltraServers in any case."
    elif wanted == "block":
        why = "ParallelCluster writes blocks for UltraServers only, whose GPUs share NVLink."
    else:
        why = f"{found.why}."
    remedy = write("automatic").noting(f"which is {found.kind} here")
    if wanted == "tree" and version(settings.version) < version(parallelcluster().topology_yaml_since):
        remedy = beside(version=parallelcluster().judged_versions[-1])
    yield at("topology").breach(f"{wanted} cannot be had here: {why}", remedy)


@PCL.error(
    92,
    "slurm.conf manual, TopologyPlugin: the value set there replaces the one of this package",
    "2026-11-23",
)
def topology_set_once(settings: ParallelCluster) -> Breaches:
    """topology and TopologyPlugin do not contradict each other."""
    for key, value in settings.slurm_settings.items():
        if key.lower() == "topologyplugin" and settings.topology != "automatic":
            yield at("topology").breach(
                f"`{settings.topology}`, and slurm_settings has {key}: {value}, with which the head node "
                "writes no topology.",
                drop(),
            )


@PCL.warning(93, "slurm.conf manual 25.11, TopologyParam", "2026-11-23")
def topology_param_applies(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """TopologyParam is about the topology that there is."""
    kinds = {slurm_topology(cluster, group).kind for group in cluster.with_role("compute").values()}
    for key, value in settings.slurm_settings.items():
        if key.lower() != "topologyparam":
            continue
        given = words(str(value))
        idle = [one for one in given if not kinds & set(_WORDS.get(one.partition("=")[0].lower(), kinds))]
        if idle and kinds:
            kept = ",".join(one for one in given if one not in idle)
            yield at("slurm_settings", key).breach(
                f"{', '.join(idle)} has no effect: the topology here is {' and '.join(sorted(kinds))}.",
                write(kept) if kept else drop(),
            )


def uses_imex(group: Group) -> bool:
    """Return whether NVLink joins the nodes of a group."""
    return group.type is not None and group.type.imex is True
