"""Writes the boards' JSON from their sources in tools/dashboards (`python -m tools.boards`)."""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

if TYPE_CHECKING:
    from tools.dashboards.board import Board

BOARDS = ("health", "job", "fabric", "lustre", "queues", "money")
FOLDER = Path(__file__).parents[1] / "constructs" / "ultracluster" / "metrics" / "dashboards"
NOT_EVERYWHERE = {
    "variable": {"auto", "auto_min", "auto_count", "allowCustomValue", "skipUrlSync"},
    "link": {"placement"},
    "stat": {"percentChangeColorMode"},
    "bargauge": {"legend"},
    "state-timeline": {"perPage"},
    "table": {"footer"},
}
"""Fields that the SDK fills in by itself, and that not every version of Grafana knows."""


def board(name: str) -> Board:
    """The source of a board."""
    found: Board = importlib.import_module(f"tools.dashboards.{name}").BOARD
    return found


def files() -> dict[str, str]:
    """Text of each generated file, by its name."""
    with warnings.catch_warnings():
        # the SDK would rather have the second model, which Grafana 10.4 does not take
        warnings.simplefilter("ignore", DeprecationWarning)
        sources = [board(name) for name in BOARDS]
        texts = {f"{one.name}.json": _text(_plain(one)) for one in sources}
    index = {
        one.name: {"title": one.title, "rows": {row.title: row.needs for row in one.sections}}
        for one in sources
    }
    texts["index.json"] = _text(index)
    return texts


def _plain(one: Board) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(one.build(), cls=JSONEncoder))
    for variable in made["templating"]["list"]:
        _drop(variable, "variable")
    for link in made["links"]:
        _drop(link, "link")
    for panel in (inner for top in made["panels"] for inner in (top, *top.get("panels", ()))):
        if panel["type"] in NOT_EVERYWHERE:
            _drop(panel["options"], panel["type"])
    return made


def _drop(part: dict[str, object], kind: str) -> None:
    for field in NOT_EVERYWHERE[kind] & part.keys():
        del part[field]


def _text(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
