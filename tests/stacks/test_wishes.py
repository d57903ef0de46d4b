"""Each wish has an environment that every authority accepts, a page, and prerequisites."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from project import ENVIRONMENTS, ROOT
from templates import assembly, cfn_lint
from wish_cases import FOLDER, OVERLAYS, Refusal, found_without, refusals, refusals_of

from ultracluster.catalog.wishes import wishes
from ultracluster.config import load
from ultracluster.rules import enforce


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_accepted_by_every_authority(overlay: str) -> None:
    loaded = load(ROOT / overlay)
    assert [finding.code for finding in enforce(loaded) if not finding.acknowledged] == []
    made = assembly(loaded.environment)
    assert made.findings == set()


def _judged(file: str) -> dict[tuple[str, str], Path]:
    """Templates of an environment by Region and by what cfn-lint judges: neither its name nor digests."""
    environment = load(ROOT / file).environment
    texts = {one: one.read_text(encoding="utf-8") for one in assembly(environment).files}
    return {
        (
            environment.region,
            re.sub(r"\b[0-9a-f]{12}([0-9a-f]{52})?\b", "", text.replace(environment.name, "NAME")),
        ): one
        for one, text in texts.items()
    }


def test_cfn_lint_accepts_every_overlay() -> None:
    """Once for templates that differ in nothing; test_environments.py has those of shipped environments."""
    different: dict[tuple[str, str], Path] = {}
    for overlay in OVERLAYS:
        different = _judged(overlay) | different
    for name in ENVIRONMENTS:
        for known in _judged(f"environments/{name}.yaml"):
            different.pop(known, None)
    files: dict[str, list[Path]] = defaultdict(list)
    for (region, _), file in different.items():
        files[region].append(file)
    assert len(files) > 1
    assert "".join(cfn_lint(some, region) for region, some in files.items()) == ""


def test_parallelcluster_itself_takes_its_overlays() -> None:
    environments = {overlay: load(ROOT / overlay).environment for overlay in OVERLAYS}
    own = {name: one for name, one in environments.items() if one.orchestrator.kind == "parallelcluster"}
    for name, found in validated(own).items() if own else ():
        assert unexplained(found, own[name]) == [], name


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
