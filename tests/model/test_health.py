"""What nodes are told of `health:`."""

from __future__ import annotations

import json

import jsonschema
import pytest
from project import ROOT
from rules_support import environment_data, loaded

from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.model.health import health_settings

SCHEMA = json.loads((ROOT / "lifecycle_scripts" / "cluster.schema.json").read_text())["properties"]["health"]


def settings(base: str, **health: object) -> dict[str, object]:
    data = environment_data(base)
    if health:
        data["health"] = health
    return health_settings(resolve(loaded(data).environment))


@pytest.mark.parametrize("base", ["dev", "parallelcluster-p5", "pcs-p6-b200"])
def test_nodes_are_told_all_of_it_in_the_form_that_they_read(base: str) -> None:
    told = settings(base, mode="enforce", ignore=["efa"], max_drained_per_hour=3)
    jsonschema.validate(told, SCHEMA)
    assert (told["mode"], told["ignore"], told["max_drained_per_hour"]) == ("enforce", ["efa"], 3)
    assert ("node_recovery" in told) == (base == "dev")


def test_without_a_word_nodes_look_and_do_nothing() -> None:
    assert settings("dev")["mode"] == "dry-run"


@pytest.mark.parametrize("base", ["hyperpod-eks-p5", "eks-p5en"])
def test_on_kubernetes_nothing_is_told(base: str) -> None:
    assert settings(base) == {}


def test_off_is_no_word_in_cluster_json() -> None:
    data = environment_data("dev") | {"health": {"mode": "off"}}
    assert "health" not in script_configuration(resolve(loaded(data).environment))
