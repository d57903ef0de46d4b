"""Each wish has an environment that every authority accepts, a page, and prerequisites."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from excerpts import Excerpts
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from project import ENVIRONMENTS, ROOT
from rows import for_each
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


def test_cfn_lint_accepts_every_overlay(tmp_path: Path) -> None:
    """Of each resource once; test_environments.py has those of shipped environments."""
    excerpts = Excerpts()
    for name in ENVIRONMENTS:
        list(_new(excerpts, f"environments/{name}.yaml", tmp_path))
    files: dict[str, list[Path]] = defaultdict(list)
    for overlay in OVERLAYS:
        for region, file in _new(excerpts, overlay, tmp_path / Path(overlay).stem):
            files[region].append(file)
    assert len(files) > 1
    assert "".join(cfn_lint(some, region) for region, some in files.items()) == ""


def _new(excerpts: Excerpts, file: str, folder: Path) -> Iterator[tuple[str, Path]]:
    environment = load(ROOT / file).environment
    folder.mkdir(exist_ok=True)
    for one in assembly(environment).files:
        if written := excerpts.write_new(one, environment.region, environment.name, folder):
            yield environment.region, written


def test_a_mistake_in_a_resource_of_a_shipped_environment_is_found(tmp_path: Path) -> None:
    environment = load(ROOT / "environments" / "dev.yaml").environment
    file = next(one for one in assembly(environment).files if one.name == "dev-storage.template.json")
    text = file.read_text(encoding="utf-8")
    excerpts = Excerpts()
    assert excerpts.new_in(json.loads(text), environment.region, environment.name)
    other = tmp_path / "other.template.json"
    other.write_text(text)
    assert excerpts.write_new(other, environment.region, environment.name, tmp_path) is None
    other.write_text(text.replace('"StorageCapacity"', '"StorageCapacty"'))
    written = excerpts.write_new(other, environment.region, environment.name, tmp_path)
    assert written
    assert 1 < len(json.loads(written.read_text())["Resources"]) < len(json.loads(text)["Resources"])
    assert "StorageCapacty" in cfn_lint([written], environment.region)


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


@for_each("refusal", refusals(), ids=str)
def test_without_a_documented_prerequisite_it_is_refused(refusal: Refusal) -> None:
    found = found_without(wishes()[refusal.wish], refusal)
    assert refusal.rule in {finding.code for finding in found}


def test_every_file_belongs_to_a_wish() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} <= set(wishes())
    on_disk = {str(file.relative_to(ROOT)) for file in (ROOT / "environments" / "wishes").glob("*.yaml")}
    assert on_disk <= set(OVERLAYS)
