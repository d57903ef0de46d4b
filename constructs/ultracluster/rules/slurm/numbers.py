"""Rules on Slurm's numbers: what a node is said to have, against what slurmd registers of its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ultracluster.catalog.pcs import pcs_since
from ultracluster.config.orchestrator import HyperPodSlurm, ParallelCluster, Pcs
from ultracluster.config.remedy import Remedy, ask, drop, write
from ultracluster.config.slurm import Partition, named
from ultracluster.model import Cluster, Group
from ultracluster.model.slurm_gres import asked
from ultracluster.model.slurm_node import (
    PARALLELCLUSTER_SHARE,
    Above,
    Registered,
    above,
    numbers,
    registered,
    reset_cpus,
    whole_product,
)
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import PCS, SLU, SLURM

DATE = "2026-11-28"
_NODES = (
    "SchedMD/slurm, src/slurmctld/node_mgr.c (validate_node_specs), src/common/read_config.c "
    "(_parse_nodename) and src/interfaces/gres.c, slurm-26-05-3-1"
)
Slurm = HyperPodSlurm | ParallelCluster | Pcs
_WASTE = 0.8
"""Share of the type's memory below which RealMemory leaves much to no job; services write 0.95."""


@SLU.error(48, _NODES, DATE, kinds=SLURM)
def node_resources(group: Group, settings: Slurm) -> Breaches:
    """slurm.conf states no more of a node than it has."""
    node = registered(group, settings)
    if node is None or group.role != "compute" or isinstance(settings, HyperPodSlurm):
        return  # HyperPod writes the lines of nodes itself, and takes none
    found = list(above(group, node))
    for one in found:
        # PCS086 is about the sockets of PCS
        if not (isinstance(settings, Pcs) and str(one.path[-1]).lower() == "sockets"):
            yield Breach(one.path, _words(node, one), _most(one))
    if isinstance(settings, Pcs):
        yield from _sockets_of_pcs(group, node, settings)
    elif not found:
        yield from _product(group, node)


def _words(node: Registered, one: Above) -> str:
    what = f"{node.type} has {one.most}" if one.most > 0 else f"{node.type} has none"
    return f"{one.what} is {one.value}, and {what}: {one.then} (`{one.says}`)."


def _most(one: Above) -> Remedy:
    """The number of the type where it is the whole value, the files of its GPUs, else nothing."""
    match one.path:
        case ("slurm_settings", name) if str(name).lower() not in ("gres", "cpuspeclist") and one.most > 0:
            return write(one.most) | drop()
        case ("gres", _, "file") if one.most > 0:
            return write(f"/dev/nvidia[0-{one.most - 1}]" if one.most > 1 else "/dev/nvidia0")
        case _:
            return drop()


def _product(group: Group, node: Registered) -> Breaches:
    """Sockets, cores and threads together: ParallelCluster writes CPUs beside them."""
    given = group.settings.slurm_settings
    names = ("Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")
    key = next((named(given, name)[0] for name in names if named(given, name)[1]), "")
    whole, cpus = whole_product(group), node.cpus
    if not key or not cpus:
        return
    if whole is not None and whole > cpus:
        yield at("slurm_settings", key).breach(
            f"sockets, cores and threads make {whole} CPUs, and {node.type} has {cpus}: the node becomes "
            "INVALID_REG and is drained (`Low socket*core*thread count`).",
            drop(),
        )
        return
    left = reset_cpus(group, node, cpus)
    if left is not None and left < cpus:
        yield at("slurm_settings", key).breach(
            f"the sockets, cores and threads do not make up the {cpus} CPUs that ParallelCluster writes for "
            f"{node.type}: slurmctld resets the node to {left}, and jobs get no more (`CPUs={cpus} match no "
            "Sockets, Sockets*CoresPerSocket or Sockets*CoresPerSocket*ThreadsPerCore`).",
            drop(),
        )


def _sockets_of_pcs(group: Group, node: Registered, settings: Pcs) -> Breaches:
    """With GPUs that slurmd detects, whose cores must lie within one socket."""
    key, sockets = _sockets_of_detected_gpus(group, settings)
    if sockets and node.numa_nodes and sockets > node.numa_nodes:
        yield at("slurm_settings", key).breach(
            f"{key} is {sockets}, and {node.type} has {node.numa_nodes} NUMA domains: the cores of a GPU "
            "that slurmd detects do not fit into one socket: the node becomes INVALID_REG and is drained.",
            write(node.numa_nodes) | drop(),
        )


def _sockets_of_detected_gpus(group: Group, settings: Pcs) -> tuple[str, int]:
    """Return the setting and its number; 0 where it is not one of NUMA domains, or slurmd detects no GPU."""
    given = group.settings.slurm_settings
    detects = any(record.detects for record in group.settings.gres)
    by_itself = settings.slurm_version >= pcs_since("detects_gpus") and not settings.gpu_types
    by_cache = "l3cache_as_socket" in named(given, "Parameters")[1].lower()
    if by_cache or not (detects or (by_itself and not group.settings.gres)):
        return "", 0
    return named(given, "sockets")[0], numbers(given).get("sockets", 0)


