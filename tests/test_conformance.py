"""Every intent under every orchestrator: a cluster that the authorities accept, or a documented refusal."""

from __future__ import annotations

import sys
from functools import cache

import pytest
from parallelcluster.explained import unexplained
from parallelcluster.rendered import validated
from project import ROOT
from templates import assembly

pytestmark = pytest.mark.slow

sys.path[:0] = [str(ROOT / "tools")]

import backends_page  # noqa: E402 (only once the folders are on the path)
from intents import KINDS, Cell, cells, intents  # noqa: E402

CELLS = [f"{intent}-{kind}" for intent in intents() for kind in KINDS]


@cache
def every() -> dict[str, Cell]:
    return {str(cell): cell for cell in cells()}


@pytest.mark.parametrize("cell", CELLS)
def test_it_is_a_cluster_that_every_authority_accepts_or_says_what_to_do_instead(cell: str) -> None:
    one = every()[cell]
    if one.refusals:
        for finding in one.refusals:
            assert finding.instead
            assert finding.message.endswith(".")
        return
    made = assembly(one.loaded.environment)
    assert made.findings == set()
    assert f"{one.loaded.environment.name}-cluster" in made.templates
    # an intent names the warnings that come with it
    assert {finding.code for finding in one.findings} <= set(one.intent.data.get("warns", ()))


def test_parallelcluster_itself_takes_its_cells() -> None:
    made = [one for one in every().values() if one.kind == "parallelcluster" and not one.refusals]
    environments = {str(one): one.loaded.environment for one in made}
    assert environments
    for name, found in validated(environments).items():
        assert unexplained(found, environments[name]) == [], name


def test_every_intent_can_be_had_somewhere_and_every_orchestrator_refuses_something() -> None:
    made = [one for one in every().values() if not one.refusals]
    refused = [one for one in every().values() if one.refusals]
    assert {one.intent.id for one in made} == {intent.id for intent in intents()}
    assert {one.kind for one in made} == {one.kind for one in refused} == set(KINDS)


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    assert written == backends_page.page(), "run `make generate`"
