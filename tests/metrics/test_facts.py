"""What rules know of a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from metrics_fleet import observed

from ultracluster.metrics.facts import HAVES, facts_of


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        (
            "prod",
            {"gpu", "efa", "lustre", "lustre-efa", "slurm", "health", "release"},
            {"neuron", "kubernetes"},
        ),
        ("eks-p5en", {"gpu", "efa", "lustre", "kubernetes"}, {"slurm", "health", "release", "neuron"}),
        ("trainium", {"neuron", "efa", "slurm"}, {"gpu", "kubernetes"}),
    ],
)
def test_a_cluster_has_what_its_groups_have(name: str, has: set[str], lacks: set[str]) -> None:
    facts = facts_of(observed(name), runbooks="docs/runbooks/")

    assert has <= facts.haves <= HAVES.keys()
    assert not lacks & facts.haves
    assert facts.runbooks == "docs/runbooks"


def test_values_are_filled_in_and_unknown_ones_refused() -> None:
    facts = facts_of(observed("prod"), runbooks="docs/runbooks")

    assert facts.filled("a[<<window>>] <<xid_requeue>>") == "a[120s] 94"
    with pytest.raises(KeyError, match="nothing"):
        facts.filled("<<nothing>>")


def test_each_group_has_its_own_budget() -> None:
    facts = facts_of(observed("prod"), runbooks="docs/runbooks")

    for group, budget in facts.series_budgets.items():
        assert (
            f'scrape_samples_post_metric_relabeling{{node_group="{group}"}}) > {budget}'
            in facts.values["over_budget"]
        )


@pytest.mark.parametrize(("seconds", "stale"), [(15, "300"), (30, "300"), (240, "720")])
def test_a_file_is_old_after_three_rounds(seconds: int, stale: str) -> None:
    """With a round each 240 seconds a file of the last round is nine minutes old before the next is seen."""
    facts = replace(facts_of(observed("prod"), runbooks="docs/runbooks"), scrape_seconds=seconds)

    assert facts.values["stale_seconds"] == stale
