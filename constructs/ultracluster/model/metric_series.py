"""How many series of metrics nodes have, on paper: metrics of the catalogue, times what a node has of it.

A workspace is paid for samples, which are series times scrapes, and refuses series above its limit. Numbers
are the most that a node at work has, not a mean: a budget that a healthy node exceeds would cost its metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ultracluster.catalog.metrics import Metric, metrics
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.inference import serves
from ultracluster.model.mig import gpu_layouts

HEAD_ROOM = 1.5
"""Budget for each series on paper: disks and interfaces that nobody foresaw, several jobs on a node."""
_STEP = 500
UNKNOWN_BUDGET = 10_000
"""Of a node whose type nobody knows: more than any type has that we know."""
SECONDS_OF_MONTH = 730 * 3600
"""As AWS bills hours of a month."""

_FIXED: Mapping[str, float] = {
    "collector": 8,
    "node-collector": 16,
    "file-system": 6,
    "cpu-mode": 8,
    "check": 16,
    "xid": 8,
    "refusal": 4,
    "lost-reason": 3,
    "memory-location": 2,
    "neuron-error": 6,
    "neuron-status": 6,
    "percentile": 3,
    "ecc-kind": 4,
    "slurm-kind": 2,
    "reason": 8,
    "target": 6,
    "kube-condition": 30,
    "kube-phase": 5,
    "kube-queue-status": 2,
    "kube-flavor": 4,
    "cluster": 1,
}
"""Things whose number hangs on no type: health checks, states of a processor, ... At least what is usual."""
_BUCKETS = 18
"""Bounds of a histogram of `ultracluster_metrics.py`, with `+Inf`, `_sum` and `_count`."""
_CORES_OF_NEURON = {"Inferentia": 4, "Inferentia2": 2, "Trainium": 2, "Trainium2": 8, "Trainium3": 8}
"""NeuronCores of a device, physical ones (AWS Neuron documentation); 8 for one that is unknown."""
_PODS_OF_NODE = 40
"""Pods of a node whose state is kept: system pods, and one or a few of jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeries:
    """Series of one node of a group.

    Attributes:
        group: its name.
        nodes: nodes that the group may have at once.
        by_exporter: series of one node by exporter of the catalogue; those without any are left out.
    """

    group: str
    nodes: int
    by_exporter: Mapping[str, int]

    @property
    def of_node(self) -> int:
        return sum(self.by_exporter.values())

    @property
    def of_group(self) -> int:
        return self.of_node * self.nodes


def series_of_node(cluster: Cluster, group: Group, *, asks_slurm: bool = False) -> NodeSeries:
    """The most series that a node of a group sends.

    Args:
        cluster: what the environment comes to.
        group: one of its groups.
        asks_slurm: whether it is the node that asks slurmctld, which has a few series for every other one.
    """
    counts = _things(cluster, group, asks_slurm=asks_slurm)
    exporters = _exporters(cluster, group, counts)
    return NodeSeries(group=group.name, nodes=group.most_nodes, by_exporter=_by_exporter(counts, exporters))


def node_series(cluster: Cluster, group: Group) -> int:
    """Series of one node of a group with a job on it, of all scrape jobs."""
    return series_of_node(cluster, group).of_node


def cluster_series(cluster: Cluster) -> int:
    """Series that there are once: about slurmctld, or about Kubernetes with its one agent."""
    if not cluster.traits.slurm:
        return series_of_kubernetes(cluster)
    group = next(iter(cluster.groups.values()))
    asked = series_of_node(cluster, group, asks_slurm=True).of_node
    return asked - series_of_node(cluster, group).of_node


def series_of_kubernetes(cluster: Cluster) -> int:
    """Series of kube-state-metrics, Kueue and the one agent; 0 under Slurm."""
    if cluster.traits.slurm:
        return 0
    nodes = sum(group.most_nodes for group in cluster.groups.values())
    counts = {**_FIXED, "kube-node": nodes, "kube-pod": nodes * _PODS_OF_NODE, "kube-queue": 16}
    return sum(_by_exporter(counts, ("kube-state-metrics", "kueue", "prometheus-agent")).values())


