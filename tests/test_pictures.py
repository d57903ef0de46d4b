"""docs/pictures: each is what the code draws today, and reads in the light and in the dark."""

from __future__ import annotations

import re

import pytest
from project import ROOT

from tools import pictures

pytestmark = pytest.mark.slow

FOLDER = ROOT / "docs" / "pictures"
DRAWN = dict(pictures.pictures())


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_what_is_drawn(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == DRAWN[name], "run `make generate`"


def test_no_other_lies_there() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == DRAWN.keys()


@pytest.mark.parametrize("name", DRAWN)
def test_a_git_host_shows_it(name: str) -> None:
    """Hosts allow a drawing its own style, and neither scripts nor anything from elsewhere."""
    svg = DRAWN[name]

    assert "prefers-color-scheme:dark" in svg
    assert "<script" not in svg
    assert set(re.findall(r'\w+://[^"]+', svg)) == {"http://www.w3.org/2000/svg"}
    assert 'href="data:' not in svg


@pytest.mark.parametrize("name", DRAWN)
def test_a_page_shows_it(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"pictures/{name}.svg)" in page.read_text(encoding="utf-8") for page in pages)
