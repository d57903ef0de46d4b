"""What Slurm says of its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ultracluster.account.nodes.node import Node
from ultracluster.account.nodes.slurm_reason import explain
from ultracluster.account.wait.evidence import Registered

SINFO = "sinfo --Node --noheader --format='%N|%o|%R|%T|%E'"
"""Name, address, partition, state and reason of every node, one line for each partition of it."""
_GOOD = ("idle", "allocated", "mixed", "completing", "reserved", "planned", "maint", "blocked")
"""States of a node that has registered (sinfo manual, "NODE STATE CODES")."""
_FLAGS = {
    "*": "does not answer slurmctld",
    "~": "is powered off by Slurm",
    "#": "is being started by Slurm",
    "!": "is about to be powered off by Slurm",
    "%": "is being powered off by Slurm",
    "^": "is being rebooted by Slurm",
}
"""What the sign behind a state means where the node cannot take jobs; with `$`, `@`, `+` and `-` it can."""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """One node as slurmctld knows it."""

    name: str
    address: str
    partition: str
    state: str
    """As sinfo writes it, with its sign."""
    reason: str


def read_sinfo(text: str) -> list[SlurmNode]:
    """The lines of `SINFO`, each node once, in the first of its partitions."""
    nodes: dict[str, SlurmNode] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split("|", 4)]
        if len(words) == 5 and words[0]:
            name, address, partition, state, reason = words
            reason = "" if reason.lower() in ("none", "n/a") else reason
            nodes.setdefault(name, SlurmNode(name, address, partition, state.lower(), reason))
    return list(nodes.values())


def slurm_node_of(node: Node, nodes: Iterable[SlurmNode]) -> SlurmNode | None:
    """The node as slurmctld knows it: by its name or its address."""
    return next((one for one in nodes if node.answers_to(one.name) or node.answers_to(one.address)), None)


def registered(node: Node, nodes: Iterable[SlurmNode]) -> Registered:
    """Return whether slurmctld takes jobs for a node."""
    found = slurm_node_of(node, nodes)
    if found is None:
        return Registered(False, "slurmctld does not know it")
    state = found.state.rstrip("*~#!%^$@+-")
    reason = f": {found.reason}" if found.reason else ""
    if explanation := explain(found.reason):
        reason += f" ({explanation.meaning})"
    for sign, why in _FLAGS.items():
        if found.state.endswith(sign):
            return Registered(False, f"Slurm's node {found.name} {why}{reason}")
    if state in _GOOD:
        return Registered(True)
    return Registered(False, f"Slurm's node {found.name} is {found.state}{reason}")
