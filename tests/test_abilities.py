"""What large training clusters are said to need is there, or the reason why it is not (`abilities.yaml`)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import ultracluster
from project import ROOT
from ruamel.yaml import YAML

pytestmark = pytest.mark.slow

TABLE = Path(__file__).parent / "support" / "abilities.yaml"
ROWS = cast("list[dict[str, Any]]", YAML(typ="safe").load(TABLE))


@pytest.mark.parametrize("row", ROWS, ids=[row["item"] for row in ROWS])
def test_an_ability_is_shown_where_the_table_says(row: dict[str, Any]) -> None:
    assert row["state"] in ("works", "partly", "elsewhere"), row["state"]
    assert (row["state"] == "works") == ("why" not in row), "what does not wholly work says why"
    assert row["shown"]
    for proof in row["shown"]:
        if "file" in proof:
            text = (ROOT / proof["file"]).read_text(encoding="utf-8")
        else:
            done = ultracluster(*shlex.split(proof["run"]), COLUMNS="200")
            text = done.stdout + done.stderr
            assert done.returncode == proof.get("rc", 0), f"{proof['run']}: {done.returncode}\n{text}"
        assert proof["says"] in text, proof
