"""Rules on: FSx for Lustre over EFA: what the file system and its clients need."""

from __future__ import annotations

import math
from typing import get_args

from ultracluster.catalog import InstanceType
from ultracluster.catalog.fsx import alternatives, limits, lustre
from ultracluster.config.lustre import LustreFacts, LustreSettings, lustre_of
from ultracluster.config.remedy import ask, beside, drop, either, write
from ultracluster.config.storage import EfaInterfaces, IntelligentTieringLustre, Persistent2SsdLustre
from ultracluster.model import Cluster, Group
from ultracluster.rules.deployed import is_deployed
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.lustre_changes import without_efa
from ultracluster.rules.sets import FSX
from ultracluster.rules.storage.offers import offer_at

_GUIDE = "FSx for Lustre User Guide: Working with EFA-enabled file systems"


@FSX.error(10, _GUIDE)
def efa_metadata(settings: Persistent2SsdLustre) -> Breaches:
    """Lustre with EFA has a metadata configuration."""
    if settings.efa and settings.metadata_iops is None:
        yield at("metadata_iops").breach(
            "EFA is on and metadata_iops is null: FSx refuses EFA on a file system without a "
            "metadata configuration.",
            write("automatic"),
        )


@FSX.error(11, _GUIDE)
def efa_capacity(settings: Persistent2SsdLustre) -> Breaches:
    """With EFA, the capacity is one that the throughput tier allows."""
    if not settings.efa:
        return
    tier = settings.throughput_mbps_per_tib
    sizes = lustre(settings.deployment).capacity(tier, efa=True)
    if sizes is None or settings.capacity_gib in sizes:
        return
    tiers = lustre(settings.deployment).efa_capacities
    fitting = [other for other, own in tiers.items() if settings.capacity_gib in own]
    yield at("capacity_gib").breach(
        f"{settings.capacity_gib} GiB at {tier} MB/s per TiB: with EFA each file server holds more, "
        f"and FSx takes {sizes} GiB. EFA and the tier cannot change after creation.",
        either(
            write(*sizes.neighbours(settings.capacity_gib)),
            *(beside(throughput_mbps_per_tib=int(other)) for other in fitting),
        ),
    )


