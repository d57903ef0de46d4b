"""Commands on pages: each is there, with its options, and so is its environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_commands import Command, commands, environments_of, fault
from project import ROOT
from rows import for_each

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = environments_of(text)
    faults = [said for one in commands(text) if (said := fault(one, named))]
    assert not faults, "\n".join(faults)


def test_pages_have_commands() -> None:
    """Else the search has gone blind."""
    found = {str(one) for page in PAGES for one in commands(page.read_text(encoding="utf-8"))}
    assert len(found) > 150
    assert {
        "ultracluster nodes replace prod ip-10-1-0-17",
        "ultracluster plan prod --html prod.html",
    } <= found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("plan prod", ""),
        ("plan ENV --model 70B", ""),
        ("plan new", ""),
        ("doctor prod --reason ultracluster:xid:79", ""),
        ("validate environments/*.yaml", ""),
        ("plann prod", "there is no command 'plann'"),
        ("nodes repair prod n1", "there is no command 'repair' of nodes"),
        ("plan prod --modle 70B", "No such option: --modle"),
        ("plan prod --model", "requires an argument"),
        ("plan prodd", "no environment prodd"),
        ("plan prod dev", "nothing takes dev"),
        ("nodes replace prod", "nodes is missing"),
        ("validate environments/none-*.yaml", "no environment"),
    ],
)
def test_what_cannot_be_typed_is_found(words: str, says: str) -> None:
    said = fault(Command(tuple(words.split())), {"new"})
    assert says in said if says else not said
