"""The generated files are what `tools/catalog_from_authorities.py` would write today."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tools import catalog_from_authorities as authorities

RENEW = "run python tools/catalog_from_authorities.py"


def rows(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows by name, each with what its family states for it."""
    families = document.get("families", {})
    if "sizes" in document:  # lists, not rows
        return {name: {"is": row} for name, row in {**document["sizes"], **document["regions"]}.items()}
    table = document.get("types") or document["regions"]
    return {n: {**families.get(authorities.family(n), {}), **row} for n, row in table.items()}


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One line per changed figure: row, field, old and new value."""
    before, after = rows(old), rows(new)
    return [
        f"{name} {field}: {before.get(name, {}).get(field)} -> {after.get(name, {}).get(field)}"
        for name in sorted(before.keys() | after.keys())
        for field in before.get(name, {}).keys() | after.get(name, {}).keys()
        if before.get(name, {}).get(field) != after.get(name, {}).get(field)
    ]


@pytest.mark.parametrize(
    ("file", "fresh"),
    [
        ("general_instances.json", authorities.general_instances),
        ("regions.json", authorities.regions),
        ("rds_classes.json", authorities.rds_classes),
    ],
)
def test_generated_file_is_up_to_date(file: str, fresh: Any) -> None:
    # The header may name older editions: it changes with the next change of a figure.
    committed = json.loads((authorities.CATALOG / file).read_text())
    assert changes(committed, fresh()) == [], RENEW
    assert (authorities.CATALOG / file).read_text() == authorities.render(committed), RENEW


def test_a_stale_figure_is_told_by_row_and_new_value() -> None:
    fresh = authorities.general_instances()
    stale = json.loads(json.dumps(fresh))
    stale["types"]["m5.large"]["vcpu"] = 3
    del stale["types"]["g5.xlarge"]
    assert "m5.large vcpu: 3 -> 2" in changes(stale, fresh)
    assert any(line.startswith("g5.xlarge vcpu: None -> 4") for line in changes(stale, fresh))


def test_a_type_that_only_has_a_name_keeps_its_family_whole() -> None:
    sizes = {
        "m9x.large": {"vcpu": 2, "hyperpod": True},
        "m9x.huge": {"vcpu": None, "hyperpod": True},
    }
    assert authorities.by_family(sizes) == {
        "families": {"m9x": {"hyperpod": True}},
        "types": {"m9x.large": {"vcpu": 2}, "m9x.huge": {"vcpu": None}},
    }


@pytest.mark.parametrize("region", sorted(authorities.regions()["regions"]))
def test_zone_prefix_begins_every_known_zone_id(region: str) -> None:
    prefix = authorities.zone_prefix(region)
    assert all(zone.startswith(f"{prefix}-") for zone in authorities.zone_ids(region))


@pytest.mark.parametrize(
    ("region", "prefix"),
    [
        ("us-gov-west-1", "usgw1"),
        ("us-gov-east-1", "usge1"),
        ("cn-north-1", "cnn1"),
        ("cn-northwest-1", "cnnw1"),
        ("ap-southeast-5", "apse5"),
        ("us-isob-east-1", None),
        ("eusc-de-east-1", None),
    ],
)
def test_zone_prefix(region: str, prefix: str | None) -> None:
    assert authorities.zone_prefix(region) == prefix


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("Up to 12.5 Gigabit", 12.5),
        ("3200 Gigabit", 3200),
        ("4x 100 Gigabit", 400),
        ("Low to Moderate", None),
    ],
)
def test_gigabits(text: str, gbps: float | None) -> None:
    assert authorities.gigabits(text) == gbps
