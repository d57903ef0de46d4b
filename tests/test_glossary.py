"""docs/glossary.md: what pages abbreviate is in it, in order, in few words, with a page that says more."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from project import ROOT

DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
TEXT = GLOSSARY.read_text(encoding="utf-8")
MOST_PAGES_WITHOUT = 2
"""On so many pages an abbreviation may stand that is not in the glossary."""
ABBREVIATION = re.compile(r"(?<![\w/.-])(?:[A-Z]{2,}\d*s?|[A-Z][a-z]?[A-Z]+[A-Za-z]*)(?![\w-])")
RULE = re.compile(r"[A-Z]{3,4}\d{3}")


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| |")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


WORDS, GENERAL = (rows(part) for part in TEXT.split("## Abbreviations"))
WORDS = WORDS[1:]


def terms() -> set[str]:
    return {term.strip() for row in (*WORDS, *GENERAL) for term in row[0].split(",")}


def prose(page: Path) -> str:
    """A page without code, addresses and targets of links."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def abbreviations() -> Counter[str]:
    """On how many pages each stands; a plural is its singular."""
    found: Counter[str] = Counter()
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        if page != GLOSSARY:
            words = {
                word[:-1] if word[:-1].isupper() and word.endswith("s") else word
                for word in ABBREVIATION.findall(prose(page))
            }
            found.update(word for word in words if not RULE.fullmatch(word))
    return found


def test_every_abbreviation_of_several_pages_is_there() -> None:
    known = terms()
    missing = {
        word: n
        for word, n in abbreviations().items()
        if n > MOST_PAGES_WITHOUT and not {word, word.removesuffix("es")} & known
    }

    assert len(abbreviations()) > 50, "the search has gone blind"
    assert missing == {}, "write them into docs/glossary.md"


def test_words_are_in_order_and_once() -> None:
    names = [row[0] for row in WORDS]

    assert names == sorted(names, key=str.casefold)
    assert len(names) == len(set(names))


def test_each_is_said_in_few_sentences() -> None:
    for row in WORDS:
        assert len(row) == 3, row
        assert row[1].endswith("."), row
        assert 1 <= len(re.findall(r"[.?](?: |$)", row[1])) <= 3, row


def test_each_leads_to_a_page_that_says_more() -> None:
    for row in WORDS:
        targets = re.findall(r"\]\(([^)]+)\)", row[2])
        assert targets, row
        for target in targets:
            path, _, anchor = target.partition("#")
            page = DOCS / path
            assert page.is_file(), target
            heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w -]", "", head.replace("`", "").lower()).replace(" ", "-") for head in heads
            }
            assert not anchor or anchor in slugs, target
