"""Figures that turn node groups and a file system into sizes and times; sources are in `sizing.json`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ultracluster.catalog.files import catalog_file, record
from ultracluster.catalog.instance_facts import InstanceType, UltraServer
from ultracluster.catalog.instances import ultraservers

_document = partial(catalog_file, "sizing")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorDomain:
    """Accelerators that reach each other without the network."""

    size: int
    """Accelerators in one domain; 1 where each stands alone."""
    link: str
    """ "NVLink" or "NeuronLink"; empty where there is none (PCIe)."""
    ultraserver: str = ""
    """Name of the UltraServer that the domain is; empty where it is one instance."""
    topology: str = ""
    """How they are joined, where not each with all others is at the same distance: `4 x 4 torus`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """Bytes per parameter of mixed-precision training with Adam."""

    memory_bytes: int
    """In accelerator memory, over all of them; without activations."""
    checkpoint_bytes: int
    """In a checkpoint from which training goes on."""
    source: str


def accelerator_domain(instance_type: InstanceType, nodes: int) -> AcceleratorDomain | None:
    """The accelerator domain of so many instances of a type.

    Of UltraServers of several sizes it is the largest that divides the number of nodes.

    Returns:
        None for a type without accelerators, and where it is unknown: a type of whose links nothing is known,
        or a number of nodes that makes no whole UltraServers.
    """
    if instance_type.accelerator is None or instance_type.link is None:
        return None
    link = "" if instance_type.link == "PCIe" else instance_type.link
    if instance_type.ultraserver:
        server = _ultraserver(instance_type, nodes)
        return server and AcceleratorDomain(
            size=server.accelerators, link=link, ultraserver=server.name, topology=server.topology
        )
    size = instance_type.accelerator.count if link else 1
    if size == 1:
        return AcceleratorDomain(size=1, link="")
    return AcceleratorDomain(size=size, link=link, topology=instance_type.neuron_topology)


def model_state() -> ModelState:
    """How much a parameter takes in training."""
    return record(ModelState, _document()["model_state"])


def lustre_write_mbps_per_tib(deployment: str, tier: int | None) -> int | None:
    """MB/s per TiB that a Lustre deployment's disks take; None where storage is elastic.

    Args:
        deployment: as an environment file names it.
        tier: its throughput in MB/s per TiB; None where the deployment has none to choose.
    """
    return _document()["lustre_write"]["mbps_per_tib"].get(deployment, tier)


def lustre_read_mbps_per_tib(deployment: str, tier: int | None) -> int | None:
    """The same for what they give."""
    return _document()["lustre_write"]["read_mbps_per_tib"].get(deployment, tier)


def lustre_client_gbps(*, efa: bool, gds: bool) -> int:
    """Gbit/s that one client moves at the most."""
    return _document()["lustre_client"]["gds_gbps" if gds and efa else "efa_gbps" if efa else "tcp_gbps"]


def _ultraserver(instance_type: InstanceType, nodes: int) -> UltraServer | None:
    sizes = sorted(
        (ultraservers()[name] for name in instance_type.ultraserver), key=lambda one: -one.instances
    )
    return next((size for size in sizes if nodes and nodes % size.instances == 0), None)
