"""Limits of ParallelCluster; tests/rules/test_parallelcluster.py compares them with the package's own."""

from __future__ import annotations

from ultracluster.catalog import instance_types
from ultracluster.catalog.parallelcluster import parallelcluster


def test_a_newer_release_never_needs_a_smaller_root_volume() -> None:
    limits = parallelcluster()
    sizes = [limits.root_volume_gib(release) for release in ("3.10.0", "3.14.0", "3.16.1")]
    assert sizes == sorted(sizes)


def test_more_nodes_need_a_larger_head_node() -> None:
    limits = parallelcluster()
    memory = [limits.head_memory_gb(nodes) for nodes in (1, 100, 1000)]
    assert memory == sorted(memory)


def test_families_are_of_the_catalogue() -> None:
    families = {one.family for one in instance_types().values()}
    assert parallelcluster().families.keys() <= families


def test_names() -> None:
    limits = parallelcluster()
    assert limits.names_problem("gpu") == ""
    assert limits.names_problem("GPU")
    assert all(limits.names_problem(name) for name in limits.names.reserved)
