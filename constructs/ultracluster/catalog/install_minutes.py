"""How long a node takes to install a component; `install_minutes.json` next to it has the estimates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


def install_minutes(component: str, kind: str) -> float:
    """Minutes, an estimate: of the component itself, else of what is installed in its way (`source`)."""
    table = _document()
    return table["components"].get(component, table["kinds"][kind])


@cache
def _document() -> Mapping[str, Any]:
    return json.loads(Path(__file__).with_name("install_minutes.json").read_text(encoding="utf-8"))
