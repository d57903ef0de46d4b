"""Collectives that are measured: their programs, and what their figures mean.

The bus bandwidth of nccl-tests is the algorithm's times a factor of the number of ranks n (nccl-tests,
doc/PERFORMANCE.md); nccom-test names its collectives shorter (AWS Neuron, NCCOM-TEST User Guide).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of nccl-tests and nccom-test."""

    program: str
    """Name of the program of nccl-tests."""
    nccom: str | None
    """Word that nccom-test takes; None: its guide names none."""
    weight: int
    """Bus bandwidth is weight x (n-1)/n times the algorithm's."""
    by_rank: bool = False
    """Each rank's own bytes are counted, not those of the node."""

    def factor(self, ranks: int) -> float:
        """Bus bandwidth over that of the algorithm."""
        return self.weight * (ranks - 1) / ranks


ALL_REDUCE: Final = "all_reduce"
COLLECTIVES: Final[Mapping[str, Collective]] = MappingProxyType({
    ALL_REDUCE: Collective("all_reduce_perf", "allr", 2),
    "all_gather": Collective("all_gather_perf", "allg", 1),
    "reduce_scatter": Collective("reduce_scatter_perf", "redsct", 1),
    "all_to_all": Collective("alltoall_perf", None, 1, by_rank=True),
})  # fmt: skip
"""By the name of `--collective`; gates are for the first one only, of which figures are published."""


def check_collective(name: str, *, neuron: bool = False) -> None:
    """Raise ValueError, with the names that there are, where nothing measures a collective of this name.

    Args:
        neuron: by nccom-test, on Trainium.
    """
    measured = [one for one, row in COLLECTIVES.items() if row.nccom or not neuron]
    if name not in measured:
        tool = "the guide of nccom-test names" if neuron else "nccl-tests measures"
        raise ValueError(f"{tool} no collective {name!r}; there are {', '.join(measured)}")


def collective_of(program: str) -> str | None:
    """The collective of a program of nccl-tests, as its output names it; None if it is another one."""
    return next((name for name, one in COLLECTIVES.items() if program.startswith(one.program)), None)


def ceiling_of(name: str, line_rate: float, nodes: int, ranks: int) -> float | None:
    """Bus bandwidth (GB/s) that the interfaces of a node cannot pass in a collective other than all-reduce.

    Of n ranks, g of them in each node, (n-g)/n of what is moved crosses the fabric at the least; an
    all-to-all counts the bytes of each rank, which has its share of the node's interfaces.

    Args:
        line_rate: of all interfaces of a node, GB/s.
    """
    each = ranks // nodes if nodes else 0
    if nodes < 2 or not each or ranks <= each:
        return None
    share = line_rate / each if COLLECTIVES[name].by_rank else line_rate
    return share * (ranks - 1) / (ranks - each)
