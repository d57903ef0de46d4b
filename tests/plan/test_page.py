"""The page of a plan: its numbers are those of `plan --json`; nothing in it acts or comes from elsewhere."""

from __future__ import annotations

import datetime as dt
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from project import ENVIRONMENTS, ROOT
from rules_support import changed, environment_data, loaded
from typer.testing import CliRunner, Result

from ultracluster.cli.plan import plan as command
from ultracluster.cli.plan_text import merged_facts
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import Plan, plan
from ultracluster.plan.page.markup import inline_svg, sheet, tag, words
from ultracluster.plan.page.plan_page import plan_page
from ultracluster.rules import enforce

DAY = dt.date(2026, 11, 21)
FACTORS = {"Tbit/s": 1000.0}
HOSTILE = '</style><script src="https://example.com/x.js">alert(1)</script>\u202e'


class Read(HTMLParser):
    """Elements of a page, and the text of its figures, in the order in which they stand."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.figures: list[tuple[str, float, str]] = []
        self.unknown: list[str] = []
        self._figure: tuple[str, float] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "data":
            self._figure = (str(given["data-of"]), float(str(given["value"])))
        if of := given.get("data-unknown"):
            self.unknown.append(of)

    def handle_data(self, data: str) -> None:
        if self._figure:
            self.figures.append((*self._figure, data))
            self._figure = None


@cache
def planned(name: str) -> Plan:
    return plan(resolve(loaded(environment_data(name)).environment), today=DAY)


@cache
def page(name: str) -> str:
    return plan_page(planned(name), merged_facts(planned(name)), DAY)


def at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[int(step)] if step.isdigit() else document[step]
    return document


def shown(text: str) -> float | None:
    """The number that a text shows; None where it is a word."""
    found = re.match(r"([\d,.]+)(?: (\S+))?", text)
    return float(found[1].replace(",", "")) * FACTORS.get(found[2], 1) if found else None


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_numbers_are_those_of_json(name: str) -> None:
    document = json.loads(json.dumps(planned(name).document()))
    read = Read(page(name))

    assert {"accelerators", "cost.per_month"} <= {of for of, *_ in read.figures} | set(read.unknown)
    for of, value, text in read.figures:
        told = at(document, of)
        assert value == pytest.approx(told, rel=1e-9), of
        number = shown(text)
        if number is None:
            assert (value, text) in ((0, "-"), (0, "Nothing to install")), of
        else:
            assert number == pytest.approx(told, rel=0.006), (of, text)
    assert [of for of in read.unknown if at(document, of) is not None] == []
    everything = {of for of, *_ in read.figures} | set(read.unknown)
    assert {f"quotas.{place}.amount" for place in range(len(document["quotas"]))} <= everything
    assert {f"cost.parts.{place}.per_month" for place in range(len(document["cost"]["parts"]))} <= everything


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nothing_acts_and_nothing_comes_from_elsewhere(name: str) -> None:
    tags = Read(page(name)).tags

    assert {"script", "link", "iframe", "object", "form", "base"}.isdisjoint(tag for tag, _ in tags)
    links = [str(given[key]) for _, given in tags for key in ("href", "src") if key in given]
    assert [one for one in links if not one.startswith(("#", "data:image/"))] == []
    assert not [key for _, given in tags for key in given if key.startswith("on")]
    assert "url(" not in page(name).replace("url(#arrow)", "")
    ids = [given["id"] for _, given in tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_bars_of_estimates_are_hatched_and_those_of_current_prices_solid() -> None:
    classes = [given.get("class") for tag, given in Read(page("parallelcluster-p5")).tags if tag == "span"]
    assert {"solid nodes", "hatched storage", "more nodes"} <= set(classes)
    assert not {one for one in classes if one == "hatched"}
    only = [str(given.get("class")) for tag, given in Read(page("prod")).tags if tag == "span"]
    assert not [one for one in only if one.startswith(("solid ", "more "))]  # no price of it is current


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("dev", {}, ("not protected", "Nothing to install")),
        ("prod", {}, ("closed network", "train: joins degraded", "goes without", "accepted because")),
        ("prod", {"acknowledge": []}, ("2 open warnings",)),
    ],
)
def test_the_state_is_said_at_the_top(name: str, changes: dict[str, Any], says: tuple[str, ...]) -> None:
    found = loaded(changed(environment_data(name), changes))
    made = plan(resolve(found.environment), today=DAY, warnings=enforce(found))
    text = plan_page(made, merged_facts(made), DAY)
    assert [one for one in says if one not in text] == []


def test_the_same_plan_is_the_same_page() -> None:
    made = planned("prod")
    assert plan_page(made, merged_facts(made), DAY) == page("prod")


def test_text_from_outside_is_text() -> None:
    text = sheet("plan", HOSTILE, HOSTILE, tag("p", HOSTILE, title=HOSTILE), words(f"`{HOSTILE}`"))
    read = Read(text)

    assert "script" not in {name for name, _ in read.tags}
    assert "\u202e" not in text
    assert "\\u202e" in text


def test_children_stand_in_the_order_in_which_they_were_given() -> None:
    made = tag("p", "a", tag("b", "c"), None, "d", ["e", tag("i")], "f", hidden=True, lang=False)

    assert made.text == "a"
    assert [(one.tag, one.text, one.tail) for one in made] == [("b", "c", "de"), ("i", None, "f")]
    assert made.attrib == {"hidden": ""}


def test_a_drawing_has_no_size_of_its_own_on_a_page() -> None:
    made = inline_svg('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><g><a/></g></svg>')
    assert (made.tag, made[0].tag, made[0][0].tag, made.attrib) == ("svg", "g", "a", {})


def run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(ROOT / "environments" / "dev.yaml"), *arguments])


def test_the_command_writes_one_file(tmp_path: Path) -> None:
    file = tmp_path / "dev.html"
    result = run("--html", str(file), "--json", "--today", str(DAY))

    assert result.exit_code == 0
    assert json.loads(result.stdout)["name"] == "dev"
    assert Read(file.read_text(encoding="utf-8")).figures == Read(page("dev")).figures
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "says"), [("dev.pdf", "ends in .html"), ("none/dev.html", "cannot be written")]
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, name: str, says: str) -> None:
    result = run("--html", str(tmp_path / name))

    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.iterdir())
