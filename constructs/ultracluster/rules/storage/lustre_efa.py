"""Rules on: FSx for Lustre over EFA: what the file system and its clients need."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import InstanceType, region
from ultracluster.catalog.fsx import alternatives, limits, lustre, lustre_offer
from ultracluster.config import Environment
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import ask, beside, either, write
from ultracluster.config.storage import IntelligentTieringLustre, Persistent2SsdLustre
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import in_local_zone
from ultracluster.rules.sets import FSX
from ultracluster.rules.storage.lustre import LUSTRE, efa_off

_GUIDE = "FSx for Lustre User Guide: Working with EFA-enabled file systems"


@FSX.rule(10, "error", "EFA comes with a metadata configuration", source=_GUIDE)
def efa_metadata(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if isinstance(made, Persistent2SsdLustre) and made.efa and made.metadata_iops is None:
        yield Breach(
            (*LUSTRE, "metadata_iops"),
            "EFA is on and metadata_iops is null: FSx refuses EFA on a file system without a "
            "metadata configuration.",
            write("automatic"),
        )


@FSX.rule(11, "error", "With EFA the capacity is one that the throughput tier allows", source=_GUIDE)
def efa_capacity(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, Persistent2SsdLustre) or not made.efa:
        return
    tier = made.throughput_mbps_per_tib
    sizes = lustre(made.deployment).capacity(tier, efa=True)
    if sizes is None or made.capacity_gib in sizes:
        return
    tiers = lustre(made.deployment).efa_capacities
    fitting = [other for other, own in tiers.items() if made.capacity_gib in own]
    yield Breach(
        (*LUSTRE, "capacity_gib"),
        f"{made.capacity_gib} GiB at {tier} MB/s per TiB: with EFA each file server holds more, "
        f"and FSx takes {sizes} GiB. EFA and the tier cannot change after creation.",
        either(
            write(*sizes.neighbours(made.capacity_gib)),
            *(beside(throughput_mbps_per_tib=int(one)) for one in fitting),
        ),
    )


@FSX.rule(
    12,
    "warning",
    "A Lustre file system with EFA has a client that uses it",
    source=f"{_GUIDE}; EC2 User Guide: EFA and Nitro versions",
    by_hand="lnetctl net show  (on a node; lists `efa`)",
)
def efa_without_client(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not made or made.deployment == "existing" or not _has_efa(environment):
        return
    if _unknown_type(environment) or any(_clients(environment)):
        return
    yield Breach(
        (*LUSTRE, "efa"),
        "EFA is on, and no node group has instances that mount Lustre over EFA: that takes an "
        "EFA type from Nitro v4, of a family that FSx does not leave out. All nodes would go over TCP.",
        efa_off(environment).noting("or a node group of such a type"),
    )


@FSX.rule(
    13,
    "warning",
    "Compute nodes with EFA mount a Lustre file system with EFA over it",
    source=f"{_GUIDE}; EC2 User Guide: EFA and Nitro versions",
    by_hand="lnetctl net show  (on a node; lists `efa`)",
)
def efa_type_on_tcp(environment: Environment) -> Iterator[Breach]:
    if not _has_efa(environment) or not any(_clients(environment)):
        return  # FSX012 says it for all
    for name, group in environment.groups("compute").items():
        known = instance_type_of(environment, group)
        if known and known.efa_interfaces and known.lustre_efa_client is False:
            why = (
                f"Lustre over EFA needs Nitro v4, and this type has v{known.nitro}"
                if known.nitro and known.nitro < 4
                else f"FSx leaves the {known.family} family out"
            )
            yield Breach(
                ("node_groups", name, "instance_type"),
                f"{known.name} has EFA and mounts {_mount_path(environment)} over TCP: {why}. Its "
                "nodes read at 100 Gbit/s at most.",
                ask("decision", "acknowledge it, or another instance type"),
            )


@FSX.rule(
    14,
    "warning",
    "A Lustre file system that is large enough for EFA has it",
    source=_GUIDE,
)
def efa_left_off(environment: Environment) -> Iterator[Breach]:
    """Only where EFA asks for nothing more: small file systems of development are left alone."""
    made = environment.storage.lustre
    if not isinstance(made, Persistent2SsdLustre | IntelligentTieringLustre):
        return
    if made.efa or not any(_clients(environment)) or _no_efa_here(environment):
        return
    if _connections(environment) > limits().efa_connections:
        return  # turned on, the last nodes would not connect
    if isinstance(made, Persistent2SsdLustre):
        tier = made.throughput_mbps_per_tib
        sizes = lustre(made.deployment).capacity(tier, efa=True)
        if sizes is None or made.capacity_gib not in sizes or made.metadata_iops is None:
            return
    names = ", ".join(name for name, _, _ in _clients(environment))
    yield Breach(
        (*LUSTRE, "efa"),
        f"EFA is off, the file system is large enough for it, and {names} could use it: over TCP "
        "a client reads at 100 Gbit/s at most, over EFA at up to 700. It can be turned on only at "
        "creation; later it means a new file system and moving the data.",
        write(True),
    )


def _no_efa_here(environment: Environment) -> bool:
    """Whether FSx has no file system with EFA in the Region or Local Zone."""
    home, zone_id = region(environment.region), environment.network.zone_id
    local = home is not None and in_local_zone(home, zone_id)
    offer = lustre_offer(environment.region, zone_id, local=local)
    return offer is not None and bool(offer.limited)


@FSX.rule(15, "error", "GPUDirect Storage goes over EFA", source=_GUIDE)
def gds_needs_efa(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if made and getattr(made, "gds", False) and not _has_efa(environment):
        yield Breach(
            (*LUSTRE, "gds"),
            "gds is on and efa is off: GPUDirect Storage reads into accelerator memory over EFA alone.",
            beside(efa=True) | write(False) if _may_have_efa(environment) else write(False),
        )


@FSX.rule(
    16,
    "warning",
    "GPUDirect Storage has a client that AWS supports",
    source=_GUIDE,
    by_hand="gdscheck -p  (on a node)",
)
def gds_clients(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not made or not getattr(made, "gds", False) or not _has_efa(environment):
        return
    clients = list(_clients(environment))
    unknown = _unknown_type(environment)
    if not clients or unknown or any(known.lustre_gds_client is not False for _, _, known in clients):
        return
    types = alternatives(sorted({known.name for _, _, known in clients}))
    yield Breach(
        (*LUSTRE, "gds"),
        f"the guide names other types for GPUDirect Storage, and the clients here are {types}: reads would "
        "go through host memory.",
        write(False),
    )


@FSX.rule(
    17,
    "warning",
    "The EFA connections of all clients fit one file system",
    source=_GUIDE,
    by_hand="lnetctl net show | grep -c efa  (on a node; its share of the connections)",
)
def efa_connections(environment: Environment) -> Iterator[Breach]:
    most = limits().efa_connections
    clients = list(_clients(environment)) if _has_efa(environment) else []
    nodes = sum(group.count for _, group, _ in clients)
    wanted = _connections(environment) if clients else 0
    if wanted <= most or nodes > most:
        return
    fewer = f"at most {most // max(known.lustre_efa_interfaces or 0 for _, _, known in clients)} such nodes"
    yield Breach(
        (*LUSTRE, "efa"),
        f"{wanted} EFA connections: {_counted(clients)}. FSx takes {most} per file system, and "
        "each interface that a client configures is one; the last nodes would not connect.",
        efa_off(environment).noting(
            f"or {fewer}; or leave {most // nodes} interfaces on each with `lnetctl net del`, and "
            "acknowledge that"
        ),
    )


@FSX.rule(
    18,
    "error",
    "There are no more EFA clients than a file system has connections",
    source=_GUIDE,
)
def efa_clients(environment: Environment) -> Iterator[Breach]:
    most = limits().efa_connections
    clients = list(_clients(environment)) if _has_efa(environment) else []
    nodes = sum(group.count for _, group, _ in clients)
    if nodes > most:
        yield Breach(
            (*LUSTRE, "efa"),
            f"{nodes} clients with EFA: FSx takes {most} EFA connections per file system, so that "
            f"{nodes - most} of them would have none, even with one interface each.",
            efa_off(environment).noting(f"or at most {most} such nodes in this environment"),
        )


def _connections(environment: Environment) -> int:
    """EFA connections of all nodes that mount Lustre over EFA, if it has EFA."""
    return sum(group.count * (known.lustre_efa_interfaces or 0) for _, group, known in _clients(environment))


def _has_efa(environment: Environment) -> bool:
    return bool(getattr(environment.storage.lustre, "efa", False))


def _clients(environment: Environment) -> Iterator[tuple[str, NodeGroup, InstanceType]]:
    """The node groups that mount Lustre over EFA if it has EFA."""
    for name, group in environment.node_groups.items():
        known = instance_type_of(environment, group)
        if known and known.lustre_efa_client:
            yield name, group, known


def _unknown_type(environment: Environment) -> bool:
    """Whether there may be a client that is not known to be one."""
    known = [instance_type_of(environment, group) for group in environment.node_groups.values()]
    return any(one is None or one.lustre_efa_client is None for one in known)


def _mount_path(environment: Environment) -> str:
    made = environment.storage.lustre
    return made.mount_path if made else ""


def _counted(clients: list[tuple[str, NodeGroup, InstanceType]]) -> str:
    return " + ".join(
        f"{group.count} x {known.lustre_efa_interfaces} of {name}" for name, group, known in clients
    )


def _may_have_efa(environment: Environment) -> bool:
    """Whether the file system may be made with EFA as it is, and all clients would connect."""
    made = environment.storage.lustre
    if _no_efa_here(environment) or _connections(environment) > limits().efa_connections:
        return False
    if isinstance(made, Persistent2SsdLustre):
        sizes = lustre(made.deployment).capacity(made.throughput_mbps_per_tib, efa=True)
        return sizes is not None and made.capacity_gib in sizes and made.metadata_iops is not None
    return isinstance(made, IntelligentTieringLustre)
