"""Output of nccom-test as its guide prints it (aws-neuron-sdk of 2026-08-21, Multiple Instances Example)."""

from __future__ import annotations

from collections.abc import Mapping

GIB = 1 << 30
PUBLISHED: Mapping[int, float] = {8: 0.0, 1 << 20: 1.45, 128 << 20: 39.19, GIB: 47.09}
"""Bus bandwidth by size, of 64 ranks on two trn1.32xlarge."""


def table(ranks: int, figures: Mapping[int, float] = PUBLISHED) -> str:
    """The rows and the average."""
    lines = ["       size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)"]
    for size, bus in figures.items():
        algorithm = bus * ranks / (2 * (ranks - 1))
        time = size / (algorithm * GIB) * 1e6 if algorithm else 520
        lines.append(f"{size:>14}{size // 4:>16}    fp32{time:>16.2f}{algorithm:>15.2f}{bus:>15.2f}")
    average = sum(figures.values()) / len(figures)
    return "\n".join([*lines, f"Avg bus bandwidth:\t{average:.4f}GB/s", ""])


FAILED = """\
       size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)
       33554432    Failure running neuron-bench - log file /tmp/nccom_test_log_7pqpdfjf.log
1 errors found - test failed
"""

__all__ = ["FAILED", "GIB", "PUBLISHED", "table"]
