"""Tutorials do what they show: each page runs in a copy of a clone, as far as no account is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from iam_proof.environments import rows_for
from tutorials.page import FOLDER, PAGES, PageError, differs, read
from tutorials.run import run


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_does_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(read(path), tmp_path, monkeypatch)


def test_the_index_has_every_page() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in index] == []


MARK = "<!-- needs: account -->\n"
WAIT = f"## Wait (needs an account)\n{MARK}"


def test_what_a_closed_network_denies_is_asked_of_the_evaluator() -> None:
    """Rows of the page are rows of the tables, about prod; tests/security/evaluator asks them."""
    text = (FOLDER / "closed-network.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| What must be denied | by |\n|---|---|\n")
    shown = re.findall(r"^\| (.*?) \| (.*?) \|$", table.partition("\n\n")[0], re.MULTILINE)
    known = {row.row.removeprefix("closed. "): row for row in rows_for("prod") if row.table == "denied"}
    assert len(shown) > 5
    assert {title for title, _ in shown} <= known.keys()
    for_endpoints = {title for title, reason in shown if reason == "the endpoint's policy"}
    assert for_endpoints == {title for title, _ in shown if known[title].by == "vpce"}


GOOD = "# Page\n```console\n$ echo one; echo two\none\n...\n```\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD, ""),
        ("# Page\n```sh\nexport A=1\nmkdir x && cd x\n```\n```console\n$ echo $A; pwd\n1\n.../x\n```\n", ""),
        ("# Page\n```yaml\n# x/a.yaml\nb: 1\n```\n```console\n$ cat x/a.yaml\n# x/a.yaml\nb: 1\n```\n", ""),
        ("# Page\n```console\n$ false\n$ echo $?\n1\n```\n", ""),
        ("# Page\n```console\n$ cat \\\n  /dev/null\n```\n", ""),
        ("# Page\n```text\nnothing runs\n```\n", "no block of it runs"),
        (GOOD.replace("one\n...", "one"), "beyond what the page shows: two"),
        (GOOD.replace("one\n...", "two"), "expected: two"),
        ("# Page\n```console\n$ false\n```\n", "page.md:3: ended with 1"),
        ("# Page\n```sh\nfalse\ntrue\n```\n", "ended with 1"),
        (GOOD + "```yaml\na: 1\n```\n", "page.md:7: a block of yaml is no commands"),
        (GOOD + "```yaml\n# ../a.yaml\n```\n", "leaves the folder"),
        (GOOD + WAIT, "the last mark has no block"),
        (GOOD + WAIT + "```sh\n# a comment\ntrue\n```\n" + MARK + "```sh\ntrue\n```\n", ""),
        (GOOD + "```console\nno prompt\n```\n", "a session begins with"),
        (GOOD + "<!-- needs: luck -->\n```sh\nx\n```\n", "a mark is `needs: account|"),
        (GOOD + "<!-- needs: account -->\n```sh\nultracluster wait prod\n```\n", "heading does not say"),
        (GOOD + WAIT + "```sh\nultracluster wait prod\n```\n", ""),
        (GOOD + WAIT + "```sh\nultracluster wayt prod\n```\n", "there is no command 'wayt'"),
        (GOOD + WAIT + "so\n```sh\ntrue\n```\n", "right above its block"),
        (GOOD + WAIT + "```console\n$ true\nready\n```\n", "output that nothing has printed"),
    ],
)  # fmt: skip
def test_a_page_that_is_wrong_is_found(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    if not says:
        return run(read(page), tmp_path, monkeypatch)
    with pytest.raises(PageError) as error:
        run(read(page), tmp_path, monkeypatch)
    assert says in str(error.value)
    return None


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a  \n\n", True),
        ("", "", True),
        ("", "a", False),
        ("...", "", True),
        ("...\nb", "a\na\nb", True),
        ("a...c", "abc", True),
        ("a...c", "ab\nc", False),
        ("a\n...\nc\nd", "a\nb\nc\nx\nc\nd", False),
        ("[x] (y)", "[x] (y)", True),
    ],
)
def test_output_is_compared_line_by_line(shown: str, printed: str, same: bool) -> None:
    assert (differs(tuple(shown.splitlines()), printed) == "") == same
