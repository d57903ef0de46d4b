"""docs/troubleshooting.md: current, with every symptom that the tables know, and links that hold."""

from __future__ import annotations

import re

from project import ROOT

from tools import known_failures_page, troubleshooting_page
from tools.markdown_cells import code
from ultracluster.account.doctor.known_failures import known_failures
from ultracluster.metrics.alert import alerts
from ultracluster.rules import RULE_SETS

DOCS = ROOT / "docs"
PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """Of the headings of a page, as git hosts make them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.replace("`", "").lower()).replace(" ", "-") for head in heads}


def test_it_is_what_the_tables_say() -> None:
    assert troubleshooting_page.page() == PAGE, "run `make generate`"


def test_every_symptom_is_there() -> None:
    assert [one.id for one in known_failures() if code(one.seen) not in PAGE] == []
    known = known_failures_page.page()
    assert known == (DOCS / "known-failures.md").read_text(encoding="utf-8"), "run `make generate`"
    assert [one.id for one in known_failures() if f"| {code(one.seen)} | " not in known] == []
    assert [one.name for one in alerts() if f"[{one.name}](runbooks/" not in PAGE] == []
    assert [one.prefix for one in RULE_SETS if f"`{one.prefix}..." not in PAGE] == []


def test_every_table_is_whole() -> None:
    """A stroke or a line break in a cell would shift what stands beside it."""
    for block in re.findall(r"(?:^\|.*\n)+", PAGE + known_failures_page.page(), re.MULTILINE):
        rows = block.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, rows[0]


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        path, _, anchor = target.partition("#")
        page = DOCS / path if path else DOCS / "troubleshooting.md"
        assert page.is_file(), target
        assert not anchor or anchor in anchors(page.read_text(encoding="utf-8")), target


def test_no_place_of_a_template_is_left() -> None:
    assert "<<" not in PAGE
    assert "{{" not in PAGE
