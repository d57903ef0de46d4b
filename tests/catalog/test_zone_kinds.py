"""Kinds of zones."""

from __future__ import annotations

import pytest

from ultracluster.catalog.regions import regions
from ultracluster.catalog.zone_kinds import ZONE_WORDS, ZoneKind, refused_kinds, zone_kind, zone_rows
from ultracluster.rules import all_rules


@pytest.mark.parametrize(
    ("zone_id", "kind"),
    [
        ("use1-az1", "zone"),
        ("use1-dfw2-az1", "local"),
        ("apse1-han-az1", "local"),
        ("use1-wl1-bos-wlz1", "wavelength"),
        ("use1-wlz1-bos-wlz-1", "wavelength"),
    ],
)
def test_the_form_of_an_id_tells_the_kind(zone_id: str, kind: ZoneKind) -> None:
    assert zone_kind(zone_id) == kind


def test_zones_of_regions_are_of_the_first_kind() -> None:
    seen = {zone for one in regions().values() for zone in one.zone_ids if zone.count("-") == 1}
    assert {zone_kind(zone) for zone in seen} == {"zone"}


def test_rows_name_rules_that_are_about_their_orchestrators() -> None:
    rules = {rule.id: rule for rule in all_rules()}
    for row in zone_rows():
        assert bool(row.rule) is (row.verdict != "allowed")
        if row.rule:
            kinds = rules[row.rule].kinds
            assert kinds is None or set(row.on) <= kinds
            assert (rules[row.rule].severity == "error") is (row.verdict == "refused")


@pytest.mark.parametrize("rule", ["EKS017", "PCS097"])
def test_control_planes_are_in_zones_of_the_region(rule: str) -> None:
    assert set(refused_kinds(rule)) == set(ZONE_WORDS) - {"zone"}
    assert not refused_kinds("ENV037")  # discouraged: nodes may be there