@SLU.warning(51, _NODES, DATE, kinds=PCS.kinds)
def sockets_known(group: Group, settings: Pcs) -> Breaches:
    """Sockets of a node with detected GPUs are those of a type whose NUMA domains are known."""
    node = registered(group, settings)
    if node is None or group.role != "compute" or not node.gpus or node.numa_nodes:
        return
    key, sockets = _sockets_of_detected_gpus(group, settings)
    if sockets > 1:
        yield at("slurm_settings", key).breach(
            f"{key} is {sockets}, and the number of NUMA domains of {node.type} is not known here: with "
            "fewer domains the cores of a GPU do not fit into one socket, and the node becomes INVALID_REG.",
            ask("fact", "the number of NUMA nodes that `lscpu` shows on one node; acknowledge it then"),
        )


@SLU.warning(
    49,
    f"{_NODES}; aws/aws-parallelcluster-cookbook, slurm_attributes.rb (0.95 of the memory)",
    DATE,
    kinds=SLURM,
)
def resources_shared_completely(group: Group, settings: Slurm) -> Breaches:
    """Slurm shares out all that a node has, and no more."""
    node = registered(group, settings)
    if node is None or group.role != "compute" or isinstance(settings, HyperPodSlurm):
        return
    given = group.settings.slurm_settings
    line = numbers(given)
    key, _ = named(given, "RealMemory")
    memory, has = line.get("realmemory"), node.memory_mib
    if memory and has:
        share = int(has * PARALLELCLUSTER_SHARE)
        if has < memory <= has * 100 // node.memory_percent:
            yield at("slurm_settings", key).breach(
                f"{memory} MiB are more than the {has} of {node.type}: jobs get memory that is not there, "
                "and the kernel ends them.",
                write(share) | drop(),
            )
        elif memory < has * _WASTE:
            yield at("slurm_settings", key).breach(
                f"{memory} of the {has} MiB of {node.type} are shared out: no job gets the rest.",
                write(share) | drop(),
            )
    key, entries = asked(group)
    for entry in entries:
        if entry.name == "gpu" and not entry.type.count("g.") and node.gpus and entry.count < node.gpus:
            yield at("slurm_settings", key).breach(
                f"Gres counts {entry.count} of the {node.gpus} GPUs of {node.type}: no job gets the others.",
                write(f"{':'.join(filter(None, ('gpu', entry.type)))}:{node.gpus}"),
            )


@SLU.warning(
    50,
    "SchedMD/slurm, src/slurmctld/job_mgr.c and src/common/read_config.c, slurm-26-05-3-1: a request "
    "above every node of the partition is refused",
    DATE,
    kinds=SLURM,
)
def defaults_fit(part: Slurm | Partition, cluster: Cluster) -> Breaches:
    """Defaults of memory and CPUs fit the nodes."""
    settings = cluster.settings
    if not isinstance(settings, Slurm):
        return
    nodes = {name: registered(group, settings) for name, group in _groups(part, cluster).items()}
    for name, (unit, times, has) in _DEFAULTS.items():
        key, number = named(part.slurm_settings, name)
        judged = [(node, times(node), has(node)) for node in nodes.values() if node]
        if not number.isdigit() or len(judged) < len(nodes) or not all(of and most for _, of, most in judged):
            continue  # a group that cannot be judged may take it
        fits = max((most // of for _, of, most in judged if of and most), default=None)
        if fits is not None and int(number) > fits:
            types = ", ".join(dict.fromkeys(node.type for node, _, _ in judged))
            yield at("slurm_settings", key).breach(
                f"with {key}={number} a job that uses a whole node ({types}) and names no {unit} is refused: "
                f"{fits} is the most that fits.",
                write(fits),
            )


def _groups(part: Slurm | Partition, cluster: Cluster) -> Mapping[str, Group]:
    """The compute groups whose nodes a default is for."""
    if isinstance(part, Partition):
        settings = cluster.settings
        named_so = settings.partitions if isinstance(settings, ParallelCluster | Pcs) else {}
        for name, one in named_so.items():
            if one is part:
                return cluster.partitions.get(name, {})
    return cluster.with_role("compute")


_DEFAULTS: Mapping[
    str, tuple[str, Callable[[Registered], int | None], Callable[[Registered], int | None]]
] = {
    "DefMemPerNode": ("memory", lambda node: 1, lambda node: node.memory_mib),
    "DefMemPerCPU": ("memory", lambda node: node.cpus, lambda node: node.memory_mib),
    "DefMemPerGPU": ("memory", lambda node: node.gpus, lambda node: node.memory_mib),
    "DefCpuPerGPU": ("CPUs", lambda node: node.gpus, lambda node: node.cpus),
}
"""Unit, how often a whole node is given it, and what the node has of it."""
