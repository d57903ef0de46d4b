"""`health:` of an environment file: what is refused, and what is the default."""

from __future__ import annotations

from typing import Any

import pytest
from project import ROOT
from ruamel.yaml import YAML

from ultracluster.config.health import Health


def test_by_default_nothing_is_done_to_a_node() -> None:
    assert Health().mode == "dry-run"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "enforced"},
        {"max_drained_percent": 0},
        {"max_drained_percent": 51},
        {"max_drained_per_hour": 0},
        {"max_resumes_per_day": -1},
        {"checkpoint_seconds": 3601},
        {"ignore": ["GPU count"]},
        {"ignore": ["efa; reboot"]},
        {"drain": True},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Health: CFG"):
        Health(**wrong)


def test_the_page_shows_what_is_taken() -> None:
    page = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    shown = YAML(typ="safe").load(page.split("```yaml\n", 1)[1].split("```", 1)[0])
    assert Health(**{**shown["health"], "ignore": tuple(shown["health"]["ignore"])}).mode == "enforce"
    table = page.split("| Field | Default | |")[1].split("\n\n")[0]
    assert [line.split("`")[1] for line in table.splitlines() if "`" in line] == list(Health.model_fields)
