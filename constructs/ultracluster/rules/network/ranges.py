"""Rules on: the ranges of the VPC and the node subnet, and the addresses that nodes take."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.catalog.address_ranges import (
    DOCKER,
    address_ranges,
    free_block,
    range_of,
    refused_beside,
)
from ultracluster.config.findings import YamlPath
from ultracluster.config.network import Network
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, beside, write
from ultracluster.model import Cluster
from ultracluster.model.addresses import (
    LARGEST_PREFIX,
    SMALLEST_PREFIX,
    AddressBudget,
    address_budget,
    other_addresses,
    secondary_blocks,
    subnets,
    usable_addresses,
    vpc_blocks,
)
from ultracluster.model.parent_zone import exports_homes_to_vpc
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import NET
from ultracluster.rules.zones import whole_network

VPC_GUIDE = "Amazon VPC User Guide, VPC CIDR blocks"
CREATE_SUBNET = "EC2 API reference, CreateSubnet"
PREREQUISITES = "SageMaker Developer Guide, Prerequisites for using SageMaker HyperPod"

FREE_ADDRESSES = "aws ec2 describe-subnets --subnet-ids <subnet> --query 'Subnets[].AvailableIpAddressCount'"

FULL = 0.8


@NET.error(1, VPC_GUIDE, by_hand="aws ec2 describe-vpcs --vpc-ids <vpc>")
def vpc_size(network: Network) -> Breaches:
    """A VPC's network is between /16 and /28."""
    whole = whole_network(network)
    if not LARGEST_PREFIX <= whole.prefixlen <= SMALLEST_PREFIX:
        yield at(*_vpc_path(network)).breach(
            f"{whole} is a /{whole.prefixlen}; EC2 makes VPC networks from /16 (65,536 addresses) "
            "to /28 (16).",
            write(_resized(whole)),
        )


@NET.error(2, CREATE_SUBNET)
def node_subnet_size(network: Network) -> Breaches:
    """The node subnet is between /16 and /28."""
    given = _given_node_network(network)
    if given and not LARGEST_PREFIX <= given.prefixlen <= SMALLEST_PREFIX:
        yield at(*_node_path(network)).breach(
            f"{given} is a /{given.prefixlen}; EC2 makes subnets from /16 (65,531 usable "
            "addresses) to /28 (11).",
            write(_resized(given)),
        )


@NET.error(3, f"{CREATE_SUBNET}; {VPC_GUIDE}")
def node_subnet_within_vpc(network: Network, cluster: Cluster | None) -> Breaches:
    """The node subnet lies within its VPC, or beside it as a block of its own."""
    given, whole = _given_node_network(network), whole_network(network)
    if given is None or given.subnet_of(whole):
        return
    half = None if network.vpc else _half(whole)
    remedy = write(str(half)) if half else ask("fact", f"a network within {whole}")
    if network.vpc:
        why = f"{given} is not part of the VPC's {whole}; EC2 refuses the subnet."
        remedy = remedy.noting("or give as network.vpc.cidr the block of the VPC that holds it")
    elif given.overlaps(whole):
        why = f"{given} holds the VPC's {whole}; blocks of a VPC must not overlap, so EC2 refuses it."
        beside = free_block((whole,), _prefix(given))
        remedy = write(*(str(one) for one in (half, beside) if one))
    elif cluster and cluster.environment.storage.openzfs and exports_homes_to_vpc(network):
        why = f"{given} is not part of {whole}, to which home directories are exported beside a Local Zone."
    else:
        return
    yield Breach(_node_path(network), why, remedy)


@NET.error(32, f"{VPC_GUIDE}: IPv4 CIDR block association restrictions", "2026-11-28")
def secondary_block_accepted(network: Network) -> Breaches:
    """EC2 accepts each secondary block of the VPC beside the first one."""
    before = [whole_network(network)]
    for place, block in secondary_blocks(network).items():
        path = _block_path(place)
        free = free_block(before, _prefix(block))
        remedy = write(str(free)) if free else ask("fact", "a private network that EC2 accepts there")
        clash = next((one for one in before if one.overlaps(block)), None)
        if clash and place:
            why = f"it overlaps {clash}, another block of the VPC"
        elif not clash and (refused := refused_beside(block, before)):
            why = f"no block of {refused} may be added to a VPC of {' and '.join(map(str, before))}"
        else:  # NET003 reports a node subnet that holds the first block
            before.append(block)
            continue
        yield Breach(path, f"EC2 refuses {block} as a further block of the VPC: {why}.", remedy)


