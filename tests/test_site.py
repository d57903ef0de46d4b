"""The documentation as a site: every page has its place, every task is near, nothing is loaded from afar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Browser, chromium
from page_judge import faults
from processes import until
from project import ROOT

from tools.docs_site.__main__ import build, pages
from tools.docs_site.links import anchors
from tools.docs_site.navigation import PageError

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
TASKS = {
    "see what it is": "repository/README",
    "compare the orchestrators": "backends",
    "estimate the cost": "cost",
    "bring a file of another tool": "coming-from",
    "write a first file": "environment-files",
    "read a plan": "plan",
    "deploy": "commands",
    "see how it is made": "architecture",
    "start a repository of my own": "own-repository",
    "fix what a rule says": "rules",
    "fix FSX002": "rules/fsx",
    "ask for quotas": "preflight",
    "find capacity": "capacity",
    "look up a key of the file": "environment-reference",
    "look up a word": "glossary",
    "set up HyperPod with Slurm": "hyperpod",
    "set up HyperPod on EKS": "hyperpod-eks",
    "set up ParallelCluster": "parallelcluster",
    "set up PCS": "pcs",
    "set up EKS": "eks",
    "find what is wrong": "troubleshooting",
    "see what a change destroys": "blast-radius",
    "meet the company's rules": "company-accounts",
    "add a step to nodes": "own-steps",
    "add a person": "users",
    "add a team": "teams-slurm",
    "watch a cluster": "observability-setup",
    "move to another zone": "moving",
    "upgrade": "upgrading",
    "try it without an account": "tutorials/nothing-to-prod",
    "run a first job on Slurm": "tutorials/first-job-slurm",
    "run a first job on Kubernetes": "tutorials/first-job-kubernetes",
    "submit a job": "jobs",
    "use a framework": "frameworks",
    "practise a bad node": "tutorials/bad-node",
    "build my own app": "tutorials/own-constructs",
    "run a job on Slurm": "slurm-jobs",
    "run a job on Kubernetes": "kubernetes",
    "open an editor on a node": "ssh",
    "submit my folder": "working-folders",
    "find why a step is slow": "observability",
    "answer an alert": "runbooks/GpuXidReplace",
    "replace a node": "operations",
    "find a known failure": "known-failures",
    "use a construct in my app": "constructs",
    "look up an option": "commands-reference",
    "look up an argument": "constructs-reference",
    "review rights": "permissions",
    "review protection": "security",
    "get notebooks": "wishes/spaces",
    "read why a stack is cut as it is": "decisions/0008-stacks-are-cut-by-what-is-slow",
}
"""What people come for, and the page that does it: at most two links from the start page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder / "site", folder / "work", jobs="1")
    return folder / "site"


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def followed(file: Path, *, part: str = "") -> set[Path]:
    """Pages that a page links to; with `part`, only from its inner part of that element."""
    text = text_of(file)
    if part:
        text = text.partition(f"<{part}")[2].partition(f"</{part}>")[0]
    targets = re.findall(r'<a\s[^>]*?href="([^"#:]+\.html)', text)
    return {(file.parent / target).resolve() for target in targets}


def clicks(site: Path, *, part: str = "") -> dict[str, int]:
    """How many links each page is from the start page."""
    there = [site / "index.html"]
    found = {there[0]: 0}
    while there:
        page = there.pop(0)
        for target in followed(page, part=part):
            if target not in found and target.is_file():
                found[target] = found[page] + 1
                there.append(target)
    return {page.relative_to(site).with_suffix("").as_posix(): number for page, number in found.items()}


def test_every_task_is_two_clicks_away(site: Path) -> None:
    near = clicks(site, part="article")

    assert {task: near.get(page) for task, page in TASKS.items() if near.get(page, 9) > 2} == {}


