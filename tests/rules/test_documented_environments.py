"""Environments that guides describe and nobody would draft: no rule takes them for an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.rules import check

ROWS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("documented_environments.json").read_text(encoding="utf-8")
)["rows"]


def environment(row: dict[str, Any]) -> dict[str, Any]:
    changes = {key: ... if value is None else value for key, value in row["changes"].items()}
    if many := row.get("many"):
        changes |= {f"node_groups.{many['of']}{number}": many["with"] for number in range(many["times"])}
    return changed(environment_data(row["base"]), changes)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_it_is_no_error(row: dict[str, Any]) -> None:
    assert row["source"]
    errors = [
        f"{one.code} {one.dotted}: {one.message}" for one in check(loaded(environment(row))) if one.blocks
    ]
    assert errors == []


def test_an_error_would_be_found() -> None:
    data = changed(environment(ROWS[0]), {"node_groups.controller.count": 2})
    assert any(one.blocks for one in check(loaded(data)))
