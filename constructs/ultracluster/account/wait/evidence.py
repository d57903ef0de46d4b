"""What proves that a node is ready, and what is read into its state.

The end of the node's scripts (the last line of its log, or the file that a good run leaves), what the node
itself shows (`node_probe.py`), and what the scheduler says of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ultracluster.account.wait.look import NodeSeen
from ultracluster.model import Cluster
from ultracluster.model.team_shares import pools
from ultracluster.software.first_boot import scripts_run
from ultracluster.software.last_word import Word, last_word


@dataclass(frozen=True, slots=True)
class Probe:
    """What a node shows of itself."""

    word: Word | None
    """The end of the last run; none while one is running, or before the first."""
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])
    """File system type by path, of those that were asked for and answer."""
    efa: int | None = None
    """EFA interfaces with a driver."""
    domains: int | None = None
    """Interfaces that libfabric's `efa` provider offers; none where no libfabric is on the host."""
    kubelet: str = ""
    """`registered` once the kubelet has put the node into the cluster; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the nodes of one group must show."""

    report: bool = True
    """Whether our scripts run on them."""
    entry: str = ""
    """The entry script that runs last; any if empty."""
    mounts: tuple[str, ...] = ()
    efa: int = 0
    """EFA interfaces of a node."""
    libfabric: bool = False
    """Whether libfabric belongs on the host."""
    registers: bool = False
    """Whether the scheduler must know the node."""
    resource: str = ""
    """What the Kubernetes node must offer besides EFA interfaces."""
    per_node: int = 0


@dataclass(frozen=True, slots=True)
class Registered:
    """What the scheduler says of a node."""

    good: bool
    why: str = ""


def report_word(line: Mapping[str, Any]) -> Word | None:
    """The end of a run, from the last line of report.jsonl or the file that a good run leaves."""
    state = line.get("state")
    if line.get("run", "ended") != "ended" or state not in ("ready", "degraded", "failed"):
        return None
    degraded = line.get("degraded")
    return Word(
        state=state,
        reason=str(line.get("reason") or ""),
        degraded=tuple(map(str, degraded)) if isinstance(degraded, list) else (),  # pyright: ignore[reportUnknownArgumentType]
        entry=str(line.get("entry") or ""),
    )


def read_probe(text: str) -> Probe | None:
    """The answer of `node_probe.py`; none if it is something else."""
    try:
        answer: Any = json.loads(text.strip().splitlines()[-1])
        probe: dict[str, Any] = answer["probe"]
        run: Any = probe.get("run")
        return Probe(
            word=report_word(run) if isinstance(run, dict) else None,  # pyright: ignore[reportUnknownArgumentType]
            mounts={str(path): str(kind) for path, kind in probe.get("mounts", {}).items()},
            efa=probe.get("efa"),
            domains=probe.get("domains"),
            kubelet=str(probe.get("kubelet") or ""),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def expectations(cluster: Cluster) -> dict[str, Expected]:
    """Return what the nodes of each group must show, by the group's name."""
    environment, kubernetes = cluster.environment, cluster.traits.kubernetes
    home = environment.storage.openzfs
    offered = {pool.group: next(iter(pool.offered.items())) for pool in pools(cluster)}
    expected: dict[str, Expected] = {}
    for name, group in cluster.groups.items():
        compute, lustres = group.role == "compute", cluster.lustres_of(name).values()
        resource, per_node = offered.get(name, ("", 0)) if kubernetes else ("", 0)
        expected[name] = Expected(
            report=scripts_run(environment, group.settings),
            entry=cluster.traits.last_entry,
            mounts=() if kubernetes else tuple(part.mount_path for part in (*lustres, home) if part),
            efa=efa_interfaces(cluster, group.settings.instance_type) if compute else 0,
            libfabric=cluster.traits.slurm,
            registers=kubernetes or compute,
            resource=resource,
            per_node=per_node,
        )
    return expected


def efa_interfaces(cluster: Cluster, instance_type: str) -> int:
    """EFA interfaces that a node of a type has at least; 0 also for an unknown type."""
    kind = cluster.instance_type(instance_type)
    return kind.least_efa_interfaces if kind else 0


def judge(
    node: str,
    group: str,
    expected: Expected,
    *,
    word: Word | None,
    probe: Probe | None,
    registered: Registered | None,
    running: bool = True,
    waiting_for: str = "its scripts have not ended yet",
) -> NodeSeen:
    """The state of a node that its service calls running.

    Args:
        word: how its scripts ended, from the log.
        probe: what the node shows; none where it could not be asked.
        registered: what the scheduler says; none where it could not be asked.
        running: whether scripts may still be at work; else a missing end is a defect.
        waiting_for: what a missing end of the scripts means here.
    """
    word = (probe.word if probe else None) or word
    if word and word.state == "failed":
        return NodeSeen(node, group, "failed", word.reason)
    if expected.report and (word is None or (word.entry and expected.entry not in ("", word.entry))):
        return NodeSeen(node, group, "starting", waiting_for, defect=not running)
    degraded = word.degraded if word else ()
    lacks = missing(expected, probe) if probe else ""
    if not lacks and expected.registers and registered is not None and not registered.good:
        lacks = registered.why
    if lacks:
        return NodeSeen(node, group, "booted", lacks, degraded, defect=True)
    if word and word.state == "degraded":
        return NodeSeen(node, group, "degraded", word.reason, degraded)
    return NodeSeen(node, group, "ready")


def missing(expected: Expected, probe: Probe) -> str:
    """Return what a node lacks of what it must show; empty if nothing."""
    lost = [path for path in expected.mounts if path not in probe.mounts]
    if lost:
        return f"{', '.join(lost)} is not mounted, or does not answer"
    if expected.efa and probe.efa is not None and probe.efa < expected.efa:
        return f"{probe.efa} of {expected.efa} EFA interfaces"
    if expected.efa and expected.libfabric and probe.domains is not None and probe.domains < expected.efa:
        return f"libfabric's provider efa offers {probe.domains} of {expected.efa} interfaces"
    return ""


__all__ = [
    "Expected",
    "Probe",
    "Registered",
    "Word",
    "efa_interfaces",
    "expectations",
    "judge",
    "last_word",
    "missing",
    "read_probe",
    "report_word",
]
