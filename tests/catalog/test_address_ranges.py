"""Ranges of addresses that are no part of the internet."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultracluster.catalog.address_ranges import address_ranges, public_addresses, range_of, refused_beside


@pytest.mark.parametrize(
    ("cidr", "public", "use"),
    [
        ("10.0.0.0/8", 0, "private"),
        ("10.20.0.0/16", 0, "private"),
        ("10.0.0.0/7", 2**24, None),
        ("172.0.0.0/8", 2**24 - 2**20, None),
        ("100.64.0.0/10", 0, "shared by the customers of a carrier"),
        ("198.19.0.0/16", 0, "for benchmarks of networks"),
        ("198.16.0.0/14", 2**17, None),
        ("203.0.113.7/32", 1, None),
        ("8.8.8.0/24", 256, None),
    ],
)
def test_what_of_a_network_is_on_the_internet(cidr: str, public: int, use: str | None) -> None:
    found = range_of(IPv4Network(cidr))
    assert public_addresses(IPv4Network(cidr)) == public
    assert (found.use if found else None) == use


def test_ranges_do_not_overlap() -> None:
    ranges = [one.network for one in address_ranges()]
    assert not any(one.overlaps(other) for one in ranges for other in ranges if one is not other)


@pytest.mark.parametrize(
    ("block", "blocks", "refused"),
    [
        ("10.1.0.0/16", "10.0.0.0/16", None),
        ("100.64.0.0/16", "10.0.0.0/16", None),
        ("8.8.0.0/16", "10.0.0.0/16", None),
        ("10.0.0.0/16", "10.1.0.0/16", "10.0.0.0/16"),
        ("10.0.0.0/16", "10.2.0.0/16", None),
        ("10.0.0.0/16", "10.2.0.0/16 10.1.0.0/16", "10.0.0.0/16"),
        ("192.168.0.0/16", "10.0.0.0/16", "192.168.0.0/16"),
        ("198.19.0.0/16", "10.0.0.0/16", "198.19.0.0/16"),
        ("172.31.0.0/16", "172.20.0.0/16", "172.31.0.0/16"),
        ("172.21.0.0/16", "172.20.0.0/16", None),
        ("10.1.0.0/16", "100.64.0.0/16", "10.0.0.0/8"),
        ("100.65.0.0/16", "100.64.0.0/16", None),
        ("100.64.0.0/16", "198.19.0.0/16", None),
        ("169.254.0.0/16", "100.64.0.0/16", "169.254.0.0/16"),
    ],
)
def test_what_ec2_refuses_beside_the_blocks_of_a_vpc(block: str, blocks: str, refused: str | None) -> None:
    """By the table of the VPC guide; a change of one row makes one of these fail."""
    found = refused_beside(IPv4Network(block), [IPv4Network(one) for one in blocks.split()])
    assert (str(found) if found else None) == refused


@given(st.integers(0, 2**32 - 1), st.integers(1, 32))
def test_halves_have_the_addresses_of_the_whole(address: int, prefix: int) -> None:
    whole = IPv4Network((address, prefix - 1), strict=False)
    assert sum(map(public_addresses, whole.subnets())) == public_addresses(whole)
