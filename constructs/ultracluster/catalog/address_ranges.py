"""Ranges of IPv4 that are no part of the internet; `address_ranges.json` has the standard of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path


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
    rows = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    return tuple(
        AddressRange(
            network=IPv4Network(row["cidr"]), use=row["use"], hosts=row["hosts"], source=row["source"]
        )
        for row in rows
    )


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
