"""The file for the `pcluster` command among what `ultracluster diff` compares."""

from __future__ import annotations

from typing import Any

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.change import Change, blast_radius
from ultracluster.change.comparison import Comparison
from ultracluster.cli.pcluster_file import add_pcluster_files
from ultracluster.config import Environment

GB200 = "parallelcluster-gb200"


def environment(changes: dict[str, Any], base: str = GB200) -> Environment:
    return loaded(changed(environment_data(base), changes)).environment


def compared(changes: dict[str, Any], base: str = GB200) -> list[Change]:
    found = Comparison("old", "new", {}, {}, files=(environment({}, base), environment(changes, base)))
    add_pcluster_files(found)
    return blast_radius(found.before, found.after)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"node_groups.head.instance_type": "m7g.8xlarge"}, "refused", "keeps its instance type"),
        ({"orchestrator.scaledown_minutes": 5}, "needs scale-to-zero", f"--cluster-name {GB200} --region"),
        ({"node_groups.gb200.root_volume_gib": 300}, "rolling", "after their jobs"),
        ({"node_groups.login.count": 2}, "in place", "login nodes"),
    ],
)
def test_a_changed_file_says_what_it_takes(changes: dict[str, Any], verdict: str, words: str) -> None:
    (change,) = compared(changes)
    assert (change.stack, change.logical_id) == (f"{GB200}.pcluster.yaml", "Cluster")
    assert change.verdict == verdict
    assert words in change.reason


def test_an_unchanged_file_and_a_cluster_of_cloudformation_say_nothing() -> None:
    assert compared({}) == []
    assert compared({"orchestrator.scaledown_minutes": 5}, "parallelcluster-p5") == []
    unknown = Comparison("old", "new", {}, {})
    add_pcluster_files(unknown)
    assert unknown.after == {}
