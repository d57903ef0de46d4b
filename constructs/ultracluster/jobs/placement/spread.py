"""How far apart the nodes of a job are, and how close they could be: switches on each layer of a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ultracluster.jobs.placement.slurm_topology import Place

ULTRASERVER = "ultraserver"
_LARGEST = 100_000
"""Names that one list of nodes may stand for."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the network below a job."""

    name: str
    """`layer-1` (widest) to the last one, which has the leaves; `ultraserver` for NVLink."""
    spans: Mapping[str, int]
    """Nodes of the job by switch, most first."""
    best: tuple[int, ...]
    """Nodes by switch, if the job were on as few of them as its cluster has room for; most first."""

    @property
    def excess(self) -> int:
        """Switches that the job spans beyond the fewest."""
        return len(self.spans) - len(self.best)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the nodes of a job are."""

    layers: tuple[Layer, ...]
    unknown: tuple[str, ...]
    """Nodes of the job of which nobody says where they are: they are counted nowhere."""

    @property
    def good(self) -> bool:
        """Return whether the job spans no more switches than it must."""
        return all(layer.excess <= 0 for layer in self.layers)


def placement(job: Collection[str], places: Mapping[str, Place]) -> Placement:
    """Judge the nodes of a job.

    Args:
        job: its nodes.
        places: of every node that could have been in it: those of the same kind, busy or not.
    """
    nodes = [node for node in dict.fromkeys(job) if node in places]
    unknown = tuple(node for node in dict.fromkeys(job) if node not in places)
    paths = {node: tuple(place["path"]) for node, place in places.items() if place["path"]}
    blocks = {node: (place["block"],) for node, place in places.items() if place["block"]}
    depth = max((len(paths[node]) for node in nodes if node in paths), default=0)
    layers = [
        _layer(
            f"layer-{level}",
            nodes,
            {node: path[:level] for node, path in paths.items() if len(path) >= level},
        )
        for level in range(1, depth + 1)
    ]
    if any(node in blocks for node in nodes):
        layers.append(_layer(ULTRASERVER, nodes, blocks))
    return Placement(tuple(layers), unknown)


def _layer(name: str, job: Collection[str], switches: Mapping[str, tuple[str | None, ...]]) -> Layer:
    spans = Counter(switches[node] for node in job if node in switches)
    room = sorted(Counter(switches.values()).values(), reverse=True)
    left, best = sum(spans.values()), list[int]()
    for there in room:
        if left <= 0:
            break
        best.append(min(there, left))
        left -= there
    # one id below two switches is two; it is told with what is above it
    ends = Counter(path[-1] for path in spans)
    told = {path: str(path[-1]) if ends[path[-1]] == 1 else "/".join(map(str, path)) for path in spans}
    ordered = sorted(spans.items(), key=lambda item: (-item[1], told[item[0]]))
    return Layer(name, {told[path]: count for path, count in ordered}, tuple(best))


def node_names(text: str) -> list[str]:
    """The nodes of a list as Slurm writes it: `gpu-st-p5-[1-3,7],login-1`.

    Raises:
        ValueError: brackets that do not match, or more names than a cluster has.
    """
    found: list[str] = []
    for word in re.findall(r"(?:\[[^\[\]]*\]|[^,\s])+", text):
        for name in _expanded(word):
            found.append(name)
            if len(found) > _LARGEST:
                raise ValueError(f"`{text[:60]}` stands for more than {_LARGEST} nodes")
    if not found:
        raise ValueError("the list names no node")
    return list(dict.fromkeys(found))


def _expanded(word: str) -> Iterator[str]:
    before, bracket, rest = word.partition("[")
    if not bracket:
        if "]" in word:
            raise ValueError(f"`{word}` has a bracket that does not open")
        yield word
        return
    ranges, bracket, after = rest.partition("]")
    if not bracket or not ranges:
        raise ValueError(f"`{word}` has a bracket that does not close, or nothing in it")
    for part in ranges.split(","):
        ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if not ends or (ends[2] and int(ends[2]) < int(ends[1])):
            raise ValueError(f"`{part}` in `{word}` is no number and no range of numbers")
        for number in range(int(ends[1]), int(ends[2] or ends[1]) + 1):
            for end in _expanded(after):
                yield f"{before}{str(number).zfill(len(ends[1]))}{end}"
