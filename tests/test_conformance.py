"""Every intent under every orchestrator: a cluster that the authorities accept, or a documented refusal."""

from __future__ import annotations

import sys

import pytest
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from project import ROOT
from templates import assembly

pytestmark = pytest.mark.slow

sys.path[:0] = [str(ROOT / "tools")]

import backends_page  # noqa: E402 (only once the folders are on the path)
from intents import Cell, cells  # noqa: E402

CELLS = cells()
MADE = [cell for cell in CELLS if not cell.refusals]
REFUSED = [cell for cell in CELLS if cell.refusals]


@pytest.mark.parametrize("cell", MADE, ids=str)
def test_what_is_not_refused_is_a_cluster_that_every_authority_accepts(cell: Cell) -> None:
    made = assembly(cell.loaded.environment)
    assert made.findings == set()
    assert f"{cell.loaded.environment.name}-cluster" in made.templates


def test_parallelcluster_itself_takes_its_cells() -> None:
    environments = {str(cell): cell.loaded.environment for cell in MADE if cell.kind == "parallelcluster"}
    assert environments
    for name, found in validated(environments).items():
        assert unexplained(found, environments[name]) == [], name


@pytest.mark.parametrize("cell", MADE, ids=str)
def test_warnings_of_a_cell_are_expected(cell: Cell) -> None:
    """An intent names the warnings that come with it; no other may."""
    expected = set(cell.intent.data.get("warns", ()))
    assert {finding.code for finding in cell.findings} <= expected


@pytest.mark.parametrize("cell", REFUSED, ids=str)
def test_a_refusal_says_what_to_do_instead(cell: Cell) -> None:
    for finding in cell.refusals:
        assert finding.instead
        assert finding.message.endswith(".")


def test_every_intent_can_be_had_somewhere() -> None:
    assert {cell.intent.id for cell in MADE} == {cell.intent.id for cell in CELLS}


def test_every_orchestrator_can_do_something_and_refuses_something() -> None:
    assert {cell.kind for cell in MADE} == {cell.kind for cell in REFUSED} == {cell.kind for cell in CELLS}


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    assert written == backends_page.page(), "run `make generate`"
