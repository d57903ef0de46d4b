"""What the documentation site is made of: links and anchors, the menu, pages that are split or added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.docs_site.links import anchors, links, rewritten, slug
from tools.docs_site.navigation import PageError, menu
from tools.docs_site.rule_pages import split
from tools.docs_site.sources import Sources

LINKS: dict[str, list[str]] = {
    "[a](b.md) and ![c](d.svg 'e')": ["b.md"],
    '![c](d.svg "e")': ["d.svg"],
    "`[a](b.md)` ``[`](c)``": [],
    "```md\n[a](b.md)\n```\n[c](d.md#e)": ["d.md#e"],
    "- x\n\n  ```sh\n  [a](b)\n  ```\n  [c](<d.md>)": ["d.md"],
    "[a][b]\n\n[b]: c.md\n": ["c.md"],
    '<!-- [a](b.md) --> <a href="c.md">d</a>': ["c.md"],
    "[`a`](b.md)": ["b.md"],
    "[a](b_(c).md)": ["b_(c).md"],
}


@pytest.mark.parametrize("text", LINKS)
def test_links_of_a_text(text: str) -> None:
    assert [link.target for link in links(text)] == LINKS[text]
    assert rewritten(text, lambda link: link.target) == text


SLUGS = {
    "What `--json` prints": "what---json-prints",
    "FSX002: `capacity_gib`, in steps": "fsx002-capacity_gib-in-steps",
    "A [link](x.md) and **bold**": "a-link-and-bold",
    "EKS: API & system": "eks-api--system",
}


@pytest.mark.parametrize("words", SLUGS)
def test_anchors_are_those_of_git_hosts(words: str) -> None:
    assert slug(words) == SLUGS[words]


def test_a_heading_that_comes_twice_has_two_anchors() -> None:
    assert anchors("# A\n\n## B\n\n## B\n\n```\n# C\n```\n") == {"a", "b", "b-1"}


def repository(folder: Path, **files: str) -> Path:
    for name, text in {"index": "# Start\n\n[a](a.md)\n", "a": "# A\n", **files}.items():
        place = folder / "docs" / (name if "." in name else f"{name}.md")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


ROWS: list[dict[str, Any]] = [{"group": "All", "pages": ["a", "b"]}, {"group": "More", "folder": "more"}]
WRONG = {
    "docs/a.md:3: there is no nowhere.md": {"a": "# A\n\n[b](nowhere.md)\n"},
    "docs/a.md:3: there is no ../../etc/passwd": {"a": "# A\n\n[b](../../etc/passwd)\n"},
    "docs/a.md:1: no heading of b.md is #x": {"a": "[b](b.md#x)", "b": "# B\n"},
    "docs/a.md:2: no heading of this page is #x": {"a": "# A\n[b](#x)"},
    "docs/c.md has no place in the menu: name it in tools/docs_site/navigation.yaml": {"c": "# C\n"},
}


@pytest.mark.parametrize("problem", WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, problem: str) -> None:
    root = repository(tmp_path, **WRONG[problem])

    with pytest.raises(PageError) as found:
        Sources(root, tmp_path / "out", ROWS).write()

    assert str(found.value).splitlines() == [problem]


def test_files_and_folders_of_the_repository_become_pages(tmp_path: Path) -> None:
    root = repository(tmp_path, a="[x](../src/x.yaml) [src](../src) [more](more)\n", **{"more/c": "# C\n"})
    (root / "src").mkdir()
    (root / "src" / "x.yaml").write_text("a: ````\n")
    Sources(root, tmp_path / "out", ROWS).write()

    made = (tmp_path / "out" / "a.md").read_text()
    assert made == "[x](repository/src/x.yaml.md) [src](repository/src.md) [more](more/index.md)\n"
    assert "`````yaml\na: ````\n`````" in (tmp_path / "out" / "repository" / "src" / "x.yaml.md").read_text()
    assert "[x.yaml](src/x.yaml.md)" in (tmp_path / "out" / "repository" / "src.md").read_text()
    assert "- [C](c.md)" in (tmp_path / "out" / "more" / "index.md").read_text()


def test_the_menu_names_a_page_once() -> None:
    twice = [*ROWS, {"group": "Again", "pages": ["a"]}]

    with pytest.raises(PageError, match=r"docs/a\.md stands in the menu twice"):
        menu(["a", "index"], twice)


def test_rules_are_split_by_subject() -> None:
    made = split("# Rules\n\n## EFA\n\n### EFA001: One\n\nx\n\n## Shape\n\nCFG\n")

    assert set(made.pages) == {"rules", "rules/efa"}
    assert made.homes == {"efa001-one": "rules/efa"}
    assert "## EFA001: One" in made.pages["rules/efa"]
    assert "## Shape\n\nCFG" in made.pages["rules"]
