"""Rules on directories, each broken and mended, and the advice they give."""

from __future__ import annotations

import pytest
from directory_cases import THERE, asks
from rules_table import cases, found, table_tests

from ultracluster.rules.sets import PCL, USR

test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("directory"))


@pytest.mark.parametrize("base", ["dev", "pcs-p6-b200"])
def test_a_directory_as_it_should_be_has_no_findings(base: str) -> None:
    assert found(USR, asks(), base) == []
    assert found(USR, asks(kind="microsoft-ad"), base) == []


def test_a_security_group_that_exists_is_its_owners_to_open() -> None:
    network = {
        "network.vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"},
        "network.security_group": {"id": "sg-0123456789abcdef0"},
    }
    assert found(USR, asks(server_networks=None) | network, "dev") == []


def test_parallelcluster_takes_what_the_rule_advises() -> None:
    asked = asks(
        uris=["ldap://one.example.com", "ldaps://two.example.com:3269"],
        ca_certificate="/etc/ca.pem",
        password_secret_arn=THERE,
    )
    base = "parallelcluster-p5"
    (advice,) = [one for one in found(USR, asked, base) if one.code == "USR031"]
    _, (_, directory) = [(change.path, change.value) for change in advice.remedy.options[0]]
    assert directory["domain_address"] == "ldaps://one.example.com,ldaps://two.example.com:3269"
    assert directory["tls_ca_certificate"] == "/etc/ca.pem"
    assert found(PCL, {"orchestrator.directory_service": directory}, base) == found(PCL, {}, base)
