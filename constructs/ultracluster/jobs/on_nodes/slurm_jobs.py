"""What slurmctld says of jobs on nodes: asked on a node that has Slurm's commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ultracluster.account.aws import AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Shell
from ultracluster.jobs.on_nodes.running_job import Running, together

STATES = "RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED,SIGNALING"
"""States of a job that holds nodes (squeue manual, "JOB STATE CODES")."""
_NAMES = r"""
set -o pipefail
asked={asked}
nodes=$(timeout 30 sinfo --Node --noheader --format='%N %o' | sort -u) || exit 1
slurm_nodes=()
while read -r name address; do
  for one in $asked; do
    [[ $one != "$name" && $one != "$address" ]] || { slurm_nodes+=("$name|$address") && break; }
  done
done <<<"$nodes"
"""
_ASK = r"""
for node in "${slurm_nodes[@]}"; do
  name=${node%|*}
  jobs=$(timeout 30 squeue --noheader --states={states} --nodelist="$name" --format='%i|%u|%j') || exit 1
  echo "node|$node"
  [[ -z $jobs ]] || sed "s/^/job|$name|/" <<<"$jobs"
done
"""
"""Prints nothing of other nodes: Run Command keeps 24,000 characters of an answer."""


def jobs_on_slurm(nodes: Sequence[Node], entrance: Node | None, shell: Shell) -> Running:
    """The jobs that hold nodes, by slurmctld.

    Args:
        nodes: those asked about; one that Slurm does not know has no job.
        entrance: a node on which Slurm's commands are.
        shell: how a command runs there.
    """
    nameless = [node.name for node in nodes if not node.dns]
    if nameless:
        return Running(unknown=f"{', '.join(nameless)} has no host name by which Slurm could be asked")
    if entrance is None:
        return Running(unknown="no node runs on which Slurm could be asked")
    try:
        answer = shell.run([entrance], script(nodes))[entrance.id]
    except AccountError as error:
        return Running(unknown=str(error))
    if not answer.good:
        said = answer.why or " ".join(answer.text.split())[-200:] or f"status {answer.status}"
        return Running(unknown=f"Slurm did not answer on {entrance.name}: {said}")
    return read(answer.text, nodes)


def script(nodes: Sequence[Node]) -> str:
    """A bash script that lists the jobs of nodes."""
    return names(nodes) + _ASK.replace("{states}", STATES)


def names(nodes: Sequence[Node]) -> str:
    """The start of a bash script: the array `slurm_nodes` has `name|address` of each node.

    Slurm may know nodes by host name or by names of its own; then `sinfo` has the address behind each.
    """
    hosts = [node.dns.split(".")[0] for node in nodes]
    asked = [part for host in hosts for part in (host, host.removeprefix("ip-").replace("-", "."))]
    return _NAMES.replace("{asked}", shlex.quote(" ".join(asked)))


def read(text: str, nodes: Sequence[Node]) -> Running:
    """Return what the script printed."""
    known: dict[str, Node] = {}
    places: list[tuple[str, str, str, str]] = []
    for line in text.splitlines():
        words = line.split("|", 4)
        if len(words) == 3 and words[0] == "node":
            name, address = words[1].strip(), words[2].strip()
            node = next((node for node in nodes if node.answers_to(name) or node.answers_to(address)), None)
            if node:
                known[name] = node
        elif len(words) == 5 and words[0] == "job" and words[1] in known:
            places.append((words[2].strip(), words[3].strip(), words[4].strip(), known[words[1]].name))
    return Running(together(places))
