"""Bandwidth against published figures: gates, two and three nodes, and figures that cannot be right."""

from __future__ import annotations

from typing import Any

import pytest
from judged_logs import change, said
from nccl_logs import GIB, MIB


def test_two_nodes_are_indicative() -> None:
    both = change(nodes=2, figures={4 * GIB: 470.0, 16 * GIB: 486.8})

    assert "force the ring" in said(both).reason
    assert said(both).verdict == "not judged"


def test_two_nodes_with_the_ring_forced_are_indicative() -> None:
    report = said(change(nodes=2, figures={16 * GIB: 360.0}, mark="run=fabric algo=ring nodes=a,b"))

    assert report.verdict == "not judged"
    assert "two nodes with the ring forced are indicative only (360.00 GB/s at 16 GiB)" in report.reason


def test_three_nodes_are_indicative() -> None:
    assert "3 nodes are indicative only" in said(change(nodes=3)).reason


@pytest.mark.parametrize(("kind", "nics"), [("p6-b300.48xlarge", 16), ("p5e.48xlarge", 32)])
def test_a_type_without_a_gate_is_measured_not_judged(kind: str, nics: int) -> None:
    report = said(change(provider=f"Selected provider is efa, fabric is efa (found {nics} nics)"), kind=kind)

    assert report.verdict == "not judged"
    assert report.reason.endswith(
        f"measured, not judged: no published figure for {kind} on 4 nodes (369.06 GB/s at 16 GiB)"
    )


def test_the_provisional_gate_says_so() -> None:
    log = change(provider="Selected provider is efa, fabric is efa (found 32 nics)", figures={4 * GIB: 320.0})

    report = said(log, kind="ml.p5.48xlarge")

    assert report.verdict == "pass"
    assert "provisional gate 300" in report.reason


def test_above_the_physical_ceiling_is_suspicious() -> None:
    report = said(change(figures={4 * GIB: 480.0}))

    assert report.verdict == "not judged"
    assert "suspicious: 480.00 GB/s at 4 GiB is above the 400 GB/s" in report.reason


def test_figures_that_contradict_each_other_are_suspicious() -> None:
    text = change(figures={4 * GIB: 364.87}).text().replace("  364.87  ", "  390.00  ")

    assert "with 32 ranks their ratio is 1.938" in said(text).reason


def test_a_run_without_large_messages_is_not_judged() -> None:
    text = (
        change(figures={128 * MIB: 198.0})
        .text()
        .replace(
            "# Using devices", "#\n# Reducing maxBytes to 134217728 due to memory limitation\n# Using devices"
        )
    )

    assert "no row of 4 GiB or more, which the gate is for; memory limited it to 128 MiB" in said(text).reason


@pytest.mark.parametrize(
    ("program", "busbw", "message"),
    [
        # 32 ranks, 8 in a node: 31/24 of the interfaces' 400 GB/s, for an all-to-all of one rank's eighth
        ("alltoall_perf", 48.4, "all_to_all: 48.40 GB/s at the most, 75% of the 65 GB/s"),
        ("all_gather_perf", 310.0, "all_gather: 310.00 GB/s at the most, 60% of the 517 GB/s"),
        ("reduce_scatter_perf", 310.0, "reduce_scatter: 310.00 GB/s at the most, 60% of the 517 GB/s"),
    ],
)
def test_other_collectives_are_reported_against_the_line_rate(
    program: str, busbw: float, message: str
) -> None:
    report = said(change(program=program, weight=1, figures={4 * GIB: busbw}))

    assert report.verdict == "not judged"
    assert message in report.reason and "no figure is published" in report.reason


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"program": "alltoall_perf", "weight": 1, "figures": {4 * GIB: 80.0}}, "is above the 65 GB/s"),
        ({"program": "all_gather_perf", "weight": 2}, "with 32 ranks their ratio is 0.969"),
        ({"program": "sendrecv_perf"}, "the run is none of all_reduce_perf, all_gather_perf"),
    ],
)
def test_figures_of_other_collectives_can_be_wrong(fields: dict[str, Any], message: str) -> None:
    report = said(change(**fields))

    assert report.verdict == "not judged" and message in report.reason
