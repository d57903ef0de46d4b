"""One page for each orchestrator: the same parts in the same order, and nothing that the code denies."""

from __future__ import annotations

import re

import pytest
from project import ROOT
from ruamel.yaml import YAML

from ultracluster.catalog.eks import node_group_limits
from ultracluster.catalog.hyperpod_eks import hyperpod_kubernetes_window
from ultracluster.config.loader import Source, parse
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS
from ultracluster.plan.choice import comparison
from ultracluster.rules import all_rules, check

DOCS = ROOT / "docs"
PAGES: dict[OrchestratorKind, str] = {
    "hyperpod-slurm": "hyperpod",
    "hyperpod-eks": "hyperpod-eks",
    "parallelcluster": "parallelcluster",
    "pcs": "pcs",
    "eks": "eks",
}
PARTS = [
    "When to take it",
    "The smallest file",
    "What we make",
    "What AWS makes",
    "Updates",
    "What is lost",
    "Limits",
    "What was never shown",
]
"""In this order; a page may have others between them."""


def text(kind: OrchestratorKind) -> str:
    return (DOCS / f"{PAGES[kind]}.md").read_text(encoding="utf-8")


def part(kind: OrchestratorKind, heading: str) -> str:
    return re.split(r"^## ", text(kind).partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


def test_every_orchestrator_has_a_page() -> None:
    assert PAGES.keys() == TRAITS.keys()


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_has_every_part_in_its_order(kind: OrchestratorKind) -> None:
    headings = re.findall(r"^## (.+)$", text(kind), re.MULTILINE)

    assert [one for one in headings if one in PARTS] == PARTS
    assert all(part(kind, one).strip() for one in PARTS)


@pytest.mark.parametrize("kind", PAGES)
def test_the_smallest_file_breaks_no_rule(kind: OrchestratorKind) -> None:
    block = re.search(r"```yaml\n(.*?)```", part(kind, "The smallest file"), re.DOTALL)
    assert block
    found = parse(Source("small.yaml", data=YAML(typ="safe").load(block[1])))
    findings = check(found)

    assert found.environment.orchestrator.kind == kind
    assert [one for one in findings if one.severity == "error"] == []
    for one in findings:
        assert one.code in part(kind, "The smallest file"), f"the page is silent on {one.code}"


@pytest.mark.parametrize("kind", PAGES)
def test_when_to_take_it_is_what_choose_says(kind: OrchestratorKind) -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| (yes|partly|no) \| (.+) \|$", part(kind, "When to take it"), re.MULTILINE
    )
    said = {row[kind].title: (row[kind].answer, row[kind].words) for row in comparison().values()}

    assert len(rows) >= 5
    for title, answer, words in rows:
        assert said[title] == (answer, words)


def test_figures_of_limits_are_the_catalogues() -> None:
    groups, nodes = node_group_limits()
    assert f"{groups} managed node groups in a cluster and {nodes} nodes in a group" in part("eks", "Limits")
    window = hyperpod_kubernetes_window()
    assert f"Kubernetes {window[0]} to {window[1]}" in part("hyperpod-eks", "Limits")


def test_every_rule_that_a_page_names_is_there() -> None:
    known = {rule.id for rule in all_rules()}
    for kind in PAGES:
        assert set(re.findall(r"\b[A-Z]{3}\d{3}\b", text(kind))) <= known, kind
