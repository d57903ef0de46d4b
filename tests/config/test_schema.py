"""The published JSON Schema, held against an independent validator."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from project import ENVIRONMENTS, ROOT

from ultracluster.config.schema import PUBLISHED, environment_schema
from ultracluster.config.source import read

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
