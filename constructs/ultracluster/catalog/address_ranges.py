"""Ranges of IPv4 that are no part of the internet; `address_ranges.json` has the standard of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network

from ultracluster.catalog.files import catalog_file, record

DOCKER = IPv4Network("172.17.0.0/16")
"""Network of Docker's usual bridge, on every node that has Docker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRange:
    """A range of which no public host has an address."""

    network: IPv4Network
    use: str
    """In words: `loopback`."""
    hosts: bool
    """Hosts of a private network can have its addresses."""
    source: str


@cache
def address_ranges() -> tuple[AddressRange, ...]:
    """All ranges, those for hosts first."""
    return tuple(
        record(AddressRange, row, network=IPv4Network(row["cidr"]))
        for row in catalog_file("address_ranges")["rows"]
    )


def refused_beside(block: IPv4Network, blocks: Sequence[IPv4Network]) -> IPv4Network | None:
    """The range in which EC2 refuses a further block of a VPC; None where it takes the block.

    Args:
        block: the further one.
        blocks: those that the VPC has, its first one first.
    """
    table = catalog_file("address_ranges")["associations"]
    ranges = [IPv4Network(one) for one in table["never"]]
    rows = [(IPv4Network(row["beside"]), row) for row in table["rows"]]
    usual = [(beside, row) for beside, row in rows if not row.get("any") and blocks[0].subnet_of(beside)]
    rows = [(beside, row) for beside, row in rows if row.get("any") and any(map(beside.overlaps, blocks))]
    rows.append(max(usual, key=lambda one: one[0].prefixlen))
    ranges += [IPv4Network(one) for _, row in rows for one in row["refused"]]
    return next((one for one in ranges if one.overlaps(block)), None)


def free_block(blocks: Sequence[IPv4Network], prefix: int) -> IPv4Network | None:
    """A further block that EC2 takes beside those of a VPC: of its private range, else of 100.64.0.0/10.

    Args:
        blocks: those that the VPC has, its first one first.
        prefix: of the further one, 16 to 28.
    """
    first = blocks[0]
    own = [one.network for one in address_ranges() if one.hosts and first.subnet_of(one.network)]
    for whole in dict.fromkeys((*own, IPv4Network("100.64.0.0/10"))):
        parts = whole.subnets(new_prefix=16 if whole.prefixlen < 16 else max(prefix, whole.prefixlen))
        # upwards of the first block, then from the beginning
        for part in sorted(parts, key=lambda one: (one < first, one)):
            taken = any(part.overlaps(one) for one in (*blocks, DOCKER))
            if not taken and refused_beside(part, blocks) is None:
                return IPv4Network((part.network_address, max(prefix, part.prefixlen)))
    return None


def range_of(network: IPv4Network) -> AddressRange | None:
    """The range that holds a whole network; None where some of it is on the internet, or between ranges."""
    return next((one for one in address_ranges() if network.subnet_of(one.network)), None)


def public_addresses(network: IPv4Network) -> int:
    """Number of addresses of a network that belong to the internet."""
    return network.num_addresses - sum(part.num_addresses for part in _private_parts(network))


def _private_parts(network: IPv4Network) -> Iterator[IPv4Network]:
    for one in address_ranges():
        if network.subnet_of(one.network):
            yield network
        elif one.network.subnet_of(network):
            yield one.network
