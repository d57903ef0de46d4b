"""Levels of the network that schedulers place jobs by, as labels of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from ultracluster.catalog import InstanceType
from ultracluster.catalog.instances import ultraserver
from ultracluster.kubernetes.claims import CLIQUE
from ultracluster.model import Cluster
from ultracluster.model.devices import has_compute_domains
from ultracluster.model.team_shares import Pool

HOST = "kubernetes.io/hostname"
LAYERS: Mapping[str, str] = {
    f"layer-{number}": f"topology.k8s.aws/network-node-layer-{number}" for number in (1, 2, 3)
}
"""Of EC2's network, widest first; the cloud provider labels nodes with them (EKS User Guide, network topology
labels), HyperPod its own. A fourth, which few types have, is left out: others would have no place."""
ULTRASERVER = "topology.k8s.aws/ultraserver-id"
"""Nodes that NVLink joins, on HyperPod (SageMaker Developer Guide, UltraServers). Elsewhere NVIDIA's GPU
feature discovery says so, where it runs: `nvidia.com/gpu.clique`."""

NEURON_ULTRASERVER = "neuron.amazonaws.com/ultraserver-server-id-4"
"""Nodes of one Trn2 UltraServer, which NeuronLink joins; set by Neuron's device plugin."""

_NETWORKS = ("network", "ultraserver", "neuron-ultraserver")
Kind = Literal["network", "ultraserver", "neuron-ultraserver", "clique", "host", "none"]


def topology_of(cluster: Cluster, pool: Pool) -> Kind:
    """Which levels the nodes of a group have.

    Types without EFA may have no place in the network: their topology is only the node. Nodes that are
    started for waiting pods have none: a job that waits for room on existing nodes would never start.
    """
    if pool.started_for_pods:
        return "none"
    instance_type = pool.instance_type
    if (
        not instance_type.efa_interfaces
        and not instance_type.efa_cards
        and not instance_type.recommended_efa_interfaces
    ):
        return "host"
    if instance_type.ultraserver and cluster.traits.hyperpod:
        return "ultraserver"
    if has_compute_domains(cluster, instance_type):
        return "clique"
    return "neuron-ultraserver" if _labelled(instance_type) else "network"


def nearest_level(kind: Kind) -> str | None:
    """What nodes of a job share if they can: the narrowest layer, or NVLink; None where there is nothing."""
    if kind == "clique":
        return "ultraserver"
    return "layer-3" if kind in _NETWORKS else None


def kinds_of(cluster: Cluster, pools: Iterable[Pool]) -> list[Kind]:
    """Each kind of the groups once."""
    every: dict[Kind, None] = dict.fromkeys(topology_of(cluster, pool) for pool in pools)
    return [kind for kind in every if kind != "none"]


def levels(kind: Kind) -> tuple[str, ...]:
    """Labels, widest first; the last one is the node."""
    layers = tuple(LAYERS.values()) if kind in _NETWORKS else ()
    return (*layers, *([_ULTRASERVERS[kind]] if kind in _ULTRASERVERS else []), HOST)


def label_of(kind: Kind, level: str) -> str:
    """The label of `layer-1` ... `layer-3` or `ultraserver`.

    Raises:
        ValueError: nodes of this kind do not have it; the message says which ones they have.
    """
    layers = dict(LAYERS) if kind in _NETWORKS else {}
    if kind in _ULTRASERVERS:
        layers["ultraserver"] = _ULTRASERVERS[kind]
    if level not in layers:
        have = f"one of {', '.join(layers)}" if layers else "the nodes of this group have none"
        raise ValueError(f"there is no level `{level}`: {have}")
    return layers[level]


def _labelled(instance_type: InstanceType) -> bool:
    """Whether a device plugin labels the nodes of its UltraServers."""
    servers = map(ultraserver, instance_type.ultraserver)
    return any(server.node_label == NEURON_ULTRASERVER for server in servers if server)


_ULTRASERVERS: Mapping[Kind, str] = {
    "ultraserver": ULTRASERVER,
    "neuron-ultraserver": NEURON_ULTRASERVER,
    # without layers: AWS does not say how those of the network lie to it, and a job within one UltraServer
    # must be able to have all of it
    "clique": CLIQUE,
}
