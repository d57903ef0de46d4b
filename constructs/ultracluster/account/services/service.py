"""What this room asks of a service that runs nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ultracluster.account.aws import Account
from ultracluster.model import Cluster

_LOST = ("CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED", "DELETING", "SUSPENDED")
"""States from which a group of EKS or PCS does not come up by itself."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Tags by which the instances of one cluster are known; each service sets its own."""

    values: Mapping[str, tuple[str, ...]]
    """By key of the tag: an instance that has one of the values of any key is one of the cluster."""
    group_of: Callable[[Mapping[str, str]], str]
    """The group of an instance, from its tags."""
    is_controller: Callable[[Mapping[str, str]], bool] = lambda tags: False

    def on(self, tags: Mapping[str, str]) -> bool:
        """Return whether an instance with these tags is one of the cluster."""
        return any(tags.get(key) in values for key, values in self.values.items())


@dataclass(frozen=True, slots=True)
class Managed:
    """One group as its service has it."""

    name: str
    """In the file; of ParallelCluster's compute nodes the queue, with which its instances are marked."""
    listed_as: str
    """Name under which `Marks.group_of` has its nodes."""
    members: tuple[str, ...]
    """Its groups of the file."""
    wanted: int
    note: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that runs nodes which are instances of the account.

    Every function may raise any of `AWS_ERRORS`.
    """

    title: str
    marks: Callable[[Account, Cluster], Marks]
    groups: Callable[[Account, Cluster], list[Managed]]
    """Every group of the file whose nodes it runs, as the service has it, in the order of the file."""
    complaints: Callable[[Account, str], list[tuple[str, str]]] | None = None
    """What the service says is wrong with a cluster: where, and what. None where its stack says it all."""
    statuses: Callable[[Account], dict[str, str]] | None = None
    """Clusters of the Region by name, where the service creates one at a time; None elsewhere."""


def stated(cluster: Cluster, name: str, listed: str, wanted: int, status: str, says: str) -> Managed:
    """A group from what its service says of it."""
    count = cluster.groups[name].settings.count
    note = says or (f"{wanted} of the file's {count} nodes are asked for now" if wanted < count else "")
    failed = pair(f"the group is {status}", says) if status in _LOST else ""
    return Managed(name, listed, (name,), wanted, note, failed)


def in_order(cluster: Cluster, found: dict[str, Managed]) -> list[Managed]:
    """As the file has them; a group that the service lacks is one that never comes up, if it has nodes."""
    for name, group in cluster.in_account.items():
        if name not in found and group.settings.count:
            failed = "its service has no such group: deploy the file first"
            found[name] = Managed(name, name, (name,), group.settings.count, failed=failed)
    return [found[name] for name in cluster.groups if name in found]


def pair(head: str | None, tail: str | None) -> str:
    """`head: tail`, as far as they are there."""
    return ": ".join(part for part in (head, tail) if part)
