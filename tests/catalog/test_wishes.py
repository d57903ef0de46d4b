"""Wishes and names of the field: each is answered, with a source."""

from __future__ import annotations

from typing import get_args

import pytest
from project import ROOT

from ultracluster.catalog.wishes import field_names, wishes
from ultracluster.config import load
from ultracluster.config.orchestrator import OrchestratorKind

KINDS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)


@pytest.mark.parametrize("name", wishes())
def test_a_wish_is_answered_by_every_orchestrator_and_had_by_that_of_its_overlay(name: str) -> None:
    wish = wishes()[name]
    assert set(wish.answers) == set(KINDS)
    assert all(answer in ("yes", "partly", "no") for answer, _, _ in wish.answers.values())
    assert all(len(words) > 5 and len(source) > 5 for _, words, source in wish.answers.values())
    kind = load(ROOT / wish.overlay).environment.orchestrator.kind
    assert wish.answers[kind][0] != "no"


def test_names_of_the_field_are_answered_once_each() -> None:
    names = [row.name for row in field_names()]
    assert len(names) == len(set(names))
    assert all(row.how in ("supported", "container", "out of scope") for row in field_names())
    assert all(row.words.endswith(".") and row.source for row in field_names())
