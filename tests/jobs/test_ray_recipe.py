"""Recipes on Ray: sized by model and type."""

from __future__ import annotations

import pytest
from rules_support import changed, environment_data, loaded

from ultracluster.jobs.ray_recipe import ray_recipes, recipe_words
from ultracluster.model import resolve
from ultracluster.model.job_fit import JobError, job_pool
from ultracluster.model.team_shares import Pool


def pool(kind: str, nodes: int = 64) -> Pool:
    changes = {"node_groups.train.instance_type": kind, "node_groups.train.count": nodes}
    return job_pool(resolve(loaded(changed(environment_data("eks-p5en"), changes)).environment), "train")


def words(kind: str, nodes: int, size: float) -> dict[str, str]:
    found = recipe_words(
        "verl-grpo", pool(kind), nodes, parameters=size, model="m", data="/d", job="a", checkpoints="/c"
    )
    assert found[:3] == ("python3", "-m", "verl.trainer.main_ppo")
    return dict(word.split("=", 1) for word in found[3:])


PARALLEL = "actor_rollout_ref.rollout.tensor_model_parallel_size"
OFFLOAD = "actor_rollout_ref.actor.fsdp_config.optimizer_offload"


@pytest.mark.parametrize(
    ("kind", "nodes", "size", "parallel", "offload"),
    [
        ("p4d.24xlarge", 1, 7e9, "1", "False"),  # 13 of 40 GiB
        ("p4d.24xlarge", 1, 14e9, "2", "True"),
        ("p5.48xlarge", 4, 70e9, "4", "True"),
        ("p5en.48xlarge", 16, 70e9, "2", "False"),
    ],
)
def test_rollout_and_training_share_a_gpu(
    kind: str, nodes: int, size: float, parallel: str, offload: str
) -> None:
    found = words(kind, nodes, size)
    assert (found[PARALLEL], found[OFFLOAD]) == (parallel, offload)
    assert (found["trainer.nnodes"], found["trainer.n_gpus_per_node"]) == (str(nodes), "8")


@pytest.mark.parametrize("size", [32e9, 70e9, 100e9])
def test_the_nodes_that_a_refusal_names_are_the_least(size: float) -> None:
    with pytest.raises(JobError, match=r"Use at least: --nodes \d+$") as refused:
        words("p4d.24xlarge", 1, size)
    least = int(str(refused.value).rpartition(" ")[2])
    words("p4d.24xlarge", least, size)
    if least > 2:
        with pytest.raises(JobError):
            words("p4d.24xlarge", least - 1, size)


def test_a_rollout_stays_on_a_node() -> None:
    with pytest.raises(JobError, match=r"a rollout has 192 GiB on a node of p4d\.24xlarge"):
        words("p4d.24xlarge", 64, 200e9)


def test_every_recipe_says_where_it_is_from() -> None:
    for row in ray_recipes().values():
        assert row["source"] and 0 < row["rollout_share"] < row["training_share"] < 1
        assert f"gpu_memory_utilization={row['rollout_share']}" in " ".join(row["arguments"])
