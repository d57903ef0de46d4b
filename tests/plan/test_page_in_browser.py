"""Pages of plans in a real browser."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, chromium
from page_judge import faults
from rules_support import environment_data, loaded

from ultracluster.cli.plan_text import merged_facts
from ultracluster.model import resolve
from ultracluster.plan.environment_plan import plan
from ultracluster.plan.page.markup import pill, sheet, tag
from ultracluster.plan.page.plan_page import plan_page
from ultracluster.rules import enforce

pytestmark = pytest.mark.slow

DAY = dt.date(2026, 11, 21)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(chromium()) as opened:
        yield opened


@pytest.mark.parametrize("name", ["prod", "parallelcluster-p5", "hyperpod-eks-p5"])
def test_a_plan_is_readable(browser: Browser, tmp_path: Path, name: str) -> None:
    found = loaded(environment_data(name))
    made = plan(resolve(found.environment), today=DAY, warnings=enforce(found))
    file = tmp_path / f"plan-{name}.html"
    file.write_text(plan_page(made, merged_facts(made), DAY), encoding="utf-8")

    assert list(faults(browser, file, least=150)) == []


BROKEN = {
    "contrast": tag("p", "pale", style="color: #bbbbbb; background: #ffffff"),
    "too wide": tag("p", tag("span", "x" * 400), style="overflow-wrap: normal"),
    "the page is": tag("div", "wide", style="width: 2000px"),
    "has scripts": tag("script", "var a = 1"),
    "the browser says": tag("p", "more", tag("script", "var a = 1")),
    "asks for": tag("img", alt="x", src="file:///nowhere.png"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_judge_sees_what_is_wrong(browser: Browser, tmp_path: Path, fault: str) -> None:
    """A page that is broken on purpose; the policy that keeps things out is told, too."""
    file = tmp_path / "broken.html"
    page = sheet("plan", "broken", "", BROKEN[fault], pill("good", "fine"))
    if fault == "asks for":
        page = page.replace("default-src 'none'", "default-src * file:").replace(
            "img-src data:", "img-src * file:"
        )
    file.write_text(page, encoding="utf-8")

    assert [one for one in faults(browser, file, least=1) if fault in one]
