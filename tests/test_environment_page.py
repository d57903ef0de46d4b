"""docs/environment-reference.md has every key of the schema, with the rules that stand there."""

from __future__ import annotations

import json
import re

from project import ROOT

from tools import environment_page
from ultracluster.config.schema import PUBLISHED
from ultracluster.rules import all_rules

PAGE = (ROOT / "docs" / "environment-reference.md").read_text(encoding="utf-8")


def section(heading: str) -> dict[str, list[str]]:
    """Cells of the table below a heading, by key."""
    text = PAGE.partition(f"\n{heading}\n")[2].partition("\n##")[0]
    rows = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `"))
    return {cells[0].strip("`"): cells for cells in rows}


def test_the_page_is_up_to_date() -> None:
    assert environment_page.page() == PAGE, "run `make generate`"


def test_every_key_of_every_model_is_there() -> None:
    schema = json.loads(PUBLISHED.read_text())
    models = [schema, *(one for one in schema["$defs"].values() if "properties" in one)]
    rows = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))

    assert {key for model in models for key in model["properties"]} - rows == set()
    assert len(environment_page.keys()) > 400


def test_nearly_every_rule_stands_at_a_key() -> None:
    """Not those whose finding is of another orchestrator than the key."""
    named = set(re.findall(r"\[([A-Z]+\d+)\]\(rules\.md#", PAGE))
    rules = {rule.id for rule in all_rules()}

    assert named <= rules
    assert len(rules - named) <= 3, sorted(rules - named)


def test_orchestrators_are_those_that_the_rules_let_take_a_key() -> None:
    groups = section("## `node_groups.<name>`")

    assert "hyperpod-slurm, hyperpod-eks" in groups["min_count"]
    assert "pcs" in groups["gres"]
    assert "hyperpod-eks, eks" in groups["taints"]
    assert " | hyperpod-slurm, pcs | " in next(
        line for line in PAGE.splitlines() if line.startswith("| `directory` |")
    )


def test_types_and_defaults_are_the_schemas() -> None:
    ssd = section("### `storage.lustre` with deployment: persistent-2-ssd")

    assert ssd["mount_path"][1] == "string, default `/fsx`"
    assert ssd["capacity_gib"][1] == "integer, more than 0, **required**"
    assert ssd["version"][1] == "`2.10`, `2.12`, `2.15`, default `2.15`"
    assert "[FSX002](rules.md#fsx002-" in ssd["capacity_gib"][4]
