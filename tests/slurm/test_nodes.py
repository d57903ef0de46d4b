"""Nodes and partitions as slurm.conf and gres.conf have them."""

from __future__ import annotations

from typing import Any

from rules_support import changed, environment_data, loaded

from ultracluster.model import Cluster, resolve
from ultracluster.slurm.nodes import default_partition, gpu_type, node_lines, partition_settings

OTHER = {"role": "compute", "instance_type": "g6e.12xlarge", "count": 1, "partition": "other"}


def cluster(base: str, changes: dict[str, Any] | None = None) -> Cluster:
    return resolve(loaded(changed(environment_data(base), changes or {})).environment)


def test_a_line_names_what_jobs_ask_for() -> None:
    line = node_lines(cluster("prod"))["train"]

    assert (line.gres, line.gpu_files, line.nodes) == ("gpu:h200:8", "/dev/nvidia[0-7]", 16)
    neuron = node_lines(cluster("trainium"))["trn2"]
    assert (neuron.gres, neuron.gpu_files) == ("", "")
    assert gpu_type("RTX PRO 6000") == "rtxpro6000"


def test_the_first_compute_partition_is_the_default_unless_yours_is() -> None:
    assert default_partition(cluster("dev")) == "gpu"
    yours = {
        "node_groups.other": OTHER,
        "orchestrator.partitions": {"other": {"slurm_settings": {"default": "yes"}}},
    }
    assert default_partition(cluster("parallelcluster-p5", yours)) == "other"


def test_pcs_gives_whole_nodes_and_one_default() -> None:
    assert partition_settings(cluster("pcs-p6-b200"), "train") == {
        "MaxTime": "7-00:00:00", "OverSubscribe": "EXCLUSIVE", "Default": "YES",
    }  # fmt: skip
    yours = {"orchestrator.partitions.train.slurm_settings": {"exclusive": "NODE", "default": "NO"}}
    assert partition_settings(cluster("pcs-p6-b200", yours), "train") == {
        "exclusive": "NODE",
        "default": "NO",
    }
