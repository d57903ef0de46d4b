"""Waiting until HyperPod has done what it was asked: counts, not the cluster's status, tell.

A cluster with continuous provisioning is InService while it scales, so what counts is that each group's
current count is its target count, that its nodes run, and that the old instances are gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ultracluster.account.aws import Account
from ultracluster.account.nodes.hyperpod import LiveCluster, list_nodes, read_cluster
from ultracluster.account.nodes.node import Node

EVERY = 15.0
"""Seconds between two looks."""
SETTLE = 180.0
"""Seconds within which a request shows in a node's state; a reboot is seen to take one to three minutes."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at the groups."""

    ready: int
    """Nodes that run."""
    wanted: int
    """Sum of the groups' target counts."""
    busy: tuple[str, ...]
    """What is not yet as it should be, in words."""
    failed: tuple[str, ...]
    """Nodes whose recovery has failed; HyperPod does not try again by itself."""


def look(
    cluster: LiveCluster, nodes: Sequence[Node], groups: Collection[str], leaving: Collection[str]
) -> Seen:
    """Judge one look.

    Args:
        groups: instance groups to watch; all of them if empty.
        leaving: instance ids that must be gone.
    """
    watched = [group for group in cluster.groups if not groups or group.name in groups]
    members = [node for node in nodes if not groups or node.group in groups]
    busy = [
        f"{group.name} has {group.current} of {group.target}"
        for group in watched
        if group.current != group.target
    ]
    busy += [f"{node.name} is still there" for node in members if node.id and node.id in leaving]
    failed = [node.name for node in members if node.status == "Failure" and node.id not in leaving]
    busy += [
        f"{node.name} is {node.status}"
        for node in members
        if node.status not in ("Running", "Failure") and node.id not in leaving
    ]
    return Seen(
        ready=sum(node.status == "Running" and node.id not in leaving for node in members),
        wanted=sum(group.target for group in watched),
        busy=tuple(busy),
        failed=tuple(failed),
    )


def wait(
    account: Account,
    cluster: str,
    *,
    groups: Collection[str],
    leaving: Collection[str] = (),
    settle: float = 0.0,
    timeout: float = 3600.0,
    report: Callable[[Seen], None] = lambda seen: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Seen:
    """Look until nothing is busy, or `timeout` seconds have passed; the last look tells which.

    Args:
        leaving: instance ids that a replacement or deletion takes away.
        settle: seconds in which nothing busy is not yet believed, for requests that keep the instances.
        report: called with each look.
        sleep: takes seconds; exchanged in tests.
        clock: seconds of a clock that never goes back.

    Raises:
        AccountError: the cluster cannot be read any more; what was asked goes on all the same.
    """

    def once() -> Seen:
        state = read_cluster(account, cluster)
        return look(state, list_nodes(account, state), groups, leaving)

    return follow(once, settle=settle, timeout=timeout, report=report, sleep=sleep, clock=clock)


def follow(
    once: Callable[[], Seen],
    *,
    settle: float,
    timeout: float,
    report: Callable[[Seen], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> Seen:
    """Look until nothing is busy, or `timeout` seconds have passed.

    Args:
        once: one look.
        settle: seconds in which nothing busy is not yet believed.
        sleep: takes seconds; exchanged in tests.
        clock: seconds of a clock that never goes back.
    """
    start = clock()
    was_busy = settle <= 0
    while True:
        seen = once()
        report(seen)
        passed = clock() - start
        was_busy = was_busy or bool(seen.busy) or passed >= settle
        if (was_busy and not seen.busy) or passed >= timeout:
            return seen
        sleep(EVERY)
