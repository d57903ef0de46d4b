"""ParallelCluster's custom actions: our lifecycle scripts, from S3.

Head and login nodes name a folder that stays the same, because ParallelCluster refuses every update in which
their OnNodeStart or OnNodeConfigured differs; `OnNodeUpdated`, which may differ, brings them to the scripts
of the update. Each queue names the folder of its own content hash: its nodes are replaced when that changes,
and those of no other queue.
"""

from __future__ import annotations

from typing import Any

from ultracluster.clusters.parallelcluster.deployed_values import DeployedValues
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model.types import instance_type_of

FETCH = "files/from_s3.sh"
"""Fetches a folder of scripts and runs one of them; the only file that ParallelCluster itself downloads."""
IMEX = "files/imex_install"
ON_START = "parallelcluster_on_node_start"
ON_CONFIGURED = "parallelcluster_on_node_configured"

Actions = dict[str, Any]


def node_actions(
    environment: Environment, values: DeployedValues, group: str, *, head: bool = False
) -> Actions:
    """The custom actions of the head node or a login pool; empty if there are none."""
    configured: list[list[str]] = []
    started: list[list[str]] = []
    if _runs_scripts(environment):
        started.append([ON_START, "--group", group])
        configured.append([ON_CONFIGURED, "--group", group])
    if head and wants_imex(environment):
        configured.append([IMEX])
    stable, update = values.current_scripts_uri(environment.cluster_name), values.scripts_uri
    actions = {
        "OnNodeStart": _action(stable, started),
        "OnNodeConfigured": _action(stable, configured),
        "OnNodeUpdated": _action(update, configured),
    }
    return {key: action for key, action in actions.items() if action}


def queue_actions(environment: Environment, values: DeployedValues, queue: str, groups: list[str]) -> Actions:
    """The custom actions of a queue; a node of several groups is found by its instance type."""
    if not _runs_scripts(environment):
        return {}
    which = ["--group", *groups] if len(groups) == 1 else []
    uri = values.queue_scripts_uri(queue)
    return {
        "OnNodeStart": _action(uri, [[ON_START, *which]]),
        "OnNodeConfigured": _action(uri, [[ON_CONFIGURED, *which]]),
    }


def wants_imex(environment: Environment) -> bool:
    """Whether jobs run on UltraServers whose memory domain NVIDIA IMEX opens."""
    orchestrator = environment.orchestrator
    return (
        isinstance(orchestrator, ParallelCluster)
        and orchestrator.imex
        and any(has_imex(environment, name) for name in environment.groups("compute"))
    )


def has_imex(environment: Environment, group: str) -> bool:
    """Whether the nodes of a group are parts of an NVIDIA UltraServer (NVL72)."""
    kind = instance_type_of(environment, environment.node_groups[group])
    return kind is not None and bool(kind.imex)


def _runs_scripts(environment: Environment) -> bool:
    orchestrator = environment.orchestrator
    return isinstance(orchestrator, ParallelCluster) and orchestrator.lifecycle != "none"


def _action(uri: str, commands: list[list[str]]) -> Actions | None:
    scripts = [{"Script": f"{uri}/{FETCH}", "Args": [uri, *command]} for command in commands]
    if len(scripts) > 1:
        return {"Sequence": scripts}
    return scripts[0] if scripts else None
