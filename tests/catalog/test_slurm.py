"""The facts of Slurm's settings."""

from __future__ import annotations

import pytest

from ultracluster.catalog.slurm import (
    cgroup_settings,
    hyperpod_slurm,
    parallelcluster_slurm_version,
    slurm_settings,
    word_lists,
    words,
)


def test_the_facts_are_whole() -> None:
    rows = (*slurm_settings(), *cgroup_settings())
    names = {row.name for row in rows}
    assert all(row.who and row.why and row.source for row in rows)
    assert {row.lead for row in rows} - {""} <= names
    assert {"schedulerparameters", "prologflags"} <= word_lists()
    denied = {name.lower() for name in hyperpod_slurm().denied}
    ours = {row.name.lower() for row in rows if row.who.get("hyperpod-slurm") in ("ours", "keep")}
    assert not denied & ours


@pytest.mark.parametrize(
    ("release", "slurm"), [("3.13.2", "23.11"), ("3.14.0", "24.11"), ("3.16.3", "25.11"), ("2.11.0", "23.11")]
)
def test_parallelcluster_brings_a_release_of_slurm(release: str, slurm: str) -> None:
    assert parallelcluster_slurm_version(release) == slurm


def test_words_are_read_from_a_list() -> None:
    assert words('"bf_continue, bf_window=60,"') == ("bf_continue", "bf_window=60")
