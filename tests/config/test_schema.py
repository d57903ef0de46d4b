"""The published JSON Schema, held against an independent validator."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from project import ENVIRONMENTS, ROOT

from ultracluster.catalog import instance_types, offered_zone_ids, regions
from ultracluster.catalog.eks_calendar import kubernetes_releases
from ultracluster.config.schema import PUBLISHED, environment_schema
from ultracluster.config.source import read
from ultracluster.software import release_names

VALIDATOR = Draft202012Validator(json.loads(PUBLISHED.read_text()))


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(environment_schema())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_shipped_environments_satisfy_it(name: str) -> None:
    assert list(VALIDATOR.iter_errors(read(ROOT / "environments" / f"{name}.yaml").data)) == []


@pytest.mark.parametrize(
    "change",
    [{"regoin": "x"}, {"network": {"zone_id": 5}}, {"node_groups": {"a": {"role": "head"}}}, {"name": "Dev"}],
)
def test_it_refuses_what_the_loader_refuses(change: dict[str, object]) -> None:
    data = read(ROOT / "environments" / "dev.yaml").data | change

    assert list(VALIDATOR.iter_errors(data))


def known(name: str) -> set[str]:
    """A list that editors complete from."""
    return set(json.loads(PUBLISHED.read_text())["$defs"][name]["enum"])


def test_lists_are_those_of_the_catalogue() -> None:
    assert known("KnownInstanceType") == set(instance_types())
    assert known("KnownRegion") == set(regions())
    assert known("KnownRelease") == set(release_names())
    assert known("KnownKubernetesVersion") == set(kubernetes_releases())
    assert known("KnownZone") >= {zone for one in regions().values() for zone in one.zone_ids}
    for kind in instance_types():
        for place in regions():
            assert known_zones() >= set(offered_zone_ids(kind, place))


@cache
def known_zones() -> set[str]:
    return known("KnownZone")


def fields(name: str, schema: Any = None) -> list[dict[str, Any]]:
    """Every field of a name, wherever it stands."""
    schema = schema or json.loads(PUBLISHED.read_text())
    models = [schema, *schema["$defs"].values()]
    return [model["properties"][name] for model in models if name in model.get("properties", {})]


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("instance_type", "KnownInstanceType"),
        ("region", "KnownRegion"),
        ("zone_id", "KnownZone"),
        ("second_zone_id", "KnownZone"),
        ("release", "KnownRelease"),
        ("kubernetes_version", "KnownKubernetesVersion"),
    ],
)
def test_every_such_field_names_its_list(name: str, listed: str) -> None:
    assert fields(name)
    for field in fields(name):
        assert {"$ref": f"#/$defs/{listed}"} in field["anyOf"], field


def test_types_beside_the_first_are_listed_too() -> None:
    lists = [field for field in fields("instance_types") if field.get("type") == "array"]
    assert lists
    assert all({"$ref": "#/$defs/KnownInstanceType"} in field["items"]["anyOf"] for field in lists)


def test_what_no_list_has_is_not_refused() -> None:
    """AWS announces types and Regions before a catalogue has them."""
    data: Any = read(ROOT / "environments" / "dev.yaml").data
    group = next(iter(data["node_groups"].values()))
    newer = data | {
        "region": "eu-moon-1",
        "network": {"zone_id": "eum1-az1"},
        "software": {"release": "2031.01"},
        "node_groups": {"a": {**group, "instance_type": "p9.48xlarge"}},
    }
    assert list(VALIDATOR.iter_errors(newer)) == []


def test_every_field_is_documented() -> None:
    """Meaning, unit and choices appear in the editor; `kind`-like tags and names explain themselves."""
    plain = {
        "kind",
        "deployment",
        "vcpu",
        "memory_gib",
        "architecture",
        "network_cards",
        "port",
        "uid",
        "gid",
        "mode",
    }
    plain |= {
        "id",
        "arn",
        "cidr",
        "name",
        "read_cache",
        "backups",
        "network",
        "storage",
        "software",
        "access",
    }
    plain |= {"lustre", "orchestrator", "dns_name", "mount_name", "endpoint"}
    bare = [
        f"{model}.{name}"
        for model, definition in environment_schema()["$defs"].items()
        for name, field in definition.get("properties", {}).items()
        if "description" not in field and name not in plain
    ]

    assert bare == []
