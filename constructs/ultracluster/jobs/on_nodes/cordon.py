"""Close nodes to new jobs before they are taken, and open those again that were not taken.

    closed = cordon_nodes(fleet, nodes, shell, "replace")
    closed.unknown               # why nodes could not be closed; empty where all are
    uncordon_nodes(fleet, closed, shell)

Only what `cordon` closed is opened: a node that somebody else drained stays as it was.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ultracluster.account.aws import AccountError
from ultracluster.account.kubernetes_api import KubernetesApi, RefusedError, is_node
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Shell
from ultracluster.jobs.on_nodes.slurm_jobs import names

REASON = "operator:ultracluster-nodes"
"""Start of the drain reason in Slurm; neither our health checks nor HyperPod act on it."""
_CLOSE = r"""
for node in "${slurm_nodes[@]}"; do
  name=${node%|*}
  state=$(timeout 30 sinfo --noheader --nodes="$name" --format=%T | head -n 1) || exit 1
  case $state in
    drain* | down* | fail*) continue ;; # closed by somebody else
  esac
  timeout 30 scontrol update nodename="$name" state=drain reason={reason} || exit 1
  echo "closed|$node"
done
"""
_OPEN = r"""
for name in {names}; do
  reason=$(timeout 30 sinfo --noheader --nodes="$name" --format=%E | head -n 1) || exit 1
  [[ $reason == {reason}* ]] || continue # somebody else closed it meanwhile
  timeout 30 scontrol update nodename="$name" state=resume || exit 1
done
"""


@dataclass(frozen=True, slots=True)
class Cordoned:
    """Nodes that are closed to new jobs."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in Slurm or Kubernetes of the nodes that this command closed, by our name of the node."""
    unknown: str = ""
    """Why not every node is known to be closed; empty where each is."""

    def without(self, nodes: Collection[str]) -> Cordoned:
        """Those that are not among `nodes`, by our names."""
        return Cordoned({node: name for node, name in self.names.items() if node not in nodes})


def cordon_nodes(fleet: Fleet, nodes: Sequence[Node], shell: Shell, action: str) -> Cordoned:
    """Close nodes to new jobs; running jobs continue.

    Args:
        shell: how a command runs on the cluster's nodes.
        action: stands in the reason, for who reads it in Slurm.
    """
    there = [node for node in nodes if node.id]
    if not there or (action == "reboot" and fleet.wanted.traits.own_stack):
        return Cordoned()  # the daemon of ParallelCluster terminates a node that is drained
    if fleet.wanted.traits.kubernetes:
        return _cordon_kubernetes(fleet, there)
    script = names(there) + _CLOSE.replace("{reason}", shlex.quote(f"{REASON}-{action}"))
    text, why = _on_slurm(fleet, shell, script)
    closed: dict[str, str] = {}
    for word, name, address in (line.split("|") for line in text.splitlines() if line.count("|") == 2):
        node = next((one for one in there if one.answers_to(name) or one.answers_to(address)), None)
        if word == "closed" and node:
            closed[node.name] = name
    return Cordoned(closed, why)


def uncordon_nodes(fleet: Fleet, cordoned: Cordoned, shell: Shell) -> str:
    """Open nodes again.

    Returns:
        Why a node stays closed; empty where all are open.
    """
    if not cordoned.names:
        return ""
    if fleet.wanted.traits.kubernetes:
        return _uncordon_kubernetes(fleet, cordoned.names.values())
    script = _OPEN.replace("{names}", " ".join(map(shlex.quote, cordoned.names.values())))
    return _on_slurm(fleet, shell, script.replace("{reason}", shlex.quote(REASON)))[1]


def _on_slurm(fleet: Fleet, shell: Shell, script: str) -> tuple[str, str]:
    """Return what a script printed, and why it did not come to its end."""
    entrance = fleet.entrance()
    if entrance is None:
        return "", "no node runs on which Slurm could be asked"
    try:
        answer = shell.run([entrance], script)[entrance.id]
    except AccountError as error:
        return "", str(error)
    if answer.good:
        return answer.text, ""
    said = answer.why or " ".join(answer.text.split())[-200:] or f"status {answer.status}"
    return answer.text, f"Slurm did not answer on {entrance.name}: {said}"


def _cordon_kubernetes(fleet: Fleet, nodes: Sequence[Node]) -> Cordoned:
    closed: dict[str, str] = {}
    try:
        api = KubernetesApi(fleet.account, fleet.wanted.cluster_name)
        for item in api.nodes():
            node = next((node for node in nodes if is_node(item, node)), None)
            if node and not item.get("spec", {}).get("unschedulable"):
                name = str(item["metadata"]["name"])
                _schedule(api, name, unschedulable=True)
                closed[node.name] = name
    except AccountError as error:
        return Cordoned(closed, str(error))
    return Cordoned(closed)


def _uncordon_kubernetes(fleet: Fleet, names: Iterable[str]) -> str:
    try:
        api = KubernetesApi(fleet.account, fleet.wanted.cluster_name)
        for name in names:
            try:
                _schedule(api, name, unschedulable=False)
            except RefusedError as error:
                if error.status != HTTPStatus.NOT_FOUND:  # a replaced node is another one
                    raise
    except AccountError as error:
        return str(error)
    return ""


def _schedule(api: KubernetesApi, name: str, *, unschedulable: bool) -> None:
    body: dict[str, Any] = {"spec": {"unschedulable": unschedulable or None}}
    api.request(
        f"/api/v1/nodes/{quote(name, safe='')}", method="PATCH", body=body,
        content="application/merge-patch+json",
    )  # fmt: skip
