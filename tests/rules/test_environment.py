"""Rules on the environment as a whole, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import GB300
from rules_table import cases, found, table_tests

from ultracluster.catalog import regions
from ultracluster.rules.sets import ENV
from ultracluster.rules.zones import in_local_zone

ZONE = "network.zone_id"
TYPE = "node_groups.gpu.instance_type"
LACKS = ("ENV032", "ENV033")
"""Of what a Local Zone does not offer."""
NEW = "p6e-gb300.36xlarge"
KEY = "arn:aws:kms:us-west-2:111122223333:key/0f6d"
SLURM = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm"


def key(arn: str) -> dict[str, Any]:
    return {"storage.key": {"arn": arn}}


test_breaks_and_is_mended, test_advice_works = table_tests(cases=cases("environment"))


def test_nothing_is_said_of_zones_and_arns_in_a_region_that_does_not_exist() -> None:
    changes = {"region": "us-west-22", ZONE: "use1-az1", **key(KEY)}
    assert [one.code for one in found(ENV, changes)] == ["ENV001"]


def test_a_zone_is_reported_by_one_rule_only() -> None:
    for zone in ("us-west-2a", "use1-az1", "usw2-az9", "usw2-lax1-az1", "nonsense"):
        codes = [one.code for one in found(ENV, {ZONE: zone}) if one.code not in LACKS]
        assert len(codes) == 1, zone


def test_each_zone_that_was_seen_is_clean() -> None:
    for home in regions().values():
        for zone in home.zone_ids:
            codes = {one.code for one in found(ENV, {"region": home.name, ZONE: zone})}
            assert codes <= {"ENV002", "ENV005", *LACKS}, zone
            assert ("ENV005" in codes) == in_local_zone(home, zone) == (zone.count("-") == 2)


def test_a_region_without_a_known_form_of_zone_ids_is_not_judged() -> None:
    assert found(ENV, {"region": "eusc-de-east-1", ZONE: "eusc-de-east-1-az1"}) == []


def test_a_local_zone_without_a_nat_gateway_of_ours_says_nothing_of_one() -> None:
    findings = found(ENV, {ZONE: "usw2-lax1-az1", "network.egress": "closed"})
    assert findings and not [one for one in findings if "NAT gateway" in one.message]


def test_every_arn_of_a_file_is_looked_at() -> None:
    database = {
        "kind": "existing",
        "endpoint": "db.example.com",
        "secret_arn": SLURM,
        "secret_key_arn": KEY,
        "security_group_id": "sg-0123456789abcdef0",
    }
    reservation = {
        "kind": "reservation",
        "resource_group_arn": "arn:aws:resource-groups:us-west-2:111122223333:group/g",
    }
    changes = {
        **key(KEY),
        "storage.accounting_database": database,
        "node_groups.gpu.capacity": reservation,
    }
    moved = {**changes, "region": "us-east-1", ZONE: "use1-az1"}
    assert [one.code for one in found(ENV, moved)] == ["ENV012"] * 4


def test_an_arn_without_a_region_or_an_account_is_of_every_one() -> None:
    arn = "arn:aws:resource-groups:::group/g"
    capacity = {"kind": "reservation", "resource_group_arn": arn}
    changes = {"account": "111122223333", "node_groups.gpu.capacity": capacity}
    assert found(ENV, changes) == []


def test_a_declared_type_of_the_same_family_is_suggested() -> None:
    changes = {"instance_types": {NEW: GB300}, TYPE: "p6e-gb300.63xlarge"}
    (wrong, _) = found(ENV, changes)
    assert wrong.remedy.options[0][0].value == NEW


@pytest.mark.parametrize(("zone_id", "code"), [("use2-az1", "ENV003"), ("use1-az9", "ENV004")])
def test_no_zone_is_advised_where_eks_takes_no_control_plane(zone_id: str, code: str) -> None:
    changes = {"region": "us-east-1", ZONE: zone_id, "orchestrator.second_zone_id": "use1-az2"}

    (finding,) = [one for one in found(ENV, changes, "eks-p5en") if one.code == code]

    assert "use1-az1" in finding.instead
    assert "use1-az3" not in finding.instead
