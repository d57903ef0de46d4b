"""What preflight says of the sources of a release."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import environment_data, loaded

from ultracluster.account.preflight import Question, Row
from ultracluster.software import load_release
from ultracluster.supply import environment_lock, online, source_questions
from ultracluster.supply.downloads import Limits
from ultracluster.supply.online import Answer, SourceQuestion


def questions(name: str) -> list[Question]:
    return list(source_questions.questions(loaded(environment_data(name)).environment, Limits()))


def rows(monkeypatch: pytest.MonkeyPatch, name: str, *answers: Answer) -> list[Row]:
    components = tuple(dict.fromkeys(answer.component for answer in answers))

    def asked(*_: object, **options: Any) -> list[SourceQuestion]:
        assert set(components) <= set(options["needs"])
        return [SourceQuestion("the source", components, lambda: list(answers))]

    monkeypatch.setattr(online, "questions", asked)
    return [row for question in questions(name) for row in question.answer()]


def answer(state: Any, component: str = "enroot", detail: str = "words") -> Answer:
    return Answer(component, "file", state, detail)


@pytest.mark.parametrize(
    ("state", "level"),
    [
        ("proven", "green"),
        ("there", "green"),
        ("gone", "yellow"),
        ("differs", "yellow"),
        ("unanswered", "unknown"),
        ("not-asked", "unknown"),
    ],
)
def test_each_state_has_its_level(state: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = rows(monkeypatch, "pcs-p6-b200", answer(state))
    assert (row.level, row.found, row.unread) == (level, "words", False)


def test_the_worst_answer_of_a_source_is_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = rows(
        monkeypatch, "pcs-p6-b200", answer("proven"), answer("gone", detail="404"), answer("differs")
    )
    assert (row.level, row.found) == ("yellow", "404; 1 more")


@pytest.mark.parametrize(("sure", "level"), [(True, "red"), (False, "yellow")])
def test_a_source_without_which_nodes_fail_is_red(
    sure: bool, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where it is certain that the image lacks it: else nodes may have it already."""
    part = load_release("pcs-2026.07").components["lustre-client"]
    need = environment_lock.Need("lustre-client", part, frozenset({("ubuntu24.04", "x86_64")}), sure)
    monkeypatch.setattr(source_questions, "needs_of", lambda *_: [need])
    (row,) = rows(monkeypatch, "pcs-p6-b200", answer("gone", "lustre-client"))
    assert row.level == level


def test_a_mirror_asks_nobody() -> None:
    assert questions("prod") == []  # it has a mirror


def test_a_shipped_environment_asks_for_what_its_nodes_install() -> None:
    found = [question.what for question in questions("pcs-p6-b200")]
    assert "source of enroot" in found
    assert not [what for what in found if "neuron" in what]
