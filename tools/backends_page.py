"""Writes docs/backends.md: what each orchestrator does with each intent of tests/support.

Run by `make generate`. That every accepted cell really synthesises to a cluster that the authorities accept
is tested in tests/support.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from intents import KINDS, Cell, cells  # noqa: E402 (only once the folder is on the path)

HEAD = """# Back-ends

What becomes of a wish under each orchestrator: a cluster (✓), or the rules that refuse it. Written by
`make generate` from [`tests/support/intents.yaml`](../tests/support/intents.yaml); every ✓ is
synthesised in the tests, with CloudFormation's strict validation, cdk-nag and, for ParallelCluster, its own
schema and validators finding nothing.
"""


def page() -> str:
    """The page as Markdown."""
    by_intent: dict[str, list[Cell]] = {}
    for cell in cells():
        by_intent.setdefault(cell.intent.title, []).append(cell)
    return "\n".join([HEAD, *_table(by_intent), "", *_refusals(by_intent), ""])


def _table(by_intent: dict[str, list[Cell]]) -> Iterator[str]:
    yield f"| | {' | '.join(KINDS)} |"
    yield f"|---|{'---|' * len(KINDS)}"
    for title, row in by_intent.items():
        yield f"| {title} | {' | '.join(_mark(cell) for cell in row)} |"


def _mark(cell: Cell) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in cell.refusals)) or "✓"


def _refusals(by_intent: dict[str, list[Cell]]) -> Iterator[str]:
    yield "## Why not, and what instead"
    for title, row in by_intent.items():
        refused = [cell for cell in row if cell.refusals]
        if not refused:
            continue
        yield f"\n### {title}\n"
        for cell in refused:
            for finding in cell.refusals:
                yield f"- **{cell.kind}** [{finding.code}](rules.md) at `{finding.dotted}`: {finding.message}"
                yield f"  Instead: {finding.instead}"


if __name__ == "__main__":
    sys.stdout.write(page())
