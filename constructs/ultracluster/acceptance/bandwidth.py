"""Figures of a run against published ones, and why they may be no evidence."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.acceptance.collectives import ALL_REDUCE, COLLECTIVES, ceiling_of
from ultracluster.acceptance.curves import FEWEST_FABRIC_NODES, Gate, ceiling, gate, scope_of
from ultracluster.acceptance.report import Check, size_text
from ultracluster.acceptance.runs import Row, Run
from ultracluster.catalog import instance_type as known_type

_TOLERANCE = 0.02  # of busbw / algbw: both are printed with two decimals
_SMALLEST_TO_COMPARE = 1 << 20  # bytes; rounding hides the ratio below


def bandwidth_checks(run: Run, label: str, name: str, *, counts: bool) -> Iterator[Check]:
    """The figures against a published one. `counts`: without a gate the whole is not judged."""
    weak = "not judged" if counts else "info"
    measured = run.measures
    if measured is None:
        known = ", ".join(collective.program for collective in COLLECTIVES.values())
        yield Check("bandwidth", weak, f"the run is none of {known}: its figures are not judged", label)
        return
    ring = run.marks.get("algo", "").lower() == "ring"
    doubt = _doubt(run, name, measured, ring=ring)
    if doubt:
        yield Check("plausible", "not judged", doubt, label)
    nodes = len(run.nodes)
    if not nodes:
        yield Check("bandwidth", weak, "measured, not judged: the number of nodes is not known", label)
        return
    if measured != ALL_REDUCE:
        yield Check("bandwidth", weak, f"{measured}: {_of_line_rate(run, name, measured)}", label)
        return
    scope = scope_of(nodes)
    limit = gate(name, scope) if scope else None
    if limit is not None and scope == "two nodes" and ring:
        limit = None  # the published figure is that of the default algorithm
    if limit is None:
        yield Check(
            "bandwidth", weak, f"measured, not judged: {_why_not(name, nodes, ring=ring)}{_best(run)}", label
        )
    else:
        yield _against(limit, run, label)


def _of_line_rate(run: Run, name: str, measured: str) -> str:
    """State the best figure as a part of the line rate; nobody publishes one to judge it by."""
    unjudged = "no figure is published for this collective: not judged"
    best = max((row.out_of_place.busbw for row in run.rows if row.out_of_place), default=None)
    if best is None:
        return f"no figures in the log; {unjudged}"
    limit = _limit(run, name, measured, ring=False)
    part = f", {best / limit:.0%} of the {limit:.0f} GB/s that the interfaces can carry" if limit else ""
    return f"{best:.2f} GB/s at the most{part}; {unjudged}"


def _limit(run: Run, name: str, measured: str, *, ring: bool) -> float | None:
    """GB/s that the interfaces of a node cannot pass; None: not known, or one node."""
    nodes, ranks = len(run.nodes), run.ranks_per_communicator if run.ranks else 0
    if measured == ALL_REDUCE:
        return ceiling(name, nodes, ranks, ring=ring)
    facts = known_type(name)
    return ceiling_of(measured, facts.line_rate, nodes, ranks) if facts and facts.line_rate else None


def _why_not(name: str, nodes: int, *, ring: bool) -> str:
    if nodes == 2 and ring:
        return "two nodes with the ring forced are indicative only"
    if nodes == 2:
        return "on two nodes NVLink lifts the figure above the fabric; force the ring, or use four nodes"
    if 1 < nodes < FEWEST_FABRIC_NODES:
        return f"{nodes} nodes are indicative only; the published figures are of {FEWEST_FABRIC_NODES}"
    return f"no published figure for {name} on {nodes} node{'s' * (nodes != 1)}"


def _best(run: Run) -> str:
    rows = [row for row in run.rows if row.out_of_place]
    last = max(rows, key=lambda row: row.size, default=None)
    if last is None or last.out_of_place is None:
        return ""
    return f" ({last.out_of_place.busbw:.2f} GB/s at {size_text(last.size)})"


def _against(limit: Gate, run: Run, label: str) -> Check:
    rows = [
        (row.size, row.out_of_place.busbw)
        for row in run.rows
        if row.size >= limit.min_size and row.out_of_place
    ]
    source = limit.published
    if not rows:
        reduced = f"; memory limited it to {size_text(run.reduced_to)}" if run.reduced_to else ""
        message = f"no row of {size_text(limit.min_size)} or more, which the gate is for{reduced}"
        return Check("bandwidth", "not judged", message, label)
    size, busbw = min(rows, key=lambda row: row[1])
    word = "provisional gate" if limit.provisional else "gate"
    message = (
        f"{busbw:.2f} GB/s at {size_text(size)}, {word} {limit.busbw:g} "
        f"({source.busbw:g} {'published' if source.kind == 'measured' else 'a published threshold'}: "
        f"{source.source}, {source.date})"
    )
    return Check("bandwidth", "pass" if busbw >= limit.busbw else "fail", message, label)


def _doubt(run: Run, name: str, measured: str, *, ring: bool) -> str:
    """Return why the figures cannot be right; empty if they can."""
    ranks = run.ranks_per_communicator if run.ranks else 0
    halves = [(row, half) for row in run.rows for half in (row.out_of_place, row.in_place) if half]
    if ranks > 1:
        factor = COLLECTIVES[measured].factor(ranks)
        for row, half in halves:
            if row.size < _SMALLEST_TO_COMPARE or half.algbw < 1:
                continue
            if abs(half.busbw / half.algbw - factor) > _TOLERANCE * factor:
                return (
                    f"suspicious: at {size_text(row.size)} bus and algorithm bandwidth are {half.busbw:g} "
                    f"and {half.algbw:g} GB/s; with {ranks} ranks their ratio is {factor:.3f}"
                )
    limit = _limit(run, name, measured, ring=ring)
    if limit is None:
        return ""
    above: list[tuple[Row, float]] = [(row, half.busbw) for row, half in halves if half.busbw > limit]
    if not above:
        return ""
    row, busbw = max(above, key=lambda pair: pair[1])
    return (
        f"suspicious: {busbw:.2f} GB/s at {size_text(row.size)} is above the {limit:.0f} GB/s that the "
        "interfaces of a node can carry: NVLink helped (not a ring), or the figures are not of this type"
    )
