"""Waiting until instances that were terminated are gone, and their service has launched others.

EC2's `running` is not yet a node that takes jobs: `ultracluster wait` proves that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from ultracluster.account.aws import Account
from ultracluster.account.nodes.ec2 import list_nodes
from ultracluster.account.nodes.hyperpod_wait import Seen, follow
from ultracluster.account.nodes.node import Node
from ultracluster.account.services import Managed, managed_groups
from ultracluster.model import Cluster

_THERE = ("pending", "running")


def counts(nodes: Sequence[Node]) -> Mapping[str, int]:
    """Return how many nodes each group has that run or start."""
    return Counter(node.group for node in nodes if node.status in _THERE)


def look(
    managed: Sequence[Managed], nodes: Sequence[Node], before: Mapping[str, int], leaving: Collection[str]
) -> Seen:
    """Judge one look.

    Args:
        managed: groups as their service has them.
        before: nodes that each watched group had, by its name among the nodes. A group comes back to that,
            but not above what its service asks for: what a scheduler had started comes with the next job.
        leaving: instance ids that must be gone.
    """
    asked = {one.listed_as: one for one in managed}
    busy: list[str] = []
    ready = wanted = 0
    for name, had in sorted(before.items()):
        group = asked.get(name)
        target = min(had, group.wanted) if group else 0
        members = [node for node in nodes if node.group == name and node.id not in leaving]
        up = sum(node.status == "running" for node in members)
        ready, wanted = ready + min(up, target), wanted + target
        if up < target:
            says = (group.failed or group.note) if group else ""
            busy.append(f"{name} has {up} of {target} nodes running{': ' + says if says else ''}")
    there = {node.id for node in nodes} & set(leaving)
    busy += [f"{name} is still there" for name in sorted(there)]
    return Seen(ready, wanted, tuple(busy), ())


def wait(
    account: Account,
    cluster: Cluster,
    *,
    before: Mapping[str, int],
    leaving: Collection[str],
    timeout: float = 3600.0,
    report: Callable[[Seen], None] = lambda seen: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Seen:
    """Look until the old instances are gone and as many run as before, or `timeout` seconds have passed.

    Args:
        before: `counts` of the groups that lose nodes, from before they were asked for.
        leaving: instance ids that a replacement takes away.
        report: called with each look.
        sleep: takes seconds; exchanged in tests.
        clock: seconds of a clock that never goes back.

    Raises:
        AccountError: the nodes cannot be read any more; what was asked goes on all the same.
    """

    def once() -> Seen:
        return look(managed_groups(account, cluster), list_nodes(account, cluster), before, leaving)

    return follow(once, settle=0.0, timeout=timeout, report=report, sleep=sleep, clock=clock)