@NET.error(4, CREATE_SUBNET)
def small_subnets_fit(network: Network, cluster: Cluster) -> Breaches:
    """The node subnet leaves addresses for the other subnets of the VPC."""
    cut, whole = subnets(cluster), whole_network(network)
    others = {
        "NAT gateway": [cut.public] if cut.public else [],
        "accounting database": cut.database or (),
    }
    for purpose, networks in others.items():
        wrong = [one for one in networks if one.overlaps(cut.nodes) or not one.subnet_of(whole)]
        if not wrong:
            continue
        half = _half(whole)
        halved = half and not any(half.overlaps(small) for small in cut.small)
        yield at(*_node_path(network)).breach(
            f"the nodes' {cut.nodes} leaves no room in {whole} for the subnet of the {purpose} "
            f"({', '.join(map(str, wrong))}: the last addresses of the VPC); EC2 refuses subnets "
            "that overlap.",
            write(str(half)) if halved and network.node_cidr else _roomier_vpc(whole),
        )


@NET.error(5, f"{PREREQUISITES}; {CREATE_SUBNET}", by_hand=FREE_ADDRESSES)
def certain_addresses_fit(network: Network, cluster: Cluster) -> Breaches:
    """The node subnet has every address that AWS is certain to take."""
    budget = address_budget(cluster)
    if budget.certain > budget.usable:
        yield at(*_node_path(network)).breach(
            f"the cluster takes {budget}; at least {budget.certain} of them are certain. Launches "
            f"fail when the subnet is used up, and its CIDR cannot change later: {_another(cluster)}.",
            _roomier(cluster, budget),
        )


@NET.warning(6, f"{PREREQUISITES}: P5; other types by the same rule, estimated", by_hand=FREE_ADDRESSES)
def estimated_addresses_fit(network: Network, cluster: Cluster) -> Breaches:
    """The node subnet has every address that the cluster is likely to take."""
    budget = address_budget(cluster)
    if budget.certain <= budget.usable < budget.total:
        yield at(*_node_path(network)).breach(
            f"the cluster is likely to take {budget}; {budget.certain} are certain, the rest is "
            "estimated. Launches fail when the subnet is used up, and its CIDR cannot change "
            "later.",
            _roomier(cluster, budget),
        )


@NET.warning(7, f"SageMaker API reference, UpdateCluster: it takes no VpcConfig; {VPC_GUIDE}")
def room_to_grow(network: Network, cluster: Cluster) -> Breaches:
    """The node subnet is less than 80 % full on the first day."""
    budget = address_budget(cluster)
    if FULL <= budget.share <= 1:
        yield at(*_node_path(network)).breach(
            f"the cluster takes {budget}: {budget.share:.0%}. The subnet's CIDR cannot change "
            f"later: {_another(cluster)}.",
            _roomier(cluster, budget),
        )


@NET.warning(8, f"{VPC_GUIDE}; IANA IPv4 Special-Purpose Address Registry")
def private_range(network: Network) -> Breaches:
    """A VPC that is made has private addresses."""
    for path, block in () if network.vpc else _blocks(network):
        kept = range_of(block)
        if kept and kept.hosts:
            continue
        if kept:
            why = f"is {kept.use} ({kept.source}): no host of a network has such an address."
        else:
            hosts = [f"{one.network} ({one.source})" for one in address_ranges() if one.hosts]
            why = (
                f"is not within {', '.join(hosts)}: nodes cannot reach the public hosts that own its "
                "addresses."
            )
        yield Breach(path, f"{block} {why}", _private_block(network, path, block))


@NET.warning(
    9,
    f"{VPC_GUIDE}: avoid 172.17.0.0/16; Docker Engine, default address pools",
    by_hand="ip route show dev docker0",
)
def docker_bridge(network: Network) -> Breaches:
    """The VPC does not overlap Docker's default bridge, 172.17.0.0/16."""
    for path, block in _blocks(network):
        if block.overlaps(DOCKER):
            yield at(*path).breach(
                f"{block} overlaps 172.17.0.0/16, which Docker gives to the bridge docker0 on every "
                "node: traffic to those addresses of the VPC never leaves the node.",
                ask("decision", "another VPC, or docker's `bip` set elsewhere in a custom image")
                if network.vpc
                else _private_block(network, path, block),
            )


def _another(cluster: Cluster) -> str:
    """Consequence of more nodes than fit."""
    if cluster.traits.hyperpod:
        return "another subnet means another cluster"
    return "another subnet means that every node is replaced"


def _vpc_path(network: Network) -> YamlPath:
    return ("vpc", "cidr") if network.vpc else ("cidr",)


