"""What nccl-tests printed: one `Run` per started program, with the lines of NCCL that came with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ultracluster.acceptance.collectives import ALL_REDUCE, COLLECTIVES, collective_of
from ultracluster.acceptance.lines import Fragment, Process
from ultracluster.acceptance.patterns import patterns

_WIDTHS = {
    "int8": 1, "uint8": 1, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "half": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank as the header of nccl-tests names it."""

    rank: int
    group: int
    process: Process
    device: int
    name: str


@dataclass(frozen=True, slots=True)
class Figures:
    """One of the two halves of a row."""

    time_us: float
    algbw: float
    """GB/s."""
    busbw: float
    """GB/s."""
    wrong: float | None
    """Wrong values, where they were checked (not with `-c 0`)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One message size."""

    size: int
    """Bytes."""
    count: int
    type: str
    redop: str
    root: int
    out_of_place: Figures | None
    in_place: Figures | None

    @property
    def is_all_reduce(self) -> bool:
        """Only all-reduce reduces without a root and has as many bytes as elements of its type."""
        width = _WIDTHS.get(self.type)
        return self.redop != "none" and self.root == -1 and self.size == self.count * (width or 0)


@dataclass(slots=True)
class Evidence:
    """What the lines of NCCL said, by pattern; with it the place of the first line of each kind."""

    processes: dict[Process, dict[str, set[str]]] = field(default_factory=dict[Process, dict[str, set[str]]])
    unattributed: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    places: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(pattern id, process or "") -> file:line"""
    torn: int = 0
    """Lines into which another process wrote."""

    def add(self, fragment: Fragment, place: str) -> None:
        process = fragment.process
        found = self.unattributed if process is None else self.processes.setdefault(process, {})
        self.torn += fragment.torn
        for pattern in patterns():
            value = pattern.find(fragment.text, torn=fragment.torn)
            if value is not None:
                found.setdefault(pattern.id, set()).add(value)
                self.places.setdefault((pattern.id, str(process or "")), place)

    def merge(self, other: Evidence) -> None:
        for process, kinds in other.processes.items():
            mine = self.processes.setdefault(process, {})
            for kind, values in kinds.items():
                mine.setdefault(kind, set()).update(values)
        for kind, values in other.unattributed.items():
            self.unattributed.setdefault(kind, set()).update(values)
        for key, place in other.places.items():
            self.places.setdefault(key, place)
        self.torn += other.torn

    def values(self, kind: str) -> list[str]:
        """All different values of a kind, sorted."""
        everywhere = [*self.processes.values(), self.unattributed]
        return sorted(set[str]().union(*(kinds.get(kind, ()) for kinds in everywhere)))

    @property
    def empty(self) -> bool:
        return not self.processes and not self.unattributed


@dataclass(slots=True)
class Run:
    """One run of one program of nccl-tests."""

    source: str
    """Place of its first line, file:line; only a file where there are just lines of NCCL."""
    marks: dict[str, str] = field(default_factory=dict[str, str])
    """What our own jobs say of it."""
    collective: str = ""
    """Name of the program; empty: this release does not print it."""
    tests_version: str = ""
    ranks: list[Rank] = field(default_factory=list[Rank])
    rows: list[Row] = field(default_factory=list[Row])
    out_of_bounds: int | None = None
    bounds_ok: bool | None = None
    """None: the line is not there."""
    average: float | None = None
    reduced_to: int | None = None
    """Bytes to which memory limited the largest message."""
    finished: bool = False
    """The last line of the results is there."""
    started: bool = False
    errors: list[str] = field(default_factory=list[str])
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Host names in the order of the ranks."""
        return tuple(dict.fromkeys(rank.process.host for rank in self.ranks))

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(dict.fromkeys(rank.process for rank in self.ranks))

    @property
    def ranks_per_communicator(self) -> int:
        """Ranks of group 0: those that exchanged data with each other."""
        return len({rank.rank for rank in self.ranks if rank.group == self.ranks[0].group})

    @property
    def measures(self) -> str | None:
        """The collective, by its name in COLLECTIVES; None: another one, or not known."""
        if self.collective:
            return collective_of(self.collective)
        marked = self.marks.get("collective", "")
        if marked in COLLECTIVES:
            return marked
        return ALL_REDUCE if self.rows and all(row.is_all_reduce for row in self.rows) else None


@dataclass(slots=True)
class Logs:
    """All that was read."""

    runs: list[Run] = field(default_factory=list[Run])
    marks: dict[str, str] = field(default_factory=dict[str, str])
    """Of all runs: versions, node list."""
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Reports of verify/fabric.sh by node; the worst where a node has several."""
    places: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Switches above a node, from the widest to the leaf, where the job knows them."""
