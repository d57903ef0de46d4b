"""Boards by the types of every Grafana that Amazon Managed Grafana offers for them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from grafana_types import VERSIONS, complaints, why_not_here

from ultracluster.metrics.boards import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not_here() is not None, reason=str(why_not_here()))]
BOARDS: dict[str, Any] = {
    one.stem: json.loads(one.read_text()) for one in FOLDER.glob("*.json") if one.stem != "index"
}


@pytest.mark.parametrize("version", VERSIONS)
def test_boards_are_what_grafana_takes_and_what_it_would_not_take_is_found(
    version: int, tmp_path: Path
) -> None:
    wrong = copy.deepcopy(BOARDS["health"])
    graph = next(panel for panel in wrong["panels"] if panel["type"] == "timeseries")
    graph["options"]["legend"]["displayMode"] = "tabel"
    graph["fieldConfig"]["defaults"]["custom"]["fillOpacity"] = "5"
    graph["fieldConfig"]["defaults"]["uint"] = "s"
    graph["targets"][0]["legend"] = "{{node}}"
    wrong["tittle"] = "x"
    found = complaints({**BOARDS, "wrong": wrong}, tmp_path, version)
    assert [one for one in found if not one.startswith("wrong")] == []
    for said in (
        '"tabel"',
        "fields: error TS2322: Type 'string' is not assignable",
        "uint",
        '"legend"',
        "tittle",
    ):
        assert any(said in one for one in found), said