def _block_path(place: str) -> YamlPath:
    return ("further_zones", place, "cidr") if place else ("node_cidr",)


def _blocks(network: Network) -> Iterator[tuple[YamlPath, IPv4Network]]:
    """The blocks of the VPC with the settings that name them."""
    yield _vpc_path(network), whole_network(network)
    for place, block in secondary_blocks(network).items():
        yield _block_path(place), block


def _given_node_network(network: Network) -> IPv4Network | None:
    cidr = network.subnet.cidr if network.subnet else network.node_cidr
    return IPv4Network(cidr) if cidr else None


def _node_path(network: Network) -> YamlPath:
    """The key that decides where the node subnet is."""
    if network.subnet:
        return ("subnet", "cidr")
    return ("node_cidr",) if network.node_cidr else _vpc_path(network)


def _prefix(network: IPv4Network) -> int:
    """The prefix nearest to this network's that EC2 takes."""
    return min(SMALLEST_PREFIX, max(LARGEST_PREFIX, network.prefixlen))


def _resized(network: IPv4Network) -> str:
    return str(IPv4Network((network.network_address, _prefix(network)), strict=False))


def _half(whole: IPv4Network) -> IPv4Network | None:
    """The first half of a VPC; None where a half would be too small for a subnet."""
    if whole.prefixlen + 1 > SMALLEST_PREFIX:
        return None
    return IPv4Network((whole.network_address, max(LARGEST_PREFIX, whole.prefixlen + 1)))


def _roomier_vpc(whole: IPv4Network) -> Remedy:
    prefix = max(LARGEST_PREFIX, min(whole.prefixlen - 1, 25))
    return anywhere({("network", "cidr"): str(IPv4Network((whole.network_address, prefix), strict=False))})


def _roomier(cluster: Cluster, budget: AddressBudget) -> Remedy:
    """The smallest network that the cluster fills to less than 80 %, and where to write it."""
    prefixes = range(SMALLEST_PREFIX, LARGEST_PREFIX - 1, -1)
    fits = next((p for p in prefixes if budget.total < FULL * usable_addresses(p)), None)
    if fits is None and budget.network.prefixlen > LARGEST_PREFIX and budget.share > 1:
        fits = LARGEST_PREFIX if budget.total <= usable_addresses(LARGEST_PREFIX) else None
    if fits is None:
        return ask("decision", _fewer(cluster))
    network = cluster.environment.network
    whole, cut = whole_network(network), subnets(cluster)
    if network.subnet:
        return ask("fact", f"an existing subnet of /{fits} or larger")
    nodes = IPv4Network((cut.nodes.network_address, fits), strict=False)
    if nodes.subnet_of(whole) and not any(nodes.overlaps(small) for small in cut.small):
        return anywhere({("network", "node_cidr"): str(nodes)})
    if network.vpc is None and fits > LARGEST_PREFIX and cut.nodes.subnet_of(whole):
        larger = IPv4Network((whole.network_address, fits - 1), strict=False)
        changes: dict[YamlPath, str] = {("network", "cidr"): str(larger)}
        return anywhere(changes | ({("network", "node_cidr"): str(nodes)} if network.node_cidr else {}))
    others = [block for place, block in secondary_blocks(network).items() if place]
    if network.vpc is None and (free := free_block((whole, *others), fits)):
        return anywhere({("network", "node_cidr"): str(free)})
    return ask(
        "fact", f"a VPC with a whole /{fits} for the nodes, e.g. as a second CIDR block of an existing one"
    )


def _fewer(cluster: Cluster) -> str:
    """Compute the nodes of the largest group that fit the largest subnet."""
    most = usable_addresses(LARGEST_PREFIX)
    words = f"fewer nodes: a /16, the largest subnet, has {most} usable addresses"
    rows = [row for row in address_budget(cluster).rows if row.certain and row.count > 1]
    row = max(rows, key=lambda one: one.total, default=None)
    if row is None or row.total <= other_addresses(cluster):
        return words
    fit = (most - address_budget(cluster).total + row.total) // row.each
    return f"{words}, enough for {fit} nodes of {row.what}" if 0 < fit < row.count else words


def _private_block(network: Network, path: YamlPath, block: IPv4Network) -> Remedy:
    """A private range of the same size in place of a block."""
    if path != _vpc_path(network):
        free = free_block([one for one in vpc_blocks(network) if one != block], _prefix(block))
        return write(str(free)) if free else ask("fact", "a private network")
    ten = write(f"10.0.0.0/{_prefix(block)}")
    return ten & beside(node_cidr=DROP) if network.node_cidr else ten
