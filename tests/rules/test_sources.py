"""A source that several modules name stands once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ultracluster import rules
from ultracluster.rules import sources

TEXTS = [file.read_text() for file in Path(rules.__path__[0]).rglob("*.py") if file.name != "sources.py"]
SOURCES = {name: text for name, text in vars(sources).items() if name.isupper()}


@pytest.mark.parametrize("name", SOURCES)
def test_rules_name_a_source_by_its_constant(name: str) -> None:
    assert sum(f"{{{name}}}" in text or f" {name}," in text for text in TEXTS) > 1
    assert not any(SOURCES[name] in text for text in TEXTS)
