"""What `--within` becomes, for jobs larger than an UltraServer and for types that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from project import ROOT

from ultracluster.config import load
from ultracluster.jobs.scripts.within import placement_note, placement_options
from ultracluster.jobs.training_job import PyTorchJob
from ultracluster.model import Cluster, resolve
from ultracluster.model.job_fit import job_pool


def job_of(name: str, within: str | None, nodes: int = 2) -> tuple[Cluster, PyTorchJob]:
    cluster = resolve(load(ROOT / "environments" / f"{name}.yaml").environment)
    pool = job_pool(cluster, None)
    asked = PyTorchJob(
        pool=pool, nodes=nodes, name="train", script="train.py", processes=1, priority="normal", within=within
    )
    return cluster, asked


def test_nothing_is_asked_where_nothing_is_wished() -> None:
    assert placement_options(*job_of("pcs-p6-b200", None)) == {}
    assert placement_note(*job_of("pcs-p6-b200", None)) == ""


def test_a_segment_is_the_whole_job_and_no_larger_than_an_ultraserver() -> None:
    cluster, job = job_of("parallelcluster-gb200", "ultraserver", 18)
    assert placement_options(cluster, job) == {"segment": "18"}
    assert placement_note(cluster, job) == ""
    with pytest.raises(ValueError, match=r"19 nodes do not fit into one UltraServer of at most 18"):
        placement_options(cluster, replace(job, nodes=19))


def test_a_switch_is_waited_for() -> None:
    cluster, job = job_of("parallelcluster-p5", "layer-3")
    assert placement_options(cluster, job) == {"switches": "1@24:00:00"}
    assert "max_switch_wait" in placement_note(cluster, job)


def test_what_would_be_ignored_is_refused() -> None:
    for name, within in (("pcs-p6-b200", "layer-3"), ("pcs-p6-b200", "ultraserver"), ("prod", "layer-2")):
        with pytest.raises(ValueError, match=r"would ignore|knows switches, not"):
            placement_options(*job_of(name, within))
