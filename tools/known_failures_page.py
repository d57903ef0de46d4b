"""Writes docs/known-failures.md: what others met, and the texts that `ultracluster doctor` knows."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.markdown_cells import cell, code
from ultracluster.account.doctor.known_failures import KnownFailure, known_failures
from ultracluster.account.nodes.slurm_reason import reasons

HEAD = """# Failures that others had

Written by `make generate` from `tools/known_threads.json` and
`constructs/ultracluster/account/doctor/failures/`; edit those instead.

## Threads

Thirty public threads about training clusters on AWS, and what prevents or reports each of them here: a rule
or a check, or the reason why nothing can. adai = awslabs/awsome-distributed-ai, pc =
aws/aws-parallelcluster, kp = aws/karpenter-provider-aws.

| Thread | What failed | Here |
|---|---|---|
"""
TEXTS = """
## Texts and their causes

What `ultracluster doctor` looks for in stack events, logs, and the lines that `--log` gives it, in upper
and lower case alike and with error numbers in other languages, too. The source of a row states its cause; a
cause that is only possible is called so, and stands beside the stated one of the same text. Faults of GPUs,
links, adapters, disks and Lustre clients are in [faults](faults.md), which nodes read themselves. `prod`
stands for your environment.
"""


REASONS = """
## Reasons of Slurm nodes

Published reasons, as `sinfo -R` prints them; `*` stands for a figure or a name, and `**` for anything.
`ultracluster doctor prod --reason REASON` knows them whole, cut off, and one behind another. Those that begin
with `ultracluster:` are of [health checks](faults.md). AWS PCS publishes none of its own.

| Reason | Written by | Meaning | What to do | Source |
|---|---|---|---|---|
"""


def threads() -> list[dict[str, str]]:
    """Thread, what failed, and what is here for it."""
    file = Path(__file__).with_name("known_threads.json")
    return list(json.loads(file.read_text(encoding="utf-8"))["threads"])


def page() -> str:
    """The page as Markdown."""
    lines = [f"| {one['thread']} | {one['failed']} | {one['here']} |" for one in threads()]
    by_layer: dict[str, list[KnownFailure]] = {}
    for row in known_failures():
        by_layer.setdefault(row.layer, []).append(row)
    texts = "\n".join([*lines, TEXTS, *_layers(by_layer)]).rstrip()
    return f"{HEAD}{texts}\n{REASONS}" + "\n".join(_reasons()) + "\n"


def _reasons() -> Iterator[str]:
    for row in reasons():
        seen = "; ".join(code(one) for one in row["texts"])
        cells = (seen, row["by"], cell(row["meaning"]), cell(row["next"]), row["source"])
        yield f"| {' | '.join(cells)} |"


def _layers(by_layer: dict[str, list[KnownFailure]]) -> Iterator[str]:
    for layer, rows in by_layer.items():
        yield f"### {layer}"
        yield ""
        yield "| You see | Cause | What decides | What to do | Next command | Source |"
        yield "|---|---|---|---|---|---|"
        for row in rows:
            cause = cell(row.cause) if row.certain else f"*possibly* {cell(row.cause)}"
            cells = (
                code(row.seen),
                cause,
                cell(row.differs),
                cell(row.do),
                code(row.run),
                "; ".join(row.sources),
            )
            yield f"| {' | '.join(cells)} |"
        yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