@FSX.warning(
    12,
    f"{_GUIDE}; EC2 User Guide: EFA and Nitro versions",
    by_hand="lnetctl net show  (on a node; lists `efa`)",
)
def efa_without_client(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """A Lustre file system with EFA has a client that uses it."""
    if facts.new is None or not facts.efa or _unknown_type(cluster, facts) or _clients(cluster, facts):
        return
    yield at("efa").breach(
        "EFA is on, and no node group has instances that mount Lustre over EFA: that takes an "
        "EFA type from Nitro v4, of a family that FSx does not leave out. All nodes would go over TCP.",
        without_efa(facts).noting("or a node group of such a type"),
    )


@FSX.warning(
    13,
    f"{_GUIDE}; EC2 User Guide: EFA and Nitro versions",
    by_hand="lnetctl net show  (on a node; lists `efa`)",
)
def efa_type_on_tcp(group: Group, cluster: Cluster) -> Breaches:
    """Compute nodes with EFA mount a Lustre file system with EFA over it."""
    instance_type = group.type
    served = [one for one in cluster.lustres_of(group.name).values() if one.efa and _clients(cluster, one)]
    if not served or group.role != "compute" or not instance_type:
        return  # without any client another rule says it for all
    if instance_type.efa_interfaces and instance_type.lustre_efa_client is False:
        why = (
            f"Lustre over EFA needs Nitro v4, and this type has v{instance_type.nitro}"
            if instance_type.nitro and instance_type.nitro < 4
            else f"FSx leaves the {instance_type.family} family out"
        )
        yield at("instance_type").breach(
            f"{instance_type.name} has EFA and mounts {' and '.join(one.mount_path for one in served)} over "
            f"TCP: {why}. Its nodes read at 100 Gbit/s at most.",
            ask("decision", "acknowledge it, or another instance type"),
        )


@FSX.warning(14, _GUIDE)
def efa_recommended(settings: Persistent2SsdLustre | IntelligentTieringLustre, cluster: Cluster) -> Breaches:
    """A Lustre file system that is large enough for EFA has it.

    Only where EFA requires nothing more: small file systems of development are left as they are.
    """
    clients = _clients(cluster, lustre_of(settings))
    if settings.efa or not clients or not _may_have_efa(settings, cluster):
        return
    yield at("efa").breach(
        f"EFA is off, the file system is large enough for it, and {', '.join(clients)} could use it: over "
        "TCP a client reads at 100 Gbit/s at most, over EFA at up to 700. It can be turned on only at "
        "creation; later it means a new file system and moving the data.",
        ask("decision", "a further file system with EFA (storage.further_lustre), to which the data is moved")
        if is_deployed()
        else write(True),
    )


@FSX.error(15, _GUIDE)
def gds_needs_efa(facts: LustreFacts, cluster: Cluster | None) -> Breaches:
    """GPUDirect Storage is on only with EFA."""
    if facts.gds and not facts.efa:
        yield at("gds").breach(
            "gds is on and efa is off: GPUDirect Storage reads into accelerator memory only over EFA.",
            beside(efa=True) | write(False) if _may_have_efa(facts.settings, cluster) else write(False),
        )


@FSX.warning(16, _GUIDE, by_hand="gdscheck -p  (on a node)")
def gds_clients(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """GPUDirect Storage has a client that AWS supports."""
    if not facts.gds or not facts.efa:
        return
    types = [known for _, known in _clients(cluster, facts).values()]
    if (
        not types
        or _unknown_type(cluster, facts)
        or any(known.lustre_gds_client is not False for known in types)
    ):
        return
    yield at("gds").breach(
        "the guide names other types for GPUDirect Storage, and the clients here are "
        f"{alternatives(sorted({known.name for known in types}))}: reads would go through host memory.",
        write(False),
    )


@FSX.warning(17, _GUIDE, by_hand="lnetctl net show | grep -c efa  (on a node; its share of the connections)")
def efa_connections(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """The EFA connections of all clients fit one file system."""
    most, clients = limits().efa_connections, _clients(cluster, facts)
    needed, nodes = _connections(cluster, facts), _client_nodes(cluster, facts)
    if not facts.efa or needed <= most or nodes > most:
        return
    each = max(cluster.lustre_efa_interfaces(name) or 0 for name in clients)
    counted = " + ".join(
        f"{group.settings.count} x {cluster.lustre_efa_interfaces(name)} of {name}"
        for name, (group, _) in clients.items()
    )
    fewer = beside(efa_interfaces_per_client=fitting_interfaces(nodes))
    yield at("efa").breach(
        f"{needed} EFA connections: {counted}. FSx takes {most} per file system, and "
        "each interface that a client configures is one; the last nodes would not connect.",
        either(fewer, without_efa(facts)).noting(
            f"or at most {most // each} such nodes; or {_several(cluster, needed, most)}"
        ),
    )


@FSX.error(18, _GUIDE)
def efa_clients(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """There are no more EFA clients than a file system has connections."""
    most, nodes = limits().efa_connections, _client_nodes(cluster, facts)
    if facts.efa and nodes > most:
        yield at("efa").breach(
            f"{nodes} clients with EFA: FSx takes {most} EFA connections per file system, so "
            f"{nodes - most} of them would have none, even with one interface each.",
            without_efa(facts).noting(
                f"or at most {most} such nodes in this environment; or "
                f"{_several(cluster, _connections(cluster, facts), most)}"
            ),
        )


@FSX.error(83, "FSx for Lustre User Guide: Configuring EFA clients", "2026-11-28")
def efa_interfaces(facts: LustreFacts, cluster: Cluster) -> Breaches:
    """efa_interfaces_per_client is a number that a client of the file system has."""
    asked = facts.efa_interfaces_per_client
    if asked is None:
        return
    path = ("efa_interfaces_per_client",)
    if not facts.efa:
        yield Breach(path, "EFA is off: clients use TCP and bind no EFA interface.", drop())
        return
    clients = {known.name: known.lustre_efa_interfaces or 0 for _, known in _clients(cluster, facts).values()}
    most = max(clients.values(), default=0)
    if clients and asked > most and not _unknown_type(cluster, facts):
        has = alternatives([f"{name} ({number})" for name, number in sorted(clients.items())])
        yield at(*path).breach(
            f"{asked} EFA interfaces, and FSx's set-up binds fewer on the clients: {has}.",
            write(max(interface for interface in INTERFACES if interface <= most)),
        )


INTERFACES: tuple[int, ...] = get_args(EfaInterfaces)


def fitting_interfaces(nodes: int) -> int:
    """The most interfaces for each of these clients that one file system has connections for."""
    most = limits().efa_connections
    return next((interface for interface in INTERFACES if nodes * interface <= most), INTERFACES[-1])


def _several(cluster: Cluster, needed: int, most: int) -> str:
    """How several file systems take the connections that one does not."""
    number = math.ceil(needed / most)
    if cluster.traits.shares_all_mounts:
        return f"{number} clusters, as every node of this one mounts every file system"
    return f"{number} file systems, each for `groups` of its own (storage.further_lustre)"


def _clients(cluster: Cluster, facts: LustreFacts) -> dict[str, tuple[Group, InstanceType]]:
    """The node groups that mount a file system over EFA if it has EFA, with their types."""
    return {
        name: (group, group.type)
        for name, group in cluster.groups.items()
        if group.type and group.type.lustre_efa_client and facts.mounted_by(name)
    }


def _client_nodes(cluster: Cluster, facts: LustreFacts) -> int:
    return sum(group.settings.count for group, _ in _clients(cluster, facts).values())


def _connections(cluster: Cluster, facts: LustreFacts) -> int:
    """EFA connections of all nodes that mount the file system over EFA, if it has EFA."""
    clients = _clients(cluster, facts).values()
    return sum(
        group.settings.count * (cluster.lustre_efa_interfaces(group.name) or 0) for group, _ in clients
    )


def _unknown_type(cluster: Cluster, facts: LustreFacts) -> bool:
    """Whether there may be a client that is not known to be one."""
    types = [group.type for name, group in cluster.groups.items() if facts.mounted_by(name)]
    return any(known is None or known.lustre_efa_client is None for known in types)


def _may_have_efa(settings: LustreSettings, cluster: Cluster | None) -> bool:
    """Whether the file system may be made with EFA as it is, and all clients would connect."""
    if cluster is not None:
        offer = offer_at(cluster.home, cluster.environment.network) if cluster.home else None
        if (offer and offer.limited) or _connections(cluster, lustre_of(settings)) > limits().efa_connections:
            return False
    if isinstance(settings, Persistent2SsdLustre):
        sizes = lustre(settings.deployment).capacity(settings.throughput_mbps_per_tib, efa=True)
        return sizes is not None and settings.capacity_gib in sizes and settings.metadata_iops is not None
    return isinstance(settings, IntelligentTieringLustre)
