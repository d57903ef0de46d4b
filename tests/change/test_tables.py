"""The tables of what a change does, against the schemas that they are about."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from blast_radius_support import CLUSTER, resource, stack
from project import ENVIRONMENTS
from rows import for_each

from tools import create_only_from_authorities as authorities
from ultracluster.catalog.data_kinds import kinds_with_data
from ultracluster.change import Verdict, blast_radius

pytestmark = pytest.mark.slow

FACTS = json.loads(authorities.TABLE.with_name("change_facts.json").read_text())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_type_of_a_shipped_environment_is_unknown(name: str, synthesised: Callable[[str], Any]) -> None:
    known = authorities.create_only()["types"]
    kinds = {
        one["Type"]
        for template in synthesised(name).templates.values()
        for one in template["Resources"].values()
    }

    assert {kind for kind in kinds if not kind.startswith("Custom::")} <= known.keys()


@cache
def schema(kind: str) -> dict[str, Any]:
    """CloudFormation's own schema of a type, as cfn-lint ships it."""
    return json.loads((schemas() / "resources" / f"{schema_names()[kind]}.json").read_text())


@cache
def schema_names() -> dict[str, str]:
    return json.loads((schemas() / "providers" / "us-east-1.json").read_text())


def schemas() -> Path:
    spec = find_spec("cfnlint")
    assert spec and spec.origin
    return Path(spec.origin).parent / "data" / "schemas"


def knows(kind: str, path: str) -> bool:
    """Whether a path leads to a property of the schema."""
    whole = schema(kind)
    nodes = [whole]

    def resolved(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for node in found:
            while "$ref" in node:
                node = whole["definitions"][node["$ref"].rpartition("/")[2]]
            made += [node, *resolved(node.get("oneOf", []))]
        return made

    for step in path.replace("[", ".[").split("."):
        nodes = resolved(nodes)
        if step.startswith("["):
            nodes = resolved([node["items"] for node in nodes if "items" in node])
            step = f"{step[1:-1]}Config" if step != "[]" else ""
        if step:
            nodes = [node["properties"][step] for node in nodes if step in node.get("properties", {})]
    return bool(nodes)


PATHS = sorted(
    {
        (f["type"], path)
        for f in FACTS["facts"]
        for path in f.get("apart", [f.get("path")])
        if path and f["type"].startswith("AWS::")
    }
)
UNCONDITIONAL = [fact for fact in FACTS["facts"] if not fact.keys() & {"if", "apart"}]


def named(fact: dict[str, Any]) -> str:
    return f"{fact['type']} {fact.get('path', list(fact.get('apart', ())))} {fact.get('change', '')}"


@for_each(("kind", "path"), [*PATHS, *FACTS["names"]["properties"].items()])
def test_every_fact_is_about_a_property_that_cloudformation_knows(kind: str, path: str) -> None:
    assert knows(kind, path)


@pytest.mark.parametrize(
    "kind",
    sorted({f["type"] for f in FACTS["facts"]} | set(kinds_with_data()) | set(FACTS["snapshots"]["types"])),
)
def test_every_fact_is_about_a_type_of_the_table(kind: str) -> None:
    assert kind.startswith("Custom::") or kind in authorities.create_only()["types"]


@for_each("fact", FACTS["facts"], ids=named)
def test_every_fact_has_verdict_reason_and_dated_source(fact: dict[str, Any]) -> None:
    assert Verdict(fact["verdict"])
    assert fact["reason"] and fact["source"] and len(fact["date"]) == 10
    assert fact.keys() <= {
        *("type", "path", "change", "where", "if", "values", "apart", "cases", "verdict", "part"),
        *("overrides", "order", "reason", "source", "date"),
    }
    assert ("path" in fact) != ("apart" in fact)
    assert (fact["verdict"] == "refused") == bool(fact.get("order") or fact.get("apart"))
    assert fact.get("change", "added") in {"added", "removed", "increased", "decreased", "fewer", "more"}


NOTHING = object()


def holding(path: str, value: Any) -> Any:
    """Properties in which a fact's path holds a value, or does not (NOTHING)."""
    return nested(path.replace("[", ".[").split(".") if path else [], value)


def nested(steps: list[str], value: Any) -> Any:
    if not steps:
        return {"Any": value}
    step, *rest = steps
    if step.startswith("["):
        if value is NOTHING and not rest:
            return []
        inner = nested(rest, value)
        return [{"Name": "x", **inner} if step == "[]" else {f"{step[1:-1]}Config": inner}]
    if rest:
        return {step: nested(rest, value)}
    return {} if value is NOTHING else {step: value}


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: merged(one.get(key), other.get(key)) for key in one.keys() | other.keys()}
    return one if other is None else other


VALUES = {
    "added": (NOTHING, "b"),
    "removed": ("a", NOTHING),
    "increased": (1, 2),
    "decreased": (2, 1),
    "fewer": (["a", "b"], ["b"]),
    "more": (["a"], ["a", "b"]),
    None: ("a", "b"),
}


@for_each("fact", UNCONDITIONAL, ids=named)
def test_no_fact_is_hidden_by_one_above_it(fact: dict[str, Any]) -> None:
    """The smallest change that a fact is about gets its reason and its verdict."""
    values = VALUES[fact.get("change")]
    old, new = (resource(fact["type"], holding(fact["path"], value)) for value in values)
    for path, allowed in fact.get("where", {}).items():
        # of a resource as a whole that goes, the old one has them
        for one in (new,) if fact["path"] and path.startswith(fact["path"]) else (old, new):
            one["Properties"] = merged(one["Properties"], holding(path, allowed[0]))
    gone = fact["path"] == "" and fact.get("change") == "removed"
    (change,) = blast_radius(stack(R=old), stack() if gone else stack(R=new))

    assert fact["reason"] in change.reason
    held = fact["type"] in kinds_with_data() and fact["verdict"] == "replaced"
    assert change.verdict == ("DATA LOSS" if held else fact["verdict"])
    assert change.refused == (fact["verdict"] == "refused")
    assert list(change.order) == fact.get("order", [])


def test_every_field_of_an_instance_group_has_a_fact_or_is_known_to_be_harmless() -> None:
    harmless = {
        "InstanceGroupName", "KubernetesConfig", "ScheduledUpdateConfig", "AutoPatchConfig", "CurrentCount",
    }  # fmt: skip
    fields = schema(CLUSTER)["definitions"]["ClusterInstanceGroup"]["properties"].keys()
    judged = {
        f["path"].split(".")[1].split("[")[0]
        for f in FACTS["facts"]
        if f.get("path", "").startswith("InstanceGroups[].")
    }

    assert fields - harmless - judged == set()


def test_the_table_is_what_the_authorities_say_today() -> None:
    # The header may name older editions: it changes with the next change of a row.
    committed = json.loads(authorities.TABLE.read_text())

    assert committed["types"] == authorities.create_only()["types"], (
        "run python tools/create_only_from_authorities.py"
    )
    assert authorities.TABLE.read_text() == authorities.render(committed)
