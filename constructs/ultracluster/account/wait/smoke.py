"""The end of a wait: a collective over two nodes of each group with a fabric.

It is the acceptance job on two nodes, judged by the acceptance judge. On so few nodes a bandwidth is
indicative only; what counts here is that NCCL uses EFA on all interfaces and that results are right.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ultracluster.acceptance.judge import judge
from ultracluster.acceptance.log_reader import read
from ultracluster.acceptance.report import Report
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.evidence import efa_interfaces
from ultracluster.account.wait.look import Look
from ultracluster.catalog import instance_type as catalogue
from ultracluster.model import Cluster

NODES = 2
LIMIT = 1800.0
"""Seconds for the job, its time in the queue included; its runs take about five minutes."""
EVERY = 15.0
"""Seconds between two looks at the job."""

Verdict = Literal["pass", "fail", "not judged", "not applicable"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ready nodes of one type."""

    group: str
    instance_type: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Smoke:
    """What came of the collective on one group."""

    group: str
    verdict: Verdict
    reason: str
    command: str = ""
    """What to run by hand, where it could not be run from here."""
    nodes: tuple[str, ...] = ()
    report: Report | None = None
    logs: str = ""
    """Where the logs are, if they were kept."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, exchanged in tests."""

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic


def pairs(cluster: Cluster, look: Look, nodes: Sequence[Node]) -> tuple[list[Pair], list[Smoke]]:
    """Two nodes of each group that has a fabric of NVIDIA GPUs, and why other groups are left out."""
    by_id = {node.id: node for node in nodes}
    found: list[Pair] = []
    left_out: list[Smoke] = []
    for group in look.groups:
        ready = [by_id[seen.id] for seen in group.nodes if seen.up and seen.id in by_id]
        types = dict.fromkeys(node.instance_type for node in ready)
        fabric = [kind for kind in types if efa_interfaces(cluster, kind) and _accelerated(cluster, kind)]
        for kind in fabric:
            members = sorted(
                (node for node in ready if node.instance_type == kind), key=lambda node: node.name
            )
            if not _nvidia(kind):
                why = f"nccl-tests measures NVIDIA GPUs, and {kind} has none that this release knows"
                left_out.append(Smoke(group.name, "not applicable", why))
            elif len(members) < NODES:
                left_out.append(
                    Smoke(group.name, "not applicable", f"{len(members)} node of {kind} is ready")
                )
            else:
                found.append(Pair(group.name, kind, tuple(members[:NODES])))
    return found, left_out


def verdict(group: str, pair: Pair, logs: Sequence[Path], cluster: Cluster) -> Smoke:
    """Judge the logs of a run on two nodes."""
    # the catalogue's own types the judge knows better: some have one of several numbers
    interfaces = None if catalogue(pair.instance_type) else efa_interfaces(cluster, pair.instance_type)
    report = judge(
        read(logs), instance_type=pair.instance_type, nodes=NODES, efa_interfaces=interfaces or None
    )
    names = report.nodes or tuple(node.name for node in pair.nodes)
    if report.verdict == "fail":
        return Smoke(group, "fail", report.reason, nodes=names, report=report)
    doubts = [
        check.message
        for check in report.checks
        # of two nodes neither the fabric's figure nor the slower node can be decided
        if (check.outcome == "not judged" and check.id not in ("bandwidth", "pairs"))
        or (check.outcome == "warn" and check.id == "interfaces")
    ]
    if doubts or not any(check.outcome == "pass" for check in report.checks):
        return Smoke(group, "not judged", (doubts or [report.reason])[0], nodes=names, report=report)
    figures = [check.message for check in report.checks if check.id == "bandwidth"]
    reason = f"right results, over EFA; {'; '.join(figures[:1])}"
    return Smoke(group, "pass", reason, nodes=names, report=report)


def new_name() -> str:
    """A name for a job and its files that cannot be taken yet."""
    return f"ultracluster-smoke-{secrets.token_hex(8)}"


def _accelerated(cluster: Cluster, kind: str) -> bool:
    found = cluster.instance_type(kind)
    return found is not None and found.accelerator is not None


def _nvidia(kind: str) -> bool:
    type_ = catalogue(kind)
    return bool(type_ and type_.accelerator and type_.accelerator.manufacturer == "NVIDIA")
