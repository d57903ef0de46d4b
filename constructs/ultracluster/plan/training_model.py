"""A model in figures: how large it is, which accelerators hold it, how long its checkpoint takes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ultracluster.catalog.sizing import model_state
from ultracluster.model import Cluster
from ultracluster.model.checkpoints import checkpoint_gb, state_gib, write_speed
from ultracluster.plan.groups import GroupPlan

SMALLEST_MODEL, LARGEST_MODEL = 10**6, 10**15
"""Parameters between which a model size is believed; anything else is a slip of a unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """A training state of so many parameters, in memory and as a checkpoint."""

    parameters: float
    checkpoint_gb: float
    """10^9 bytes."""
    write_mbps: float | None
    """MB/s at which a checkpoint is written; None where the file system's throughput is unknown."""
    write_limit: str
    """What limits it: `file system` or `clients`."""
    state_gib: float
    """In accelerator memory, without activations."""
    group: str
    """The group with the most accelerator memory; empty without accelerators."""
    memory_gib: float
    """Its accelerator memory."""
    nodes: int | None
    """Nodes of it that hold the state at the least; None without accelerators."""
    checkpoint_bytes_per_parameter: int
    state_bytes_per_parameter: int
    assumption: str

    @property
    def write_seconds(self) -> float | None:
        """Time to write one checkpoint."""
        return None if not self.write_mbps else self.checkpoint_gb * 1000 / self.write_mbps

    @property
    def fits(self) -> bool:
        """Whether the accelerators of the group hold the state."""
        return self.state_gib <= self.memory_gib


def parameters(text: str, what: str = "a model size") -> float:
    """The number of parameters, or of `what` else, that `70B` means.

    Raises:
        ValueError: it is no size, or one that cannot be meant.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MBT])", text.strip().upper())
    if not found:
        raise ValueError(f"{text!r} is not {what}: write it with M, B or T, as in 8B, 70B or 1.8T")
    number = float(found[1]) * {"M": 1e6, "B": 1e9, "T": 1e12}[found[2]]
    if not SMALLEST_MODEL <= number <= LARGEST_MODEL:
        raise ValueError(f"{text!r} is not {what} between 1M and 1000T: check the unit")
    return number


def size_text(number: float) -> str:
    """Parameters as people write them: `70B`."""
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if number >= factor:
            return f"{number / factor:g}{unit}"
    return f"{number:g}"


def model_plan(cluster: Cluster, size: float, groups: Sequence[GroupPlan]) -> ModelPlan:
    """A model of `size` parameters on the group with the most accelerator memory."""
    facts = model_state()
    largest = max(groups, key=lambda group: group.accelerator_memory_gib)
    memory = largest.accelerator_memory_gib
    state = state_gib(size)
    write = write_speed(cluster.lustre_of(largest.name), cluster.groups[largest.name])
    return ModelPlan(
        parameters=size,
        checkpoint_gb=checkpoint_gb(size),
        write_mbps=write.mbps if write else None,
        write_limit=write.limit if write else "",
        state_gib=state,
        group=largest.name if memory else "",
        memory_gib=memory,
        nodes=math.ceil(state / (memory / largest.greatest)) if memory else None,
        checkpoint_bytes_per_parameter=facts.checkpoint_bytes,
        state_bytes_per_parameter=facts.memory_bytes,
        assumption=(
            f"mixed precision with Adam, sharded over all nodes: {facts.memory_bytes} bytes a parameter in "
            f"memory without activations, {facts.checkpoint_bytes} in a checkpoint ({facts.source})"
        ),
    )
