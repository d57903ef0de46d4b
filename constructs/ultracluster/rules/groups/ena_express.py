"""Rules on ENA Express."""

from __future__ import annotations

from ultracluster.catalog import is_local_zone
from ultracluster.catalog.ena_express import has_ena_express, sizes_with_ena_express
from ultracluster.config.remedy import beside, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import EFA

_DATE = "2026-11-23"
_GUIDE = "EC2 User Guide, Improve network performance between EC2 instances with ENA Express"


@EFA.error(
    8,
    f"{_GUIDE}, supported instance types; EC2 API reference, NetworkInfo (EnaSrdSupported)",
    _DATE,
    by_hand="aws ec2 describe-instance-types --instance-types <type> --query "
    "'InstanceTypes[].NetworkInfo.EnaSrdSupported'",
)
def ena_express_type(group: Group) -> Breaches:
    """ENA Express is on only where the type has it."""
    name = group.settings.instance_type
    if group.settings.ena_express is None or has_ena_express(name) is not False:
        return
    others = sizes_with_ena_express(name.partition(".")[0])
    yield at("ena_express").breach(
        f"{name} has no ENA Express, and EC2 refuses to turn it on.",
        drop() | beside(instance_type=others[0]) if others else drop(),
    )


@EFA.warning(9, f"{_GUIDE}: both instances must have it", _DATE)
def ena_express_peer(cluster: Cluster) -> Breaches:
    """ENA Express has another node to talk to."""
    asked = {name: group for name, group in cluster.groups.items() if group.settings.ena_express}
    if sum(one.most_nodes for one in asked.values()) != 1:
        return
    for name in asked:
        yield at("node_groups", name, "ena_express").breach(
            "one node has it: traffic to others, file servers included, is what it was.",
            drop().noting("or turn it on for the nodes that it talks to"),
        )


@EFA.warning(10, f"{_GUIDE}: its traffic cannot be sent in a Local Zone", _DATE)
def ena_express_in_local_zone(group: Group, cluster: Cluster) -> Breaches:
    """ENA Express is on where it carries traffic."""
    zone = cluster.environment.network.zone_id
    if group.settings.ena_express and is_local_zone(zone):
        yield at("ena_express").breach(
            f"{zone} is a Local Zone, where ENA Express sends nothing: TCP is what it was.", drop()
        )


@EFA.warning(
    11,
    f"{_GUIDE}, MTU size: TCP clamps its segments, UDP needs a lower MTU",
    _DATE,
    by_hand="ip link show  (on a node; check-ena-express-settings.sh of amzn/amzn-ec2-ena-utilities)",
)
def ena_express_mtu(group: Group) -> Breaches:
    """Nodes that send UDP by ENA Express have an MTU that leaves room for it."""
    if group.settings.ena_express == "tcp-and-udp":
        yield at("ena_express").breach(
            "UDP packets of the full MTU have no room for SRD's headers and go without it; nothing here "
            "lowers the MTU of nodes.",
            write("tcp").noting("or set it to 8,900 with a node step of your own, and acknowledge this"),
        )


@EFA.warning(12, f"{_GUIDE}, Scenario: Differences in configuration", _DATE)
def ena_express_udp(cluster: Cluster) -> Breaches:
    """All nodes send UDP the same way."""
    asked = {
        name: group.settings.ena_express
        for name, group in cluster.groups.items()
        if group.settings.ena_express
    }
    if len(set(asked.values())) > 1:
        name = next(name for name, how in asked.items() if how == "tcp-and-udp")
        yield at("node_groups", name, "ena_express").breach(
            "some groups send UDP by it and others TCP only: between the two, UDP goes without it.",
            write("tcp"),
        )
