"""Each wish has an environment that every authority accepts, a page, and prerequisites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from project import ROOT
from templates import cfn_lint, synthesise
from wish_cases import FOLDER, OVERLAYS, Refusal, found_without, refusals, refusals_of

from ultracluster.catalog.wishes import field_names, wishes
from ultracluster.config import load
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.rules import enforce

KINDS: tuple[OrchestratorKind, ...] = get_args(OrchestratorKind)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_accepted_by_every_authority(overlay: str, tmp_path: Path) -> None:
    loaded = load(ROOT / overlay)
    assert [finding.code for finding in enforce(loaded) if not finding.acknowledged] == []
    made = synthesise(loaded.environment, tmp_path)
    assert made.findings == set()
    files = [str(file) for file in tmp_path.glob("*.template.json")]
    assert cfn_lint(files, loaded.environment.region) == ""


def test_parallelcluster_itself_takes_its_overlays() -> None:
    environments = {overlay: load(ROOT / overlay).environment for overlay in OVERLAYS}
    own = {name: one for name, one in environments.items() if one.orchestrator.kind == "parallelcluster"}
    for name, found in validated(own).items() if own else ():
        assert unexplained(found, own[name]) == [], name


@pytest.mark.parametrize("name", wishes())
def test_a_wish_is_answered_by_every_orchestrator_and_had_by_that_of_its_overlay(name: str) -> None:
    wish = wishes()[name]
    assert set(wish.answers) == set(KINDS)
    assert all(answer in ("yes", "partly", "no") for answer, _, _ in wish.answers.values())
    assert all(len(words) > 5 and len(source) > 5 for _, words, source in wish.answers.values())
    kind = load(ROOT / wish.overlay).environment.orchestrator.kind
    assert wish.answers[kind][0] != "no"


@pytest.mark.parametrize("name", wishes())
def test_its_page_says_how_to_use_it_and_what_is_billed(name: str) -> None:
    wish = wishes()[name]
    text = (ROOT / wish.page).read_text(encoding="utf-8")
    assert wish.overlay in text
    assert re.search(r"\bbill(s|ed)?\b|\bfree\b|costs? nothing", text), "what AWS bills"


@pytest.mark.parametrize("name", wishes())
def test_something_is_documented_as_required(name: str) -> None:
    assert refusals_of(name), "the wish is refused without nothing: name a prerequisite"


@pytest.mark.parametrize("refusal", refusals(), ids=str)
def test_without_a_documented_prerequisite_it_is_refused(refusal: Refusal) -> None:
    found = found_without(wishes()[refusal.wish], refusal)
    assert refusal.rule in {finding.code for finding in found}


def test_every_file_belongs_to_a_wish() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} <= set(wishes())
    on_disk = {str(file.relative_to(ROOT)) for file in (ROOT / "environments" / "wishes").glob("*.yaml")}
    assert on_disk <= set(OVERLAYS)


def test_names_of_the_field_are_answered_once_each() -> None:
    names = [row.name for row in field_names()]
    assert len(names) == len(set(names))
    assert all(row.how in ("supported", "container", "out of scope") for row in field_names())
    assert all(row.words.endswith(".") and row.source for row in field_names())
