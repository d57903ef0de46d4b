"""Find which node is slow: runs on pairs of nodes, each node compared with what the others reach without it.

A pair is as fast as its slower node. So a node is as fast as its fastest pair shows, and one that never met a
fast node cannot be judged. Without a node, the other nodes' fastest pairs have a median: that is what it is
compared with, so that a slow node cannot lower its own measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from ultracluster.acceptance.runs import Run

FEWEST_NODES = 3
"""Facts of two nodes both are in the only pair."""
_FEWEST_OTHERS = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of the others' median below which a node or a pair is slow."""

    warn: float
    fail: float


SAME_DISTANCE = Limits(0.95, 0.85)
UNKNOWN_DISTANCE = Limits(0.90, 0.80)


@dataclass(frozen=True, slots=True)
class Pair:
    """Runs on two nodes."""

    nodes: tuple[str, str]
    size: int
    """Bytes."""
    busbw: float
    """GB/s; the median where the pair ran several times, in either direction."""
    distance: int | None = None
    """Layers of switches between the nodes; null: not known."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node, or the path between two nodes, that is slower than others."""

    nodes: tuple[str, ...]
    busbw: float
    """GB/s of its fastest pair."""
    others: float
    """GB/s: the median without it."""
    failed: bool
    """Below the limit of a failure; else below that of a warning."""

    @property
    def outcome(self) -> Literal["fail", "warn"]:
        return "fail" if self.failed else "warn"

    @property
    def text(self) -> str:
        below = 100 * (1 - self.busbw / self.others)
        return (
            f"{' + '.join(self.nodes)} {self.busbw:.2f} GB/s, others {self.others:.2f} ({below:.0f} % below)"
        )


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A node that cannot be judged."""

    node: str
    """Empty: no node can be judged."""
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, slowest first."""

    pairs: tuple[Pair, ...]
    median: float
    """GB/s, of the nodes' fastest pairs; 0 where there are too few to compare."""
    limits: Limits
    slow: tuple[Suspect, ...] = ()
    """Slow nodes, slowest first."""
    slow_paths: tuple[Suspect, ...] = ()
    """Slow pairs of nodes that are fast with others."""
    not_judged: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why something cannot be decided, by node; by "" for all of them."""

    @property
    def unjudged(self) -> tuple[Unjudged, ...]:
        """Nodes that cannot be judged."""
        return tuple(Unjudged(*item) for item in self.not_judged.items())

    @property
    def slow_nodes(self) -> tuple[str, ...]:
        return tuple(sorted(suspect.nodes[0] for suspect in self.slow))


_Figures = Mapping[frozenset[str], float]


def compare(
    runs: Iterable[Run], *, nodes: Sequence[str] = (), places: Mapping[str, Sequence[str]] | None = None
) -> Comparison:
    """Find the slow nodes, at the largest size that most pairs have.

    Args:
        runs: on two nodes each.
        nodes: all that should have been in a pair.
        places: switches of a node, from the widest to the leaf.
    """
    pairs = _pairs(runs, places or {})
    everyone = sorted({*nodes, *(node for pair in pairs for node in pair.nodes)})
    known = bool(pairs) and all(pair.distance is not None for pair in pairs)
    limits = SAME_DISTANCE if known else UNKNOWN_DISTANCE
    figures = {frozenset(pair.nodes): pair.busbw for pair in pairs}
    measured = [node for node in everyone if any(node in pair for pair in figures)]
    missing = {node: "no pair with it was measured" for node in everyone if node not in measured}
    if len(everyone) < FEWEST_NODES:
        why = (
            f"{len(everyone)} node{'s are' if len(everyone) != 1 else ' is'} too few to decide which is slow"
        )
        return Comparison(pairs, 0, limits, not_judged={"": why})
    if len(measured) < FEWEST_NODES or len(figures) < _FEWEST_OTHERS:
        number = f"{len(figures)} measured pair{'s' * (len(figures) != 1)}"
        why = f"{number} of {len(everyone)} nodes: too few to decide which is slow"
        return Comparison(pairs, 0, limits, not_judged={"": why})

    level = median(_fastest(figures, measured).values())
    slow, unclear = _slow_nodes(figures, measured, UNKNOWN_DISTANCE)
    if known:
        slow, unclear = _at_equal_distance(pairs, measured, slow, unclear)
    if 2 * len(slow) >= len(measured):
        names = ", ".join(sorted(slow)[:8])
        why = f"half of the {len(measured)} nodes are slower than the rest ({names}): no majority"
        return Comparison(pairs, level, limits, not_judged={"": why})
    top = max(figures.values())
    if not slow and not unclear and level < UNKNOWN_DISTANCE.warn * top:
        why = f"one pair reaches {top:.2f} GB/s, and most nodes no more than {level:.2f}: most may be slow"
        return Comparison(pairs, level, limits, not_judged={"": why})
    return Comparison(
        pairs,
        level,
        limits,
        tuple(sorted(slow.values(), key=lambda suspect: suspect.busbw / suspect.others)),
        _slow_paths(pairs, {*slow, *unclear}, limits),
        missing | unclear,
    )


def _pairs(runs: Iterable[Run], places: Mapping[str, Sequence[str]]) -> tuple[Pair, ...]:
    """The figures of the runs, by pair."""
    curves = [
        (run.nodes, {row.size: row.out_of_place.busbw for row in run.rows if row.out_of_place})
        for run in runs
        if len(run.nodes) == 2
    ]
    counts = Counter(size for _, curve in curves for size in curve)
    size = max(counts, key=lambda size: (counts[size], size), default=0)
    found: dict[frozenset[str], list[float]] = {}
    named: dict[frozenset[str], tuple[str, str]] = {}
    for nodes, curve in curves:
        if curve.get(size, 0) > 0:
            found.setdefault(frozenset(nodes), []).append(curve[size])
            named.setdefault(frozenset(nodes), (nodes[0], nodes[1]))
    pairs = (
        Pair(named[key], size, median(busbw), _distance(*(places.get(node) for node in named[key])))
        for key, busbw in found.items()
    )
    return tuple(sorted(pairs, key=lambda pair: (pair.busbw, pair.nodes)))


def _distance(one: Sequence[str] | None, other: Sequence[str] | None) -> int | None:
    """Layers below the switch that two nodes share."""
    if not one or not other or len(one) != len(other):
        return None
    shared = 0
    while shared < len(one) and one[shared] == other[shared]:
        shared += 1
    return len(one) - shared


def _fastest(figures: _Figures, nodes: Collection[str], without: Collection[str] = ()) -> dict[str, float]:
    """Each node's fastest pair, of those that contain none of `without`."""
    best: dict[str, float] = {}
    for pair, busbw in figures.items():
        if pair.isdisjoint(without):
            for node in pair.intersection(nodes):
                best[node] = max(busbw, best.get(node, 0))
    return best


