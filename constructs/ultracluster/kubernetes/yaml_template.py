"""Objects of Kubernetes and configurations as YAML files with blanks.

`<name>` is a blank. Alone it becomes a value of any type, of which None drops the key; within a text it
becomes a part of the text. As an item of a list, a list takes its place; as a key, a mapping does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

_BLANK = re.compile(r"<([a-z_]+)>")


def filled(file: Path, name: str, /, **values: Any) -> Any:
    """One object of a file, with its blanks filled.

    Raises:
        KeyError: a blank has no value.
    """
    return _filled(_objects(file)[name], values)


@cache
def _objects(file: Path) -> Mapping[str, Any]:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))  # pyright: ignore[reportUnknownMemberType]


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, str):
        whole = _BLANK.fullmatch(part)
        return values[whole[1]] if whole else _BLANK.sub(lambda match: str(values[match[1]]), part)
    if isinstance(part, list):
        items: list[Any] = []
        for item in cast("list[Any]", part):
            value = _filled(item, values)
            items += value if isinstance(item, str) and isinstance(value, list | tuple) else [value]
        return items
    if isinstance(part, dict):
        return _mapping(cast("dict[str, Any]", part), values)
    return part


def _mapping(part: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, item in part.items():
        if blank := _BLANK.fullmatch(key):
            keys |= values[blank[1]]
        elif (value := _filled(item, values)) is not None:
            keys[key] = value
    return keys
