"""Which node is slow: runs on pairs of nodes, each compared with the median of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from ultracluster.acceptance.runs import Run

SHARE = 0.85
"""A pair below this share of the median is slow: the share that our gates ask of a published figure."""
FEWEST_PAIRS = 3
"""A median of fewer says nothing."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One run on two nodes."""

    nodes: tuple[str, str]
    size: int
    """Bytes."""
    busbw: float
    """GB/s"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, slowest first."""

    pairs: tuple[Pair, ...]
    median: float
    """GB/s; 0 where there are too few pairs to compare."""
    slow_pairs: tuple[Pair, ...]
    slow_nodes: tuple[str, ...]
    """Nodes of which each pair is slow, unless the partner explains all of them."""


def compare(runs: Iterable[Run]) -> Comparison:
    """Find the nodes that are slower than the others, from the largest size that all pairs have."""
    usable = [run for run in runs if len(run.nodes) == 2]
    curves = [{row.size: row.out_of_place.busbw for row in run.rows if row.out_of_place} for run in usable]
    sizes = set(curves[0]).intersection(*curves[1:]) if curves else set[int]()
    size = max(sizes, default=0)
    pairs = sorted(
        (
            Pair((run.nodes[0], run.nodes[1]), size, curve[size])
            for run, curve in zip(usable, curves, strict=True)
        )
        if sizes
        else (),
        key=lambda pair: pair.busbw,
    )
    if len(pairs) < FEWEST_PAIRS:
        return Comparison(tuple(pairs), 0, (), ())
    middle = median(pair.busbw for pair in pairs)
    slow = [pair for pair in pairs if pair.busbw < SHARE * middle]
    return Comparison(tuple(pairs), middle, tuple(slow), _slow_nodes(pairs, slow))


def _slow_nodes(pairs: list[Pair], slow: list[Pair]) -> tuple[str, ...]:
    """Fewest nodes that explain the slow pairs: again and again the node with most of those left."""
    left, found = list(slow), list[str]()
    fine = {node for pair in pairs if pair not in slow for node in pair.nodes}
    while left:
        counts: dict[str, int] = {}
        for pair in left:
            for node in pair.nodes:
                counts[node] = counts.get(node, 0) + 1
        worst = max(counts, key=lambda node: (counts[node], node not in fine))
        if counts[worst] == 1 and all(
            (node in fine) == (worst in fine) for pair in left for node in pair.nodes
        ):
            # one pair and nothing that tells its nodes apart: both are named
            found += [node for node in left[0].nodes if node not in found]
            left = left[1:]
            continue
        found.append(worst)
        left = [pair for pair in left if worst not in pair.nodes]
    return tuple(sorted(found))
