"""What was judged, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultracluster.acceptance.runs import Row
from ultracluster.acceptance.slow_node import Comparison

Verdict = Literal["pass", "fail", "not judged"]
Outcome = Literal["pass", "fail", "not judged", "warn", "info"]

_ORDER: tuple[Outcome, ...] = ("fail", "not judged", "warn", "pass", "info")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    id: str
    outcome: Outcome
    """ "not judged" keeps the whole from passing; what need not be there is "info"."""
    message: str
    run: str = ""
    """Which run, in words."""
    place: str = ""
    """file:line of the first proof."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The figures of one run."""

    run: str
    nodes: tuple[str, ...]
    ranks: int
    rows: tuple[Row, ...]
    average: float | None
    """Over all sizes; no measure of the fabric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verdict on a set of logs."""

    instance_type: str
    nodes: tuple[str, ...]
    ranks: int
    versions: Mapping[str, str]
    nics: tuple[int, ...]
    """Numbers of EFA interfaces that the plugin found; more than one if processes differ."""
    checks: tuple[Check, ...]
    curves: tuple[Curve, ...]
    """That of the largest run first."""
    pairs: Comparison | None

    @property
    def verdict(self) -> Verdict:
        outcomes = {check.outcome for check in self.checks}
        if "fail" in outcomes:
            return "fail"
        return "not judged" if "not judged" in outcomes or "pass" not in outcomes else "pass"

    @property
    def reason(self) -> str:
        """The first check that decides, in one line."""
        for check in self.checks:
            if check.outcome == self.verdict and check.outcome != "pass":
                return f"{check.run + ': ' if check.run else ''}{check.message}"
        figures = [
            check.message for check in self.checks if check.id == "bandwidth" and check.outcome == "pass"
        ]
        return "; ".join(figures) or "all checks"

    def as_text(self) -> str:
        """For a person; the last line is the verdict."""
        lines = [f"{self.instance_type}, {len(self.nodes)} nodes, {self.ranks} ranks: {' '.join(self.nodes)}"]
        if self.nics:
            lines.append(f"EFA interfaces per process: {', '.join(map(str, self.nics))}")
        lines += [f"{name}: {value}" for name, value in self.versions.items()]
        for curve in self.curves:
            lines += ["", *_table(curve)]
        if self.pairs and self.pairs.pairs:
            lines += ["", *_pairs(self.pairs)]
        lines.append("")
        for outcome in _ORDER:
            for check in (check for check in self.checks if check.outcome == outcome):
                where = f"{check.run}: " if check.run else ""
                place = f" ({check.place})" if check.place else ""
                lines.append(f"{outcome:10}  {check.id:15}  {where}{check.message}{place}")
        lines += ["", f"{self.verdict.upper()}: {self.reason}"]
        return "\n".join(map(_printable, lines))


def _printable(line: str) -> str:
    """Without control characters: names and reports in a log are whatever somebody wrote there."""
    return "".join(char if char.isprintable() else "?" for char in line)


def size_text(size: int) -> str:
    """Bytes in words: 17179869184 is "16 GiB"."""
    value: float = size
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:g} {unit}"
        value /= 1024
    return f"{value:g} GiB"


def _table(curve: Curve) -> list[str]:
    lines = [
        f"{curve.run}: all-reduce bus bandwidth in GB/s",
        f"{'size':>12}  {'out of place':>12}  {'in place':>8}",
    ]
    for row in curve.rows:
        out, inside = (f"{half.busbw:.2f}" if half else "-" for half in (row.out_of_place, row.in_place))
        lines.append(f"{size_text(row.size):>12}  {out:>12}  {inside:>8}")
    return lines


def _pairs(comparison: Comparison) -> list[str]:
    size = size_text(comparison.pairs[0].size)
    lines = [f"pairs of nodes at {size}, GB/s, slowest first; median of the nodes {comparison.median:.2f}"]
    slow, paths = comparison.slow_nodes, [suspect.nodes for suspect in comparison.slow_paths]
    for pair in comparison.pairs:
        nodes = [node for node in pair.nodes if node in slow]
        mark = f"  slow: {', '.join(nodes)}" if nodes else "  slow" if pair.nodes in paths else ""
        lines.append(f"{pair.busbw:>12.2f}  {' + '.join(pair.nodes)}{mark}")
    return lines
