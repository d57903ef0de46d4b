"""A program on Ray with training and rollout on the same nodes: its words, and whether its model fits.

Training holds 16 bytes for each parameter over all GPUs (`catalog/sizing.json`). A rollout holds the weights
in 16 bits, spread over some GPUs of a node. Both share a GPU by turns; where they do not fit beside each
other, training moves to the node's memory during a rollout.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import ultracluster.catalog
from ultracluster.model.checkpoints import state_gib
from ultracluster.model.job_fit import JobError
from ultracluster.model.team_shares import Pool

WEIGHT_BYTES = 2


def recipe_words(
    name: str, pool: Pool, nodes: int, *, parameters: float, model: str, data: str, job: str, checkpoints: str
) -> tuple[str, ...]:
    """The words of the program.

    Args:
        name: of the recipe.
        parameters: of the model.
        model: folder of its weights, or its name on Hugging Face.
        data: folder with train.parquet and test.parquet.
        job: its name.
        checkpoints: folder of checkpoints.

    Raises:
        JobError: there is no such recipe, or the model does not fit.
    """
    recipe = _recipe(name)
    accelerator = pool.instance_type.accelerator
    if pool.resource != "nvidia.com/gpu" or accelerator is None:
        raise JobError(
            f"--recipe {name} is for NVIDIA GPUs, and {pool.group} has {pool.instance_type.name}: use --group"
        )
    memory = accelerator.memory_gib / accelerator.count
    parallel = _parallel(pool, parameters, memory * recipe["rollout_share"])
    gpus = nodes * pool.per_node
    training = state_gib(parameters) / gpus
    if training > memory * recipe["training_share"]:
        least = -(-state_gib(parameters) // (memory * recipe["training_share"] * pool.per_node))
        raise JobError(
            f"{parameters / 1e9:g}B parameters take {training:.0f} GiB of each of {gpus} GPUs for training, "
            f"and one of {pool.instance_type.name} has {memory:.0f}. Use at least: --nodes {least:.0f}"
        )
    values = {
        "nodes": nodes,
        "gpus": pool.per_node,
        "parallel": parallel,
        "offload": training > memory * (1 - recipe["rollout_share"]),
        "model": model,
        "data": data,
        "name": job,
        "checkpoints": checkpoints,
    }
    return (*recipe["program"], *(argument.format(**values) for argument in recipe["arguments"]))


def _parallel(pool: Pool, parameters: float, memory: float) -> int:
    """The least number of GPUs of a node that holds the weights for rollouts."""
    weights = parameters * WEIGHT_BYTES / 2**30
    for count in (1, 2, 4, 8, 16):
        if count <= pool.per_node and pool.per_node % count == 0 and weights / count <= memory:
            return count
    raise JobError(
        f"the weights of {parameters / 1e9:g}B parameters are {weights:.0f} GiB, and a rollout has "
        f"{memory * pool.per_node:.0f} GiB on a node of {pool.instance_type.name}: "
        "--group with a larger type, or a smaller model"
    )


def _recipe(name: str) -> dict[str, Any]:
    known = ray_recipes()
    if name not in known:
        raise JobError(f"there is no recipe `{name}`: {', '.join(known)}")
    return known[name]


@cache
def ray_recipes() -> dict[str, dict[str, Any]]:
    """Recipes by name."""
    file = Path(ultracluster.catalog.__file__).with_name("ray_recipes.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    return {name: row for name, row in data.items() if name != "about"}
