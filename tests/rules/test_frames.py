"""Addresses and zones in their frame: what is said of a private network, and of each kind of zone."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_support import changed, environment_data, loaded

from ultracluster.catalog.address_ranges import address_ranges
from ultracluster.config import InvalidEnvironmentError
from ultracluster.rules import all_rules
from ultracluster.rules.engine import Rule, run

BASES = {
    "network.cidr": "dev",
    "network.vpc.cidr": "dev",
    "orchestrator.endpoint.cidrs": "eks-p5en",
    "orchestrator.service_cidr": "eks-p5en",
    "orchestrator.login_pools.login.ssh_networks": "parallelcluster-p5",
    "orchestrator.directory_service.server_networks": "parallelcluster-p5",
}
"""Settings that take a network, each with an environment that has it."""
BESIDE: dict[str, dict[str, Any]] = {
    "network.vpc.cidr": {"network.vpc": {"id": "vpc-0123456789abcdef0"}},
    "orchestrator.endpoint.cidrs": {"orchestrator.endpoint": {"kind": "public"}},
    "orchestrator.directory_service.server_networks": {
        "orchestrator.directory_service": {
            "domain_name": "corp.example.com",
            "domain_address": "ldaps://corp.example.com",
            "password_secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:ldap",
            "read_only_user": "cn=ReadOnly,dc=corp,dc=example,dc=com",
        }
    },
}
INTERNET = ("internet", "public host", "anybody")


@cache
def about_networks() -> tuple[Rule, ...]:
    """The rules that may speak of addresses; the others take most of the time."""
    return tuple(one for one in all_rules() if one.id[:3] in ("NET", "EKS", "PCL", "ENV", "FSX"))


def said(setting: str, networks: list[str]) -> list[tuple[str, str]]:
    value = networks if setting.endswith("s") else networks[0]
    changes = {**BESIDE.get(setting, {}), setting: value}
    findings = run(about_networks(), loaded(changed(environment_data(BASES[setting]), changes)))
    return [(one.code, one.message) for one in findings if any(text in one.message for text in networks)]


@st.composite
def private_networks(draw: st.DrawFn) -> str:
    of = draw(st.sampled_from([one.network for one in address_ranges() if one.hosts]))
    prefix = draw(st.integers(of.prefixlen, 32))
    address = int(of.network_address) + draw(st.integers(0, of.num_addresses - 1))
    return str(IPv4Network((address, prefix), strict=False))


@pytest.mark.parametrize("setting", BASES)
@given(cidr=private_networks())
def test_no_message_speaks_of_the_internet_for_a_private_network(setting: str, cidr: str) -> None:
    try:
        found = said(setting, [cidr])
    except InvalidEnvironmentError:
        return  # not every setting takes every size
    assert not [(code, text) for code, text in found if any(word in text for word in INTERNET)]


@pytest.mark.parametrize(
    ("setting", "cidr", "code"),
    [
        ("network.cidr", "11.0.0.0/16", "NET008"),
        ("orchestrator.endpoint.cidrs", "0.0.0.0/0", "EKS006"),
        ("orchestrator.login_pools.login.ssh_networks", "0.0.0.0/0", "PCL088"),
    ],
)
def test_of_a_public_one_it_does(setting: str, cidr: str, code: str) -> None:
    assert code in {one for one, text in said(setting, [cidr]) if any(word in text for word in INTERNET)}


@pytest.mark.parametrize(
    ("base", "zone", "word", "other"),
    [
        ("pcs-p6-b200", "use2-wl1-dtw-wlz1", "Wavelength Zone", "Local Zone"),
        ("eks-p5en", "use2-wl1-dtw-wlz1", "Wavelength Zone", "Local Zone"),
        ("dev", "usw2-lax1-az1", "Local Zone", "Wavelength Zone"),
        ("parallelcluster-p5", "usw2-lax1-az1", "Local Zone", "Wavelength Zone"),
    ],
)
def test_messages_name_the_kind_of_the_zone(base: str, zone: str, word: str, other: str) -> None:
    data = changed(environment_data(base), {"network.zone_id": zone})
    messages = [one.message for one in run(all_rules(), loaded(data)) if zone in one.message]
    assert any(word in text for text in messages)
    assert not any(other in text for text in messages)
