# pyright: basic
# ruamel.yaml marks no types.
"""YAML for tools that read version 1.1, as PyYAML does.

There `no` is false and `12:00:00` is 43200: what is not a plain word in both versions is quoted.
"""

from __future__ import annotations

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*(:[A-Za-z0-9._/-]+)*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""YAML 1.1's booleans and null, in lower case."""


def yaml_text(data: Any) -> str:
    """`data` (mappings, lists, strings, numbers, booleans) in block style, in its own order."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 10_000  # a long argument stays on its line
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(_quoted(data), stream)
    return stream.getvalue()


def _quoted(data: Any) -> Any:
    if isinstance(data, dict):
        return {_quoted(key): _quoted(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_quoted(value) for value in data]
    if isinstance(data, str) and (not _PLAIN.fullmatch(data) or data.lower() in _WORDS):
        return DoubleQuotedScalarString(data)
    return data
