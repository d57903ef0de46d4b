"""What one look at a cluster says: groups, their nodes, and how far each node is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["starting", "booted", "ready", "degraded", "failed"]
"""`starting`: no end of its scripts is known yet; `booted`: they have ended, a proof is missing; `ready`:
every proof is there; `degraded`: the same, without components that training can do without; `failed`: it will
not come by itself."""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node at one look."""

    id: str
    """Instance id; HyperPod's logical id while there is no instance."""
    group: str
    state: State
    why: str = ""
    """What it waits for, or why it failed."""
    degraded: tuple[str, ...] = ()
    """Components that are missing."""
    defect: bool = False
    """Whether what is missing should be there by now: it fails the node if it lasts."""
    gone: bool = False
    """Whether the instance is not in the cluster any more: nothing waits for it."""

    @property
    def up(self) -> bool:
        return self.state in ("ready", "degraded")


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """One node group at one look."""

    name: str
    wanted: int
    """Nodes that the service is asked for."""
    nodes: tuple[NodeSeen, ...] = ()
    note: str = ""
    """What the service says, or that fewer are asked for than the file has."""
    failed: str = ""
    """Why the service will not bring the group up by itself."""

    @property
    def up(self) -> int:
        return sum(node.up for node in self.nodes)

    @property
    def complete(self) -> bool:
        return not self.failed and self.up >= self.wanted and all(node.up or node.gone for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at every group."""

    groups: tuple[GroupSeen, ...]
    unproven: tuple[str, ...] = ()
    """What could not be asked from here, each with the command that would: nodes count as ready without it,
    and the end of the wait says so."""

    @property
    def complete(self) -> bool:
        return all(group.complete for group in self.groups)

    @property
    def nodes(self) -> Iterable[NodeSeen]:
        return (node for group in self.groups for node in group.nodes)


class Source(Protocol):
    """Where looks come from: one class for each way in which AWS runs nodes."""

    def look(self) -> Look:
        """Ask AWS once.

        Raises:
            AccountError: it cannot be asked now.
        """
        ...
