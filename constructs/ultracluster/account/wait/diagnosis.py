"""What is asked when a wait has failed: what `doctor` asks, and the log of the node in question."""

from __future__ import annotations

from collections.abc import Callable

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.doctor import Examination, examine
from ultracluster.account.wait import Result
from ultracluster.account.wait.hyperpod import HyperPodSource
from ultracluster.account.wait.instances import InstanceSource
from ultracluster.model import Cluster

HOURS = 24
"""How far back events and logs are read."""
LOG = "/var/log/ultracluster/run.log"
"""All that the scripts write, on every node (lib/log.sh)."""
SHIPPED = "/var/log/provision/provisioning.log"
"""Describe what older scripts write."""
TAIL = 40


def examine_after(
    account: Account,
    cluster: Cluster,
    source: HyperPodSource | InstanceSource,
    result: Result,
    progress: Callable[[str], None] = lambda step: None,
) -> Examination:
    """Everything that tells why the wait failed.

    Args:
        progress: called with the name of each source before it is asked.
    """
    node, group = result.node, result.group
    examination = examine(
        account, cluster, hours=HOURS, nodes={node: group} if node else None, progress=progress
    )
    running = [one for one in source.nodes if one.id == node and one.status == "running"]
    if isinstance(source, InstanceSource) and running:
        progress(f"log of {node}")
        try:
            command = f"tail -n {TAIL} {LOG} 2>/dev/null || tail -n {TAIL} {SHIPPED}"
            answer = source.shell.run(running, command)[node]
        except AccountError:
            return examination  # the rest still answers
        if answer.text.strip():
            examination.logs[f"{node}:{LOG}"] = answer.text.splitlines()
    return examination
