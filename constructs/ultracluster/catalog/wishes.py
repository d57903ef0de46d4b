"""Wishes beyond "a cluster": what each orchestrator can and cannot do, one file each in `wishes/`.

A wish names an environment that has it, the page that says how to use it and what AWS bills, and each
orchestrator's answer with its source. `ultracluster choose` and docs/backends.md are written from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ultracluster.catalog.files import catalog_file, record, table

Answer = Literal["yes", "partly", "no"]
_FOLDER = Path(__file__).with_name("wishes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One wish."""

    name: str
    title: str
    """As a row's head: `serving a model`."""
    question: str
    """As `choose` asks it."""
    overlay: str
    """An environment that has it: path from the project's root."""
    page: str
    """How to use it, and what AWS bills for it: path from the project's root."""
    date: str
    """When its answers were last compared with their sources."""
    answers: Mapping[str, tuple[Answer, str, str]]
    """Answer, words and source by orchestrator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldName:
    """A name that people of the field ask for, and what becomes of it here."""

    name: str
    how: Literal["supported", "container", "out of scope"]
    words: str
    source: str


@cache
def wishes() -> Mapping[str, Wish]:
    """All wishes by name, in the order of their files."""
    return {file.stem: _wish(file) for file in sorted(_FOLDER.glob("*.json"))}


@cache
def field_names() -> tuple[FieldName, ...]:
    """Every other name of the field, in the order of the file."""
    return table(FieldName, catalog_file("field_names")["names"])


def _wish(file: Path) -> Wish:
    return record(Wish, json.loads(file.read_text(encoding="utf-8")), name=file.stem)


__all__ = ["Answer", "FieldName", "Wish", "field_names", "wishes"]
