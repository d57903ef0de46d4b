"""Runbooks: one for each alert, with commands, units and links that exist."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from command_tree import commands, option_names
from project import ROOT

from tools import runbooks_page
from ultracluster.metrics.alert import alerts
from ultracluster.metrics.facts import HAVES, Facts

pytestmark = pytest.mark.slow

FOLDER = ROOT / "docs" / "runbooks"
PAGES = sorted(FOLDER.glob("*.md"))
ALERTS = {alert.name: alert for alert in alerts()}
FACTS = Facts(
    cluster="prod",
    environment="prod",
    haves=frozenset(HAVES),
    scrape_seconds=30,
    accelerators=("H100",),
    most_drained_percent=10,
    series_budgets={"gpu": 2000},
    runbooks="docs/runbooks",
)
LATER = {"docs/events.md", "docs/metrics-nodes.md", "docs/metrics-kubernetes.md", "docs/training-metrics.md"}
"""Pages that are written beside these."""


@cache
def words() -> dict[tuple[str, ...], set[str]]:
    return {tuple(name.split()): option_names(command) for name, command in commands()}


def check(command: str) -> None:
    """That a line of ours names a command that there is, and options that it has."""
    _, *rest = shlex.split(command)
    plain = [one for one in rest if not one.startswith("-")]
    known = next((name for size in (2, 1) if (name := tuple(plain[:size])) in words()), None)
    assert known, f"no such command: {command}"
    options = {one.partition("=")[0] for one in rest if one.startswith("-")}
    assert options <= words()[known] | {"--help"}, command


def ours(text: str) -> list[str]:
    return [one for one in re.findall(r"`([^`]+)`", text) if one.split()[0] == "ultracluster"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_links_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    for command in ours(text):
        check(command)
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        place = (page.parent / link).resolve()
        assert place.exists() or str(place.relative_to(ROOT)) in LATER, link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_units_are_those_of_the_nodes(page: Path) -> None:
    for unit in re.findall(r"(?<![\w/])ultracluster-[a-z-]+(?=[ `])", page.read_text(encoding="utf-8")):
        assert unit == "ultracluster-state" or unit in _units(), unit


@cache
def _units() -> set[str]:
    scripts = "".join(
        file.read_text(errors="replace")
        for file in (ROOT / "lifecycle_scripts").rglob("*")
        if file.is_file() and file.suffix in ("", ".sh", ".service", ".py")
    )
    return set(re.findall(r"\bultracluster-[a-z-]+[a-z](?=\.(?:service|timer))", scripts))


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda one: one.name)
def test_each_page_says_what_whom_how_and_when_to_ask(alert: object) -> None:
    name, severity = alert.name, alert.severity  # type: ignore[attr-defined]
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")

    assert text.startswith(f"# {name}\n\n*{severity}: ")
    assert "**Who is hit.** " in text
    assert re.search(r"^1\. ", text.partition("## What to run, in this order\n")[2], flags=re.M)
    assert "## When to escalate\n" in text
    assert "\nSource: " in text


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda one: one.name)
def test_the_first_command_of_a_message_exists(alert: object) -> None:
    run = FACTS.filled(alert.run)  # type: ignore[attr-defined]

    if run.startswith("ultracluster "):
        check(re.sub(r"\{\{.*?\}\}", "x", run))


def test_the_list_is_as_the_tool_writes_it() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == runbooks_page.page(), "run `make generate`"
    assert {page.stem for page in PAGES} - {"README"} == ALERTS.keys()
