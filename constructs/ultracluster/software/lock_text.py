"""How a lock file is written, and the JSON Schema of one."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from ultracluster.software.artifact import Artifact, PackageSet, Repository
from ultracluster.software.lock import Component, Floor, Release

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_LIST_OF_TEXTS = re.compile(r'\[\s*((?:"(?:[^"\\]|\\.)*",?\s*)+)\]')


def written(data: dict[str, Any]) -> str:
    """A lock file's text: indented JSON, short lists on one line, keys in the order of `data`."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return _LIST_OF_TEXTS.sub(_on_one_line, text) + "\n"


def _on_one_line(match: re.Match[str]) -> str:
    line = f"[{', '.join(_TEXT.findall(match[1]))}]"
    return line if len(line) < 110 else match[0]


def lock_schema() -> dict[str, Any]:
    """The JSON Schema of a lock file."""
    from ultracluster.config.schema import field_docstrings  # parses sources: only when asked

    schema = deepcopy(Release.model_json_schema(by_alias=True))
    for model in (Artifact, Repository, PackageSet, Floor, Component, Release):
        definition = schema if model is Release else schema["$defs"][model.__name__]
        for name, text in field_docstrings(model).items():
            if name in definition["properties"]:
                definition["properties"][name]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Software release"}
