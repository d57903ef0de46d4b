"""Whether AWS has published ParallelCluster's template, asked from the operator's machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from project import ROOT

from ultracluster.account.preflight import provider_template
from ultracluster.account.preflight.rows import Situation
from ultracluster.config import load
from ultracluster.model import resolve

URL = (
    "https://us-west-2-aws-parallelcluster.s3.us-west-2.amazonaws.com/parallelcluster/3.16.1/"
    "templates/custom_resource/cluster.yaml"
)


def silent(url: str) -> int:
    raise TimeoutError("timed out")


def rows(http_status: Callable[[str], int], name: str = "parallelcluster-p5") -> list[Any]:
    cluster = resolve(load(ROOT / "environments" / f"{name}.yaml").environment)
    situation = Situation(cast("Any", None), cluster, http_status=http_status)
    return [row for question in provider_template.questions(situation) for row in question.answer()]


@pytest.mark.parametrize(
    ("answer", "level"),
    [(200, "green"), (404, "red"), (403, "red"), (500, "unknown"), (301, "unknown")],
)
def test_what_the_address_answers(answer: int, level: str) -> None:
    asked: list[str] = []
    (row,) = rows(lambda url: asked.append(url) or answer)
    assert (row.level, asked) == (level, [URL])
    assert row.do if level == "red" else not row.do


def test_no_answer_is_not_known() -> None:
    (row,) = rows(silent)
    assert row.level == "unknown" and row.unread and "timed out" in row.found


@pytest.mark.parametrize("name", ["parallelcluster-gb200", "prod"])
def test_others_have_no_template(name: str) -> None:
    assert rows(silent, name) == []