def all_series(cluster: Cluster) -> int:
    """Of the cluster with all the nodes that it may have; without those that recording rules add."""
    return cluster_series(cluster) + sum(
        series_of_node(cluster, group).of_group for group in cluster.groups.values()
    )


def default_budget(cluster: Cluster, group: Group, *, asks_slurm: bool = False) -> int:
    """Series that a node may have where the environment does not say: those on paper, with head room.

    A type that nobody knows has an unknown number of GPUs, not none.
    """
    if None in group.types:
        return UNKNOWN_BUDGET
    on_paper = series_of_node(cluster, group, asks_slurm=asks_slurm).of_node
    return -(-int(on_paper * HEAD_ROOM) // _STEP) * _STEP


def samples_per_month(series: int, scrape_seconds: int) -> int:
    """Samples that so many series make in a month of 730 hours, one with each scrape."""
    return series * SECONDS_OF_MONTH // scrape_seconds


def _by_exporter(counts: Mapping[str, float], exporters: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for metric in metrics().values():
        if metric.exporter in exporters and not metric.until and (number := _series(metric, counts)):
            found[metric.exporter] = found.get(metric.exporter, 0) + number
    return found


def _series(metric: Metric, counts: Mapping[str, float]) -> int:
    return round(prod(counts.get(thing, 0) for thing in metric.per))


def _exporters(cluster: Cluster, group: Group, counts: Mapping[str, float]) -> tuple[str, ...]:
    """Those that have something to say on such a node. On Kubernetes one agent serves all nodes."""
    names = ["node_exporter", "prometheus", *(f"collectors/{name}" for name in ("lustre", "health", "node"))]
    of_devices = {"gpu": "dcgm-exporter", "efa-port": "collectors/efa", "neuron-device": "collectors/neuron"}
    names += [exporter for thing, exporter in of_devices.items() if counts[thing]]
    if group.role == "compute":
        names.append("collectors/training")
        names += ["vllm"] if counts["gpu"] and serves(cluster) else []  # SGLang has as many series
    if cluster.traits.slurm:
        names += ["prometheus-agent", "collectors/slurm"]
        names += [f"slurm/{name}" for name in ("jobs", "nodes", "partitions", "scheduler")]
    return tuple(names)


def _things(cluster: Cluster, group: Group, *, asks_slurm: bool) -> dict[str, float]:
    """How many of each thing a node has; of the further types of a group the largest."""
    types = group.known_types
    accelerators = [one.accelerator for one in types if one.accelerator]
    gpus = max((one.count for one in accelerators if one.manufacturer == "NVIDIA"), default=0)
    if group.settings.mig_key:
        # dcgm-exporter has each instance beside the GPU
        gpus += max(sum(sum(layout.values()) for layout in gpu_layouts(group.settings, one)) for one in types)
    neuron = [one for one in accelerators if one.manufacturer == "AWS"]
    devices = max((one.count for one in neuron), default=0)
    cores = max((one.count * _CORES_OF_NEURON.get(one.name, 8) for one in neuron), default=0)
    efa = max((one.efa_interfaces or 0 for one in types), default=0)
    ranks = max(gpus, cores, 1) if group.role == "compute" else 0
    counts: dict[str, float] = {
        **_FIXED,
        "bucket": _BUCKETS,
        "gpu": gpus,
        "efa-port": efa,
        "neuron-core": cores,
        "neuron-device": devices,
        "disk": 2 + max((one.local_nvme_disks or 0 for one in types), default=0),
        # an EFA with an address is a network interface, too; containers add a few
        "interface": 4 + group.interface_count,
        "lustre": len(cluster.lustres_of(group.name)),
        "rank": ranks,
        "job": 4 if ranks else 0,
        "model": min(ranks, 8),
        "lease": 0,
        "slurm-node": 0,
        "partition": 0,
    }
    if asks_slurm:
        groups = cluster.groups.values()
        counts |= {
            "slurm-node": sum(one.most_nodes for one in groups),
            "partition": len({one.partition for one in groups if one.partition}) or 1,
            "lease": len(cluster.groups),
        }
    else:
        counts["cluster"] = counts["slurm-kind"] = 0
    return counts
