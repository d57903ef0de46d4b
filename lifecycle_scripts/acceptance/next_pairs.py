"""The next pairs of nodes to measure, so that each slow node can be distinguished from its partners.

    python3 -IS next_pairs.py FOLDER NODE...

A pair is as fast as its slower node. A node of one of the fastest pairs is fast, and a node that was slow
with a fast one is slow. Each line is a pair of a node of which neither is known and a fast one; no node
is in two lines. No line: nothing is left to decide, or no pair has a figure.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SHARE = 0.95
"""Facts of the fastest pair: as `SAME_DISTANCE` of the judge has it."""
_NODES = re.compile(r"# ultracluster-acceptance run=pair .*\bnodes=(\S+)")
_ROW = re.compile(r" *([0-9]{1,18}) +[0-9]{1,18} +[a-z]\w+ +sum +-1 +\S+ +\S+ +([0-9.]{1,12}) ")


def next_pairs(nodes: list[str], figures: dict[frozenset[str], float]) -> list[tuple[str, str]]:
    """Pairs to measure at the same time.

    Args:
        nodes: all of them.
        figures: GB/s by pair.
    """
    top = max(figures.values(), default=0.0)
    fast = {node for pair, busbw in figures.items() if busbw >= SHARE * top > 0 for node in pair}
    told = fast | {node for pair in figures if pair & fast for node in pair}
    unknown = [node for node in nodes if node not in told]
    return list(zip(unknown, (node for node in nodes if node in fast), strict=False))


def read(folder: Path) -> dict[frozenset[str], float]:
    """The figures of the largest messages in the logs of pairs."""
    figures: dict[frozenset[str], float] = {}
    for log in sorted(folder.glob("pair-*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        rows = [
            (int(row[1]), float(row[2])) for row in map(_ROW.match, text.splitlines()) if row and _is(row[2])
        ]
        if names := _NODES.search(text):
            # a pair without a figure was tried, and is not tried again
            figures[frozenset(names[1].split(","))] = max(rows, default=(0, 0.0))[1]
    return figures


def _is(word: str) -> bool:
    return re.fullmatch(r"[0-9]+(\.[0-9]+)?", word) is not None


if __name__ == "__main__":
    for pair in next_pairs(sys.argv[2:], read(Path(sys.argv[1]))):
        print(*pair)
