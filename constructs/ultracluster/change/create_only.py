"""What CloudFormation says of its resource types: `create_only.json`, and whether a path is in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from ultracluster.change.walk import Steps


def row_of(kind: str) -> dict[str, list[str]] | None:
    """What is set at creation `always` or `sometimes`; None if the type is not in the table."""
    return _table()["types"].get("AWS::CloudFormation::CustomResource" if is_custom(kind) else kind)


def is_custom(kind: str) -> bool:
    """Whether a function of the stack is behind the type."""
    return kind.startswith("Custom::")


def source() -> str:
    """Where the table comes from."""
    return _table()["about"]["source"]


def hits(rows: list[str] | tuple[str, ...], steps: Steps) -> bool:
    """Whether one of the schema's paths is the changed one, lies above it or below it."""
    names = [step for step in steps if not step.startswith("[")]
    for row in rows:
        parts = [part for part in row.split("/") if part != "*"]
        length = min(len(parts), len(names))
        if parts[:length] == names[:length]:
            return True
    return False


@cache
def _table() -> dict[str, Any]:
    return json.loads((Path(__file__).with_name("create_only.json")).read_text(encoding="utf-8"))