def _slow_nodes(
    figures: _Figures, nodes: Sequence[str], limits: Limits, ignored: Collection[str] = ()
) -> tuple[dict[str, Suspect], dict[str, str]]:
    """The slow nodes, and why others cannot be judged; `ignored` nodes count for nobody's median."""
    slow: dict[str, Suspect] = {}
    unclear: dict[str, str] = {}
    for node in nodes:
        own = {pair: busbw for pair, busbw in figures.items() if node in pair}
        others = _fastest(figures, nodes, {node})
        counted = [busbw for other, busbw in others.items() if other not in ignored]
        if not own or len(counted) < _FEWEST_OTHERS:
            unclear[node] = "too few pairs without it to compare it with"
            continue
        best, reference = max(own.values()), median(counted)
        if best >= limits.warn * reference:
            continue
        # a partner that is as slow with others explains the pair
        if any(
            busbw < limits.warn * others.get(partner, 0)
            for pair, busbw in own.items()
            for partner in pair - {node}
        ):
            slow[node] = Suspect((node,), best, reference, best < limits.fail * reference)
        else:
            unclear[node] = "it was measured only with nodes that are slow themselves"
    return slow, unclear


def _at_equal_distance(
    pairs: Sequence[Pair], nodes: Sequence[str], slow: dict[str, Suspect], unclear: dict[str, str]
) -> tuple[dict[str, Suspect], dict[str, str]]:
    """The same, with the narrow limits, for each node at the distance at which most others were measured."""
    slow, unclear = dict(slow), dict(unclear)
    first = {*slow, *unclear}
    classes: dict[int | None, dict[frozenset[str], float]] = {}
    for pair in pairs:
        classes.setdefault(pair.distance, {})[frozenset(pair.nodes)] = pair.busbw
    members = {distance: {node for pair in one for node in pair} for distance, one in classes.items()}
    ignored = first if len(classes) > 1 else ()
    judged = {
        distance: _slow_nodes(
            one, [node for node in nodes if node in members[distance]], SAME_DISTANCE, ignored
        )
        for distance, one in classes.items()
    }
    for node in nodes:
        own = [distance for distance in classes if node in members[distance]]
        distance = max(own, key=lambda distance: (len(members[distance] - first), -(distance or 0)))
        others = members[distance] - first - {node}
        if len(others) < FEWEST_NODES and len(classes) > 1:
            continue  # judged with the wide limits
        named, unknown = judged[distance]
        slow.pop(node, None)
        unclear.pop(node, None)
        if node in named:
            slow[node] = named[node]
        elif node in unknown:
            unclear[node] = unknown[node]
    return slow, unclear


def _slow_paths(pairs: Sequence[Pair], explained: set[str], limits: Limits) -> tuple[Suspect, ...]:
    """Slow pairs that no node explains, each compared with the other pairs at its distance."""
    fair = [pair for pair in pairs if explained.isdisjoint(pair.nodes)]
    suspects: list[Suspect] = []
    for pair in fair:
        others = [one.busbw for one in fair if one is not pair and one.distance == pair.distance]
        here = limits
        if len(others) < _FEWEST_OTHERS:
            others, here = [one.busbw for one in fair if one is not pair], UNKNOWN_DISTANCE
        if len(others) < _FEWEST_OTHERS:
            continue
        reference = median(others)
        if pair.busbw < here.warn * reference:
            suspects.append(Suspect(pair.nodes, pair.busbw, reference, pair.busbw < here.fail * reference))
    return tuple(suspects)
