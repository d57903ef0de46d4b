"""Why keys of other tools do not carry over, and what to do: the rows of `reasons.json`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from ultracluster.imports.ledger import Reason


def reasons(*tools: str) -> dict[str, Reason]:
    """Reasons by key; those of a later tool come before those of an earlier one."""
    return {
        key: (row.get("why", ""), row.get("todo", ""))
        for tool in tools
        for row in _tools()[tool]["reasons"]
        for key in row["keys"]
    }


def levels(tool: str) -> dict[str, str]:
    """Keys that stand at one place of the tool's file, with what they belong below."""
    return {key: level for level, keys in _tools()[tool]["levels"].items() for key in keys}


@cache
def _tools() -> dict[str, Any]:
    file = resources.files("ultracluster.imports").joinpath("reasons.json")
    return dict(json.loads(file.read_text("utf-8"))["tools"])
