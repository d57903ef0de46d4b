"""Rules on: what a Local Zone does not offer, and the zone of the Region that does."""

from __future__ import annotations

from ultracluster.catalog import Region, border_group
from ultracluster.catalog.zone_kinds import ZONE_WORDS, zone_kind, zone_rows
from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, anywhere, ask
from ultracluster.model import Cluster, Group
from ultracluster.model.endpoints import made_endpoints
from ultracluster.model.parent_zone import ENTRANCES, parent_zone
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV
from ultracluster.rules.sources import PCLUSTER
from ultracluster.rules.zones import in_local_zone, new_zone_of_region, with_zone_of_region

_DATE = "2026-11-27"


@ENV.error(
    32,
    "EC2 API reference, CreateNatGateway (network border group); "
    "aravneelaws/hyperpod-local-zone-quickstart, benchmarks/lz-egress (2026-08-03); "
    "awslabs/awsome-distributed-ai#1227",
    _DATE,
    until_acknowledged=True,
)
def local_zone_routes(cluster: Cluster, home: Region) -> Breaches:
    """NAT gateway and interface endpoints of a Local Zone are in a zone of the Region."""
    network = cluster.environment.network
    zone = network.zone_id
    if not in_local_zone(home, zone) or parent_zone(network) is not None:
        return
    interfaces = [endpoint.service for endpoint in made_endpoints(cluster) if endpoint.kind == "interface"]
    if network.egress == "nat" and network.vpc is None:
        group = border_group(zone)
        address = f" The Elastic IP would be of the border group {group}." if group else ""
        why = f"the NAT gateway would be in {zone}, and some of these zones have none.{address}"
    elif interfaces:
        why = f"the interface endpoints ({', '.join(interfaces)}) would be in {zone}, which may have none."
    else:
        return
    yield at("network", "zone_id").breach(why, with_zone_of_region(cluster, home))


@ENV.error(
    33,
    f"EC2 User Guide, Local Zones; {PCLUSTER}, login_nodes_stack.py (Network Load "
    "Balancer); openshift/openshift-docs#57736",
    _DATE,
    by_hand="aws ec2 describe-instance-type-offerings --location-type availability-zone-id "
    "--filters Name=location,Values=<zone id> --region <region>",
    until_acknowledged=True,
)
def local_zone_entrances(cluster: Cluster, home: Region) -> Breaches:
    """Head, login and system nodes of a Local Zone are in a zone of the Region."""
    for name, group in cluster.groups.items():
        if group.role not in ENTRANCES or not in_local_zone(home, group.zone_id):
            continue
        balancer = cluster.traits.own_stack and group.role == "login"
        yield at("node_groups", name).breach(
            f"{group.settings.instance_type} would be in {group.zone_id}: a "
            f"{ZONE_WORDS[zone_kind(group.zone_id)]} has few types."
            + (
                " The pool's Network Load Balancer would be there, too; most of these zones have none."
                * balancer
            ),
            _moved(cluster, home, group),
        )


@ENV.warning(37, "catalog/zone_kinds.json, with a source for each kind", "2026-11-28")
def nodes_in_kind_of_zone(cluster: Cluster, home: Region) -> Breaches:
    """The orchestrator's guide has nodes in zones of this kind."""
    for row in zone_rows():
        if row.part != "nodes" or row.verdict == "allowed" or cluster.traits.kind not in row.on:
            continue
        for name, group in cluster.groups.items():
            if zone_kind(group.zone_id) in row.kinds and in_local_zone(home, group.zone_id):
                yield at("node_groups", name).breach(
                    f"its nodes would be in {group.zone_id}: {row.why}.",
                    ask("decision", "network.zone_id: a zone of the Region, or a Local Zone"),
                )


def _moved(cluster: Cluster, home: Region, group: Group) -> Remedy:
    path: YamlPath = ("node_groups", group.name, "zone_id")
    zone = parent_zone(cluster.environment.network)
    if zone:
        return anywhere({path: zone})
    new = new_zone_of_region(cluster, home)
    if not new:
        return ask("fact", "zone_id: a zone of the Region, of network.further_zones")
    return anywhere({path: next(iter(new))[-1], **new})
