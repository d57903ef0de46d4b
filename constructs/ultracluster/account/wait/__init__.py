"""Waiting until every node of a deployed environment is ready, or until it is clear that it will not be.

    result = wait(source_of(account, cluster), timeout=5400)
    result.outcome  # "ready", "failed" or "late"

The first node of a group is its canary: until one node of a group is ready, a failure in it ends the wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.wait.hyperpod import HyperPodSource
from ultracluster.account.wait.instances import InstanceSource
from ultracluster.account.wait.look import GroupSeen, Look, NodeSeen, Source
from ultracluster.account.wait.shell import RunCommand
from ultracluster.model import Cluster

EVERY = 30.0
"""Seconds between two looks."""
PATIENCE = 900.0
"""Seconds for which a node may lack what it should have when its scripts have ended: Slurm may know it
minutes later, and device plugins come as pods."""
LOST_LOOKS = 10
"""Looks in a row that may fail before the wait gives up."""
OPEN_LOOKS = 3
"""Looks in a row at which everything seen is ready, until what could not be asked is left open."""
HOUR = 60

Outcome = Literal["ready", "failed", "late"]


@dataclass(frozen=True, slots=True)
class Result:
    """How a wait ended."""

    outcome: Outcome
    look: Look
    """The last one."""
    reason: str = ""
    """Why it is not ready."""
    group: str = ""
    node: str = ""
    """Whom the reason is about; empty where it is about no single one."""
    seconds: float = 0.0


def source_of(account: Account, cluster: Cluster) -> HyperPodSource | InstanceSource:
    """Return where looks at a cluster come from."""
    if cluster.traits.hyperpod:
        return HyperPodSource(account, cluster)
    return InstanceSource(account, cluster, RunCommand(account))


def time_limit(cluster: Cluster) -> int:
    """Minutes after which waiting is of no use: deep health checks take two hours by themselves."""
    checked = any(group.settings.deep_health_checks for group in cluster.groups.values())
    return 4 * HOUR if checked else int(1.5 * HOUR)


def wait(
    source: Source,
    *,
    timeout: float,
    report: Callable[[Look], None] = lambda look: None,
    say: Callable[[str], None] = lambda line: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Look until every node is ready, something will not come by itself, or `timeout` seconds have passed.

    Args:
        report: called with each look.
        say: called with a line when a look failed and is tried again.
        sleep: takes seconds; exchanged in tests.
        clock: seconds of a clock that never goes back.

    Raises:
        AccountError: the first look failed, or too many in a row.
    """
    start = clock()
    watch = Watch(clock)
    lost = 0
    last: Look | None = None
    while True:
        try:
            last = source.look()
            lost = 0
        except AccountError as error:
            lost += 1
            if last is None or lost >= LOST_LOOKS:
                raise
            say(f"cannot be asked now, trying again: {error}")
        else:
            report(last)
            end = watch.judge(last)
            if end:
                return Result(end.outcome, last, end.reason, end.group, end.node, clock() - start)
        if clock() - start >= timeout:
            group, node, why = _behind(last)
            count = f"{timeout / 60:g}"
            minutes = "a minute has passed" if count == "1" else f"{count} minutes have passed"
            return Result("late", last, f"{minutes}: {why}", group, node, clock() - start)
        sleep(EVERY)


@dataclass(frozen=True, slots=True)
class End:
    """Why a wait ends."""

    outcome: Outcome
    reason: str = ""
    group: str = ""
    node: str = ""


class Watch:
    """Remembers over looks who was ready, who failed, and who lacks something for how long."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: dict[str, set[str]] = {}
        self._failed: dict[str, dict[str, str]] = {}
        self._vanished: dict[str, dict[str, str]] = {}
        self._pending: dict[str, dict[str, str]] = {}
        self._lacking: dict[str, tuple[str, float]] = {}
        self._open = 0

    def judge(self, look: Look) -> End | None:
        """Return whether the wait ends with this look."""
        for group in look.groups:
            self._remember(group)
        for group in look.groups:
            if group.failed:
                return End("failed", group.failed, group.name)
            if end := self._hopeless(group):
                return end
        if not look.complete:
            self._open = 0
            return None
        self._open = self._open + 1 if look.unproven else 0
        # what could not be asked once may be asked the next time
        return None if 0 < self._open < OPEN_LOOKS else End("ready")

    def _remember(self, group: GroupSeen) -> None:
        ready = self._ready.setdefault(group.name, set())
        failed = self._failed.setdefault(group.name, {})
        vanished = self._vanished.setdefault(group.name, {})
        ready |= {node.id for node in group.nodes if node.up}
        for node in group.nodes:
            why = node.why if node.state == "failed" else self._lasting(node)
            if why and node.id not in ready:
                failed.setdefault(node.id, why)
        ids = {node.id for node in group.nodes}
        for node, why in self._pending.get(group.name, {}).items():
            if node not in ids and node not in failed:
                vanished.setdefault(node, why)
        # a place without an instance (HyperPod's logical id) becomes an instance under another name
        self._pending[group.name] = {
            node.id: node.why for node in group.nodes if not node.up and node.id.startswith("i-")
        }

    def _lasting(self, node: NodeSeen) -> str:
        """Return what a node lacks for too long; empty if nothing."""
        if not node.defect:
            self._lacking.pop(node.id, None)
            return ""
        why, since = self._lacking.get(node.id, ("", 0.0))
        if why != node.why:
            why, since = self._lacking[node.id] = (node.why, self._clock())
        lasts = self._clock() - since
        minutes = f"{lasts / 60:.0f} minute{'s' * (lasts >= 90)}"
        return f"{why}, for {minutes}" if lasts >= PATIENCE else ""

    def _hopeless(self, group: GroupSeen) -> End | None:
        """Why a group is given up: its canary failed, nodes keep failing, or only failed ones are left."""
        failed, vanished = self._failed[group.name], self._vanished[group.name]
        if not failed and not vanished:
            return None
        node, why = next(iter((failed or vanished).items()))
        ended = "" if failed else "it ended before it was ready; when last seen: "
        if not self._ready[group.name]:
            if failed or len(vanished) > 1:
                return End("failed", f"{ended}{why}", group.name, node)
            return None
        count = len(failed) + len(vanished)
        if count > tolerated(group.wanted):
            reason = f"nodes keep failing, {count} so far, the first of them: {ended}{why}"
            return End("failed", reason, group.name, node)
        ids = {node.id for node in group.nodes if not node.up and not node.gone}
        left = [one for one in failed if one in ids]
        if left and len(left) == len(ids) and group.up + len(left) >= group.wanted:
            return End("failed", failed[left[0]], group.name, left[0])
        return None


def tolerated(wanted: int) -> int:
    """Nodes of a group that may fail on the way, once one is ready: the service replaces them."""
    return max(2, wanted // 10)


def _behind(look: Look | None) -> tuple[str, str, str]:
    """Group and node that are waited for, and why."""
    for group in look.groups if look else ():
        if group.complete:
            continue
        node = next((node for node in group.nodes if not node.up and not node.gone), None)
        count = f"{group.name} has {group.up} of {group.wanted} nodes ready"
        if node is None:
            return (
                group.name,
                "",
                f"{count}{': ' + group.note if group.note else '; the others have not come'}",
            )
        return group.name, node.id, f"{count}; {node.id}: {node.why or node.state}"
    return "", "", "nothing was seen"


__all__ = [
    "GroupSeen",
    "Look",
    "NodeSeen",
    "Result",
    "Source",
    "source_of",
    "time_limit",
    "tolerated",
    "wait",
]
