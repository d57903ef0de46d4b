"""Settings that are written and do nothing: each row has an environment where that is so, and another."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any, get_args

import pytest
from project import ROOT
from rules_support import changed, environment_data, findings, loaded
from rules_table import assert_remedy_ends
from setting_effects import owner
from setting_effects import shown as shown_without_cdk
from setting_readers import models

from ultracluster.catalog.effects import Effect, effects
from ultracluster.config import Loaded
from ultracluster.config.nodes import GroupName
from ultracluster.config.slurm import PartitionName
from ultracluster.config.teams import TeamName

CASES = json.loads(Path(__file__).with_name("effect_cases.json").read_text(encoding="utf-8"))
NAMES: list[dict[str, Any]] = CASES["names"]
ROWS = effects()
PASSED_ON = {"orchestrator.scaledown_minutes", "orchestrator.efa_interface"}
"""Settings that ParallelCluster's configuration has in any case: what comes of them is ParallelCluster's."""
DEFINES = {"Environment.node_groups", "Environment.teams", "NodeGroup.partition"}
"""Settings whose names are the targets of all others."""


def idle(row: Effect) -> tuple[str, dict[str, Any]]:
    case = CASES["effects"][row.setting]
    return case["base"], case["idle"]


def places(base: str, changes: dict[str, Any]) -> list[str]:
    return [one.dotted for one in findings(changes, base=base) if one.code == "ENV036"]


def place(row: Effect) -> str:
    return row.setting.replace("*", "more")


def test_each_row_has_its_case() -> None:
    assert [row.setting for row in ROWS] == list(CASES["effects"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.setting)
def test_where_it_does_nothing_it_is_found(row: Effect) -> None:
    base, changes = idle(row)
    assert places(base, changes) == [place(row)]
    assert_remedy_ends("ENV036", place(row), changed(environment_data(base), changes))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.setting)
def test_where_it_has_an_effect_it_is_not(row: Effect) -> None:
    base, changes = idle(row)
    works = CASES["effects"][row.setting].get("works")
    if works is None:  # only with another scheduler
        assert row.where == {"traits.slurm": True}
        base, works = "parallelcluster-p5", {}
        changes = {"access": changes["access"]}
    assert places(base, {**changes, **works}) == []


def test_a_value_that_says_what_is_so_may_stand() -> None:
    changes = {"orchestrator.scaledown_minutes": -1, "node_groups.more.count": 4}
    assert places("parallelcluster-p5", changes) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.setting)
def test_the_default_is_nothing_to_warn_of(row: Effect) -> None:
    base, _ = idle(row)
    assert places(base, {}) == []


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.setting)
def test_without_it_the_same_is_rendered(row: Effect) -> None:
    """Nothing comes of the setting: nodes read the same, and charts are the same."""
    base, changes = idle(row)
    having = changed(environment_data(base), changes)
    without = changed(having, {place(row): ...})
    same = all(one == other for one, other in zip_longest(shown(having), shown(without)))
    assert same is (row.setting not in PASSED_ON)


def shown(data: dict[str, Any]) -> list[str]:
    file = ROOT / "environments" / "example.yaml"
    one = loaded(data)
    *texts, _findings = shown_without_cdk(Loaded(one.environment.at(file), one.source))
    return texts


def naming() -> set[str]:
    """Settings whose values or keys are names of groups, partitions or teams."""
    return {
        f"{model.__name__}.{name}"
        for part in models()
        for name, field in part.model_fields.items()
        if _names_one(field.annotation, field.metadata)
        for model, _ in [owner((part, name))]
    }


def _names_one(annotation: Any, metadata: Any = ()) -> bool:
    kinds = (GroupName, PartitionName, TeamName)
    own = [list(get_args(kind)[1].metadata) for kind in kinds]
    return (
        annotation in kinds
        or (annotation is str and list(metadata) in own)
        or any(_names_one(part) for part in get_args(annotation))
    )


def test_each_setting_that_names_something_has_its_case() -> None:
    assert naming() - DEFINES == {row["setting"] for row in NAMES}


@pytest.mark.parametrize("row", NAMES, ids=lambda row: row["setting"])
def test_a_name_that_is_none_is_found(row: dict[str, Any]) -> None:
    found = findings(row["with"], base=row["base"])
    assert row["rule"] in {one.code for one in found if "nobody" in one.message or "nobody" in one.dotted}
