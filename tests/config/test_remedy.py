"""What fixes a finding: as data, and in words."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML
from rules_support import findings

from ultracluster.config.findings import dotted
from ultracluster.config.remedy import (
    DROP,
    Change,
    Remedy,
    anywhere,
    apply,
    ask,
    beside,
    drop,
    flow,
    inside,
    relative,
    rename,
    whole,
    write,
)

HERE = ("storage", "lustre", "efa")


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (write(4800, 7200), "efa: 4800 or 7200"),
        (write(False) | drop(), "efa: false, or remove efa"),
        (beside(gds=True, version="2.15"), 'gds: true and version: "2.15"'),
        (inside(gib=32) | inside(mode="none"), "gib: 32, or mode: none"),
        (whole({"deployment": "scratch-2"}), "storage.lustre: {deployment: scratch-2}"),
        (anywhere({("orchestrator", "kind"): "eks"}), "orchestrator.kind: eks"),
        (relative({("cache", "gib"): 32}), "cache.gib: 32"),
        (relative({("backups", "retention_days"): 7}, up=1), "storage.lustre.backups.retention_days: 7"),
        (drop() & beside(count=2), "remove efa and count: 2"),
        (rename("gds").noting("as FSx says"), "gds; as FSx says"),
        (ask("fact", "id: cr-..."), "id: cr-..."),
        (ask("fact", "an id") | write(1), "efa: 1; or an id"),
    ],
)
def test_words(remedy: Remedy, text: str) -> None:
    assert remedy.placed(HERE).text(HERE) == text


@pytest.mark.parametrize(
    ("remedy", "text"), [(drop(), "remove it"), (rename("gpu"), "gpu"), (write({"a": 1}), "it: {a: 1}")]
)
def test_words_on_a_part_that_is_judged_without_a_file(remedy: Remedy, text: str) -> None:
    assert remedy.placed(()).text(()) == text


DATA: dict[str, Any] = {"a": {"b": [1, 2, 3], "c": None}, "d": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ([Change(("a", "b", 0)), Change(("a", "b", 2))], {"a": {"b": [2], "c": None}, "d": {"x": 1, "y": 2}}),
        ([Change(("a", "b", 3), 4)], {"a": {"b": [1, 2, 3, 4], "c": None}, "d": {"x": 1, "y": 2}}),
        (
            [Change(("a", "c", "e", "f"), 1)],
            {"a": {"b": [1, 2, 3], "c": {"e": {"f": 1}}}, "d": {"x": 1, "y": 2}},
        ),
        ([Change(("d", "x"), rename="z")], {"a": {"b": [1, 2, 3], "c": None}, "d": {"z": 1, "y": 2}}),
        ([Change(("d",))], {"a": {"b": [1, 2, 3], "c": None}}),
        ([Change(("d", "none"))], DATA),
    ],
)
def test_changes_are_made_on_a_copy(changes: list[Change], result: dict[str, Any]) -> None:
    before = str(DATA)
    assert apply(DATA, tuple(changes)) == result
    assert str(DATA) == before


@pytest.mark.parametrize(
    "value",
    ["2.15", "true", "null", "1e3", "use1-az1", "a: b", "a #b", "arn:aws:iam::1:role/x", "", " x",
     "10.0.0.0/16", "20261012", "cron(0 3 ? * SUN *)", "*", "- a", "x:", 4800, 1.5, True, None,
     {"kind": "spot"}, ["a", "1"], {"2.15": "b, c"}],
)  # fmt: skip
def test_values_in_words_are_yaml(value: object) -> None:
    assert YAML(typ="safe", pure=True).load(f"key: {flow(value)}") == {"key": value}


def test_json_names_path_and_value() -> None:
    (one,) = [
        one
        for one in findings({"storage.lustre.capacity_gib": 5000, "storage.lustre.efa": False})
        if one.code == "FSX002"
    ]
    assert one.remedy.as_json()["options"][0] == [
        {"path": ["storage", "lustre", "capacity_gib"], "value": 4800}
    ]
    assert one.instead == "capacity_gib: 4800 or 7200"
    assert dotted(one.remedy.options[0][0].path) == one.dotted
    assert Change(("a",), DROP).as_json() == {"path": ["a"], "remove": True}
