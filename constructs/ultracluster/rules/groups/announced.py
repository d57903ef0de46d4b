"""Rules on node groups: types that AWS has announced, and UltraServers as wholes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ultracluster.catalog import instance_type, nearest_instance_types, ultraservers
from ultracluster.config.nodes import DeclaredInstanceType
from ultracluster.config.remedy import DROP, Remedy, ask, beside, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GRP
from ultracluster.rules.sources import BOTOCORE, CAPACITY_BLOCKS, NETWORK_CARDS

DATE = "2026-11-23"
BLOCKS = f"{CAPACITY_BLOCKS}: UltraServers are reserved as wholes"


@GRP.warning(
    50,
    f"{BOTOCORE} ec2: InstanceType; catalog/ultraservers.json",
    DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type>",
)
def type_announced(group: Group, cluster: Cluster) -> Breaches:
    """AWS's API has the name of the instance type."""
    for number, kind in enumerate(group.types):
        declared = cluster.environment.instance_types.get(kind.name) if kind and kind.declared else None
        if kind is None or declared is None or not declared.announced:
            continue
        yield at(*("instance_types", number - 1) if number else ("instance_type",)).breach(
            f"{kind.name} is announced, and AWS's API does not have this name yet: nodes cannot be launched, "
            "and their real figures may differ from those declared. Until then rules and plans go by the "
            "declaration.",
            _until_then(declared),
        )


def _until_then(declared: DeclaredInstanceType) -> Remedy:
    note = "or acknowledge this to plan with it; rename the type when AWS has published its name"
    if model := declared.network_like:
        return write(model).noting(note)
    return ask("action", note.removeprefix("or "))


@GRP.error(51, "catalog/instances.json and catalog/ultraservers.json", DATE)
def declared_names(declared: DeclaredInstanceType) -> Breaches:
    """A declared type names an instance type and UltraServers of the catalogue."""
    model = declared.network_like
    if model and instance_type(model) is None:
        yield at("network_like").breach(
            f"the catalogue has no instance type `{model}`, whose network cards the type should have.",
            write(*nearest_instance_types(model, count=1)),
        )
    for index, name in enumerate(declared.ultraservers):
        if name not in ultraservers():
            near = difflib.get_close_matches(name, ultraservers(), n=1, cutoff=0)
            yield at("ultraservers", index).breach(
                f"the catalogue has no UltraServer `{name}`: how many instances share its links is unknown.",
                write(*near),
            )


@GRP.warning(
    52,
    f"{BLOCKS}; Neuron documentation, Trn2 and Trn3 architecture",
    DATE,
    by_hand="aws ec2 describe-capacity-reservations --capacity-reservation-ids <cr-id> "
    "--query 'CapacityReservations[].TotalInstanceCount'",
)
def whole_ultraservers(group: Group) -> Breaches:
    """Groups of UltraServer types have whole UltraServers."""
    kind = group.type
    if kind is None or not kind.ultraserver or group.role != "compute" or group.in_service:
        return  # HyperPod keeps spare instances of an UltraServer
    least = min(ultraservers()[name].instances for name in kind.ultraserver)
    settings = group.settings
    for key, nodes in (("count", settings.count), ("max_count", settings.max_count or 0)):
        if nodes % least:
            yield at(key).breach(
                f"{nodes} nodes are no whole UltraServers of {_numbers(kind.ultraserver)} {kind.name}: the "
                f"last {nodes % least} have {kind.link} to no others, and the whole block is billed.",
                write(nodes + least - nodes % least).noting("or acknowledge this where the rest is a spare"),
            )


@GRP.error(53, NETWORK_CARDS, DATE)
def declared_cards(declared: DeclaredInstanceType) -> Breaches:
    """A declared type has an EFA on as many network cards as the type that it is like."""
    model = instance_type(declared.network_like) if declared.network_like else None
    if model and declared.efa_interfaces > len(model.efa_cards):
        yield at("efa_interfaces").breach(
            f"{declared.efa_interfaces} EFA interfaces, and only {len(model.efa_cards)} network cards of "
            f"{model.name} take one.",
            write(len(model.efa_cards)) | beside(network_like=DROP),
        )


def _numbers(names: Iterable[str]) -> str:
    return " or ".join(str(ultraservers()[name].instances) for name in names)
