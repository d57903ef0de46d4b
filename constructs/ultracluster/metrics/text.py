# pyright: basic
# ruamel.yaml marks no types.
"""YAML as Prometheus, its alert manager and Amazon Managed Service for Prometheus read it."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
"""Booleans and null of YAML 1.1, which Prometheus' reader takes for such."""


def yaml_text(data: Any) -> str:
    """`data` in block style, in its own order; texts of several lines stay as they are."""
    yaml = YAML()
    yaml.width = 10_000  # an expression stays on its line
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(_plain(data), stream)
    return stream.getvalue()


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if isinstance(data, str) and "\n" in data:
        return LiteralScalarString(data)
    return DoubleQuotedScalarString(data) if isinstance(data, str) and data.lower() in _WORDS else data