def test_every_page_can_be_reached(site: Path) -> None:
    near = clicks(site)
    names = [page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")]

    assert [name for name in names if name not in near] == []
    assert [file for file in site.rglob("*.html") if len(text_of(file)) < 500] == []


def test_the_menu_of_each_page_marks_that_page(site: Path) -> None:
    """Pages beside each other share a menu; each says where it is, and has no link to itself."""
    wrong: list[str] = []
    for file in (
        site / page.relative_to(DOCS).with_suffix(".html")
        for page in DOCS.rglob("*.md")
        if page.stem != "index"
    ):
        menu = text_of(file).partition('<div class="sidebar-tree">')[2].partition("</aside>")[0]
        marks = len(re.findall(r'current-page"><a class="current reference internal" href="#">', menu))
        if marks != 1:
            wrong.append(f"{file.relative_to(site)}: {marks}")
        if file.name in re.findall(r'href="([^"/]*")', menu):
            wrong.append(f"{file.relative_to(site)}: a link to itself")

    assert wrong == []


def test_nothing_is_loaded_from_elsewhere_and_all_of_it_is_there(site: Path) -> None:
    wrong: list[str] = []
    for file in site.rglob("*.html"):
        for tag, target in re.findall(
            r'<(link|script|img|iframe|source)\s[^>]*?(?:src|href)="([^"]*)"', text_of(file)
        ):
            if (
                not target.startswith(("data:", "#"))
                and not (file.parent / re.sub(r"[?#].*", "", target)).is_file()
            ):
                wrong.append(f"{file.relative_to(site)}: {tag} {target}")
    for sheet in site.rglob("*.css"):
        wrong += [
            f"{sheet.name}: {url}"
            for url in re.findall(r"url\(\s*[\"']?(https?:[^)]*|//[^)]*)", text_of(sheet))
        ]

    assert wrong == []


def test_links_lead_to_pages_and_headings(site: Path) -> None:
    wrong: list[str] = []
    ids = cache(lambda file: set(re.findall(r'\sid="([^"]+)"', text_of(file))))
    for file in site.rglob("*.html"):
        for target, anchor in set(re.findall(r'<a\s[^>]*?href="([^":#]*)(?:#([^"]*))?"', text_of(file))):
            there = (file.parent / target).resolve() if target else file
            if not there.is_file() or (anchor and there.suffix == ".html" and anchor not in ids(there)):
                wrong.append(f"{file.relative_to(site)}: {target}#{anchor}")

    assert wrong == []


def test_old_links_to_a_rule_still_lead_to_it(site: Path) -> None:
    """Each heading of docs/rules.md is an anchor of that page of the site, which names the rule's own."""
    text = text_of(DOCS / "rules.md")
    rules = text_of(site / "rules.html")

    assert {anchor for anchor in anchors(text) if f'id="{anchor}"' not in rules} == set()
    assert 'id="FSX002"' in text_of(site / "rules" / "fsx.html")
    assert len(
        re.findall(r'id="[A-Z]{3,4}\d{3}"', "".join(map(text_of, (site / "rules").glob("*.html"))))
    ) == len(re.findall(r"^### [A-Z]+\d+:", text, re.MULTILINE))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")

    with pytest.raises(PageError, match="is no site: name another folder"):
        build(tmp_path, tmp_path / "work")

    assert (tmp_path / "mine.txt").is_file()


def test_a_warning_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "index.md").write_text("# A\n\n```nolanguage\nx\n```\n")

    with pytest.raises(PageError, match=r"^index\.md:3: WARNING: .*nolanguage"):
        pages(sources, tmp_path / "site", tmp_path / "trees")


SCROLLS = ".highlight, .table-wrapper, .diagram, .toc-drawer, .sidebar-drawer"
"""What is wider than a telephone, and scrolls by itself, or waits beside the page."""
JUDGED = {"index": 40, "rules/mnt": 30, "runbooks/GpuXidReplace": 20}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(chromium()) as opened:
        yield opened


@pytest.mark.parametrize("page", JUDGED)
def test_a_page_is_readable(browser: Browser, site: Path, page: str) -> None:
    found = faults(browser, site / f"{page}.html", least=JUDGED[page], site=site, scrolled=SCROLLS)

    assert list(found) == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_diagram_is_drawn_without_a_network(browser: Browser, site: Path, dark: bool) -> None:
    page = next(file for file in site.rglob("*.html") if 'class="mermaid"' in text_of(file))
    browser.open(page, 1440, dark=dark)
    until(lambda: browser.ask("document.documentElement.dataset.diagrams === 'drawn'"))

    assert browser.ask("document.querySelectorAll('.diagram svg .node').length") >= 5
    assert [url for url in browser.requests if not url.startswith(("data:", f"{site.as_uri()}/"))] == []
    assert browser.complaints == []


SEARCHED = {
    "FSX002": "rules/fsx.html#fsx002-",
    "EFA": "wishes/efa-dra.html",
    "job write": "commands-reference.html#ultracluster-job-write",
}
"""What is typed, and a page that must be among the first three answers."""


@pytest.mark.parametrize("words", SEARCHED)
def test_the_search_finds(browser: Browser, site: Path, words: str) -> None:
    browser.open(site / "search.html", 1440, query=f"q={words.replace(' ', '+')}")
    heading = "document.querySelector('#search-results h2')?.textContent"
    until(lambda: browser.ask(heading) == "Search Results")
    first = browser.ask(
        "[...document.querySelectorAll('#search-results li a')].slice(0, 3).map((one) => one.href)"
    )

    assert any(f"{site.as_uri()}/{SEARCHED[words]}" in one for one in first), first
    assert browser.complaints == []
