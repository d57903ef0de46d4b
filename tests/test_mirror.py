"""Tests lie where the package does: a stranger finds the test of a module by its name, or in `mirror.json`.

The test of `<room>/<folder>/<module>.py` is `tests/<room>/<folder>/test_<module>.py`, or that of its folder,
`tests/<room>/test_<folder>.py`. What is tested elsewhere, with its reader or as one of many, stands in
`mirror.json` with the place and the reason; the list only becomes shorter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

PACKAGE = ROOT / "constructs" / "ultracluster"
TESTS = ROOT / "tests"
LIST = json.loads((TESTS / "mirror.json").read_text(encoding="utf-8"))
ELSEWHERE: list[dict[str, Any]] = LIST["elsewhere"]
ROWS = {f"{row['folder']}/{name}.py": row for row in ELSEWHERE for name in row["modules"]}


def places(module: Path) -> list[Path]:
    """Where the tests of a module may be: its own file, or one of its folder."""
    found = [TESTS / module.parent / f"test_{module.stem.lstrip('_')}.py"]
    folder = module.parent
    while len(folder.parts) > 1:
        found.append(TESTS / folder.parent / f"test_{folder.name}.py")
        folder = folder.parent
    return found


def without_a_file() -> set[str]:
    modules = (
        file.relative_to(PACKAGE)
        for room in LIST["rooms"]
        for file in (PACKAGE / room).rglob("*.py")
        if file.name != "__init__.py" or file.read_text(encoding="utf-8").count("\n") >= LIST["names_only"]
    )
    return {str(one) for one in modules if not any(place.is_file() for place in places(one))}


def test_every_module_has_its_test_or_a_reason() -> None:
    missing = sorted(without_a_file() - ROWS.keys())
    assert not missing, f"write {', '.join(str(places(Path(one))[0].relative_to(ROOT)) for one in missing)}"


def test_the_list_only_becomes_shorter() -> None:
    assert not (found := sorted(ROWS.keys() - without_a_file())), f"remove from tests/mirror.json: {found}"
    assert len(ROWS) == LIST["most"], "lower `most` in tests/mirror.json; nothing raises it"


@pytest.mark.parametrize("row", ELSEWHERE, ids=lambda row: f"{row['folder']}: {row['test']}")
def test_what_is_tested_elsewhere_says_where_and_why(row: dict[str, Any]) -> None:
    assert (TESTS / row["test"]).is_file()
    assert len(row["why"].split()) > 3
