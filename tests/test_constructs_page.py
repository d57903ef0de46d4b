"""docs/constructs-reference.md says what the code says, of every public name."""

from __future__ import annotations

import re
import sys

import pytest
from project import ROOT

import ultracluster

sys.path.insert(0, str(ROOT / "tools"))

import constructs_page

WRITTEN = (ROOT / "docs" / "constructs-reference.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "constructs.md").read_text(encoding="utf-8")


def test_the_reference_is_up_to_date() -> None:
    assert constructs_page.page() == WRITTEN, "run `make generate`"


def test_it_has_every_public_name_once() -> None:
    assert sorted(re.findall(r"^### (\w+)$", WRITTEN, re.MULTILINE)) == sorted(ultracluster.__all__)


@pytest.mark.parametrize("name", [*ultracluster.__all__, "from_cluster_attributes", "cdk_flags"])
def test_the_guide_speaks_of_it(name: str) -> None:
    assert re.search(rf"\b{name}\b", GUIDE), f"show {name} in docs/constructs.md"


def test_arguments_are_described() -> None:
    """An argument that its docstring does not name is one that nobody can use; of one that may be left out it
    says the default."""
    silent = {
        f"{name}({argument})"
        for name, arguments, described in constructs_page.described()
        for argument in arguments
        if not re.search(r"\bdefault" if argument[-1] == "?" else ".", described.get(argument.strip("?"), ""))
    }
    assert silent == set()
