"""ParallelCluster's custom actions: our lifecycle scripts, from S3.

Head and login nodes name a folder that stays the same, because ParallelCluster refuses every update in which
their OnNodeStart or OnNodeConfigured differs; `OnNodeUpdated`, which may differ, brings them to the scripts
of the update. Each queue names the folder of its own content hash: its nodes are replaced when that changes,
and those of no other queue.
"""

from __future__ import annotations

from typing import Any

from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model import Cluster, Group
from ultracluster.parallelcluster.deployed_values import DeployedValues

FETCH = "files/from_s3.sh"
"""Fetches a folder of scripts and runs one of them; the only file that ParallelCluster itself downloads."""
IMEX = "files/imex_install"
ON_START = "parallelcluster_on_node_start"
ON_CONFIGURED = "parallelcluster_on_node_configured"

Actions = dict[str, Any]


def node_actions(cluster: Cluster, values: DeployedValues, group: str, *, head: bool = False) -> Actions:
    """The custom actions of the head node or a login pool; empty if there are none."""
    configured: list[list[str]] = []
    started: list[list[str]] = []
    if cluster.runs_scripts:
        started.append([ON_START, "--group", group])
        configured.append([ON_CONFIGURED, "--group", group])
    if head and installs_imex(cluster):
        configured.append([IMEX])
    stable, update = values.current_scripts_uri(cluster.environment.cluster_name), values.scripts_uri
    actions = {
        "OnNodeStart": _action(stable, started),
        "OnNodeConfigured": _action(stable, configured),
        "OnNodeUpdated": _action(update, configured),
    }
    return {key: action for key, action in actions.items() if action}


def queue_actions(cluster: Cluster, values: DeployedValues, queue: str, groups: list[str]) -> Actions:
    """The custom actions of a queue; a node of several groups is found by its instance type."""
    if not cluster.runs_scripts:
        return {}
    which = ["--group", *groups] if len(groups) == 1 else []
    uri = values.queue_scripts_uri(queue)
    return {
        "OnNodeStart": _action(uri, [[ON_START, *which]]),
        "OnNodeConfigured": _action(uri, [[ON_CONFIGURED, *which]]),
    }


def installs_imex(cluster: Cluster) -> bool:
    """Whether jobs run on UltraServers whose memory domain NVIDIA IMEX opens."""
    asked = isinstance(cluster.settings, ParallelCluster) and cluster.settings.imex
    return asked and any(has_imex(group) for group in cluster.with_role("compute").values())


def has_imex(group: Group) -> bool:
    """Whether the nodes of a group are parts of an NVIDIA UltraServer (NVL72)."""
    return group.type is not None and bool(group.type.imex)


def _action(uri: str, commands: list[list[str]]) -> Actions | None:
    scripts = [{"Script": f"{uri}/{FETCH}", "Args": [uri, *command]} for command in commands]
    if len(scripts) > 1:
        return {"Sequence": scripts}
    return scripts[0] if scripts else None
