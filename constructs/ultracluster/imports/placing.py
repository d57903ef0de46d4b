"""Where a cluster is: Region, zone, and the network that exists or is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ultracluster.catalog import instance_type, nearest_regions, region, regions
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.plain_text import one_line
from ultracluster.imports.ledger import Ledger
from ultracluster.imports.surroundings import Asked, Subnet
from ultracluster.plan.draft_place import NoZoneError, second_zone, zone_for


def place(
    ledger: Ledger,
    asked: Asked,
    found: str,
    kind: OrchestratorKind,
    types: list[str],
    *,
    subnets: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> dict[str, Any]:
    """`region` and `network` of an environment: the network that the nodes are in, where the account was
    asked, else a zone that is known to have the first of these types.

    Args:
        found: the Region that the file names; empty where it names none.
        types: instance types of the compute groups; accelerated ones decide.
        subnets: subnets of the nodes by id, those of compute groups first.
        groups: security groups of the nodes by id.
    """
    name = asked.region or found or region_of(asked.zone_id)
    if not name:
        ledger.refuse("region", "the file does not say in which Region", "pass --region, e.g. us-east-2")
        return {}
    if region(name) is None:
        near = " or ".join(nearest_regions(name)) or "us-east-2"
        ledger.refuse("region", f"{one_line(name)!r} is no Region that is known", f"--region {near}")
        return {}
    if asked.around is not None and (network := _existing(ledger, asked, subnets, groups)):
        return {"region": name, "network": network}
    zone = asked.zone_id
    if not zone:
        try:
            choice = zone_for(name, _rarest(types), kind)
        except NoZoneError as error:
            ledger.refuse("network.zone_id", "the file does not say in which zone", one_line(str(error)))
            return {"region": name}
        zone = choice.value
        ledger.assumed(
            "network.zone_id", f"{zone}: {choice.reason}",
            "pass --zone-id with the zone of your reservation, block, plan or file system",
        )  # fmt: skip
    return {"region": name, "network": {"zone_id": zone}}


def region_of(zone_id: str) -> str:
    """The Region of a zone's id, which begins with the Region's own prefix; empty where none is known."""
    prefix = zone_id.partition("-az")[0]
    return next((one.name for one in regions().values() if prefix and one.zone_prefix == prefix), "")


def other_zone(settled: Mapping[str, Any]) -> str | None:
    """A second zone for what requires two; None where none is known, or where the network exists."""
    network = settled.get("network", {})
    zone = network.get("zone_id", "")
    choice = second_zone(settled.get("region", ""), zone) if zone and "vpc" not in network else None
    return choice.value if choice else None


def database_place(settled: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """Return where a new database is: a second zone, or two subnets that exist."""
    subnet = settled.get("network", {}).get("subnet", {}).get("id", "")
    pair = asked.around.private_pair(subnet) if asked.around else []
    if pair:
        return {"subnet_ids": pair}
    zone = other_zone(settled)
    return {"second_zone_id": zone} if zone else {}


def _existing(
    ledger: Ledger, asked: Asked, subnets: Sequence[str], groups: Sequence[str]
) -> dict[str, Any] | None:
    """The network of nodes that run, by the ids of its parts."""
    around = asked.around
    assert around is not None
    names = list(dict.fromkeys(subnets))
    known = [around.subnets[name] for name in names if name in around.subnets]
    for name in names:
        if name not in around.subnets:
            why = around.unread.get(name) or around.unread.get("subnets") or "it does not exist any more"
            ledger.left(name, f"the subnet could not be read: {why}", "write network.vpc and network.subnet")
    here = _chosen(known, asked.zone_id)
    if here is None:
        return None
    for other in known:
        if other.id != here.id:
            ledger.left(
                other.id,
                f"nodes are in one subnet, {here.id} of {here.zone_id}, and this one is in {other.zone_id}",
                "--zone-id chooses another; groups of HyperPod may be in network.further_zones",
            )
    network: dict[str, Any] = {
        "zone_id": here.zone_id,
        "vpc": {"id": here.vpc, "cidr": here.vpc_cidr},
        "subnet": {"id": here.id, "cidr": here.cidr},
    }
    several = list(dict.fromkeys(groups))
    if several:
        network["security_group"] = {"id": several[0]}
    for other in several[1:]:
        ledger.left(
            other, f"nodes have one security group, {several[0]}",
            "add the rules that you need of this one to it",
        )  # fmt: skip
    return network


def _chosen(known: Sequence[Subnet], zone: str) -> Subnet | None:
    """The first that is private, in the zone that was asked for."""
    fitting = [one for one in known if not zone or one.zone_id == zone] or list(known)
    return next((one for one in fitting if not one.public), fitting[0] if fitting else None)


def _rarest(types: list[str]) -> str:
    """The type that fewest zones have: the first with accelerators."""
    known = ((kind, instance_type(kind)) for kind in types)
    return next((one for one, found in known if found and found.accelerator), types[0] if types else "")
