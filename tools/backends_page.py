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

from ultracluster.catalog import instance_types  # noqa: E402
from ultracluster.catalog.wishes import field_names, wishes  # noqa: E402

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
    parts = (_table(by_intent), _types(), _wishes(), _names(), _refusals(by_intent))
    return "\n".join([HEAD, *(line for part in parts for line in (*part, ""))])


def _table(by_intent: dict[str, list[Cell]]) -> Iterator[str]:
    yield f"| | {' | '.join(KINDS)} |"
    yield f"|---|{'---|' * len(KINDS)}"
    for title, row in by_intent.items():
        yield f"| {title} | {' | '.join(_mark(cell) for cell in row)} |"


def _wishes() -> Iterator[str]:
    """What each orchestrator answers to each wish, with the words below the table."""
    yield "## Wishes\n"
    yield "What `ultracluster choose --wish NAME` knows. Each has an environment that is synthesised in the"
    yield "tests and accepted by every authority, and is refused there without what it requires.\n"
    yield f"| | {' | '.join(KINDS)} | environment |"
    yield f"|---|{'---|' * (len(KINDS) + 1)}"
    for name, wish in wishes().items():
        page = wish.page.removeprefix("docs/")
        answers = (wish.answers[kind][0] for kind in KINDS)
        overlay = f"[`{wish.overlay}`](../{wish.overlay})"
        yield f"| [{wish.title}]({page}) (`{name}`) | {' | '.join(answers)} | {overlay} |"
    for wish in wishes().values():
        yield f"\n### {wish.title}\n"
        for kind in KINDS:
            answer, words, source = wish.answers[kind]
            yield f"- **{kind}** {answer}: {words} ({source})"


def _types() -> Iterator[str]:
    """Types whose accelerators are joined past PCIe, with what AWS publishes of their network."""
    yield "## Instance types\n"
    yield "Types for training over many nodes. `?`: AWS publishes none, as of G types."
    yield "Sources: `catalog/instances.json`.\n"
    yield "| type | accelerators | joined by | EFA | EFA generation | UltraCluster generation |"
    yield "|---|---|---|---|---|---|"
    for one in instance_types().values():
        if one.accelerator and one.efa_interfaces != 0 and one.link != "PCIe":
            efas = f"{one.efa_interfaces or '?'}, {one.network_gbps or 0:,.0f} Gbit/s"
            generations = (str(number or "?") for number in (one.efa_generation, one.ultracluster))
            devices = f"{one.accelerator.count} x {one.accelerator.name}"
            yield f"| {one.name} | {devices} | {one.link} | {efas} | {' | '.join(generations)} |"


def _names() -> Iterator[str]:
    yield "## Other names of the field\n"
    yield "| name | here | how, or why not | source |"
    yield "|---|---|---|---|"
    for row in field_names():
        yield f"| {row.name} | {row.how} | {row.words} | {row.source} |"


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
