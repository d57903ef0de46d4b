"""What nodes and scheduler are asked on the way, the same for every orchestrator.

A node that has shown all is not asked again: its fabric and its mounts do not come and go while a cluster is
being made. What cannot be asked from here becomes a line of `unproven`, and nothing is held against a node.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from ultracluster.config import Environment
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.operations.aws import Account, AccountError
from ultracluster.operations.nodes import Node
from ultracluster.operations.wait import slurm
from ultracluster.operations.wait.evidence import Expected, Probe, Registered, read_probe
from ultracluster.operations.wait.kubernetes_api import KubernetesApi
from ultracluster.operations.wait.kubernetes_api import registered as kubernetes_registered
from ultracluster.operations.wait.shell import Shell

Judge = Callable[[Node, Expected], Registered | None]


class Proof:
    """Asks nodes and scheduler, and remembers what is proven.

    Attributes:
        unproven: what could not be asked at the last look, with the command that would.
        nodes: Slurm's nodes at the last look, for who submits a job.
    """

    def __init__(self, account: Account, environment: Environment, shell: Shell | None) -> None:
        """Nothing is asked yet.

        Args:
            shell: how commands run on nodes; none where that is not to be tried.
        """
        self._account, self._environment, self._shell = account, environment, shell
        self._proven: dict[str, Probe] = {}
        self.nodes: list[slurm.SlurmNode] = []
        self.unproven: list[str] = []

    def begin(self) -> None:
        """Start a look."""
        self.unproven = []

    def probes(
        self, nodes: Sequence[Node], paths: Sequence[str], complete: Callable[[Node, Probe], bool]
    ) -> Mapping[str, Probe | str]:
        """What each node shows, or why it does not, by instance id; empty where nobody can be asked.

        Args:
            paths: mounts to look at.
            complete: whether a node has shown all that is asked of it.
        """
        found: dict[str, Probe | str] = {
            node.id: self._proven[node.id] for node in nodes if node.id in self._proven
        }
        asked = [node for node in nodes if node.id not in self._proven]
        if not asked or self._shell is None:
            return found
        try:
            answers = self._shell.run(asked, probe_script(paths))
        except AccountError as error:
            self._add(f"mounts and interfaces as nodes show them: {error}")
            return found
        for node in asked:
            answer = answers[node.id]
            probe = read_probe(answer.text) if answer.good else None
            if probe is None:
                found[node.id] = answer.why or f"its probe ended with status {answer.status}"
            else:
                found[node.id] = probe
                if complete(node, probe):
                    self._proven[node.id] = probe
        return found

    def scheduler(self, entrances: Sequence[Node]) -> Judge:
        """How to ask the scheduler of a node; it is read once for each look.

        Args:
            entrances: nodes on which Slurm's commands run, the best first.
        """
        if self._environment.orchestrator.kind in KUBERNETES:
            return self._kubernetes()
        return self._slurm(entrances)

    def _slurm(self, entrances: Sequence[Node]) -> Judge:
        if self._shell is None or not entrances:
            return lambda node, expected: None
        name = self._environment.name
        by_hand = f"`ultracluster connect {name}`, then `sinfo --Node --long`"
        try:
            answer = self._shell.run(entrances[:1], slurm.SINFO)[entrances[0].id]
        except AccountError as error:
            self._add(f"whether Slurm has registered the nodes: {error}; {by_hand}")
            return lambda node, expected: None
        if not answer.good:
            why = (
                answer.why or f"sinfo on {entrances[0].name} ended with {answer.status}: {answer.text[-200:]}"
            )
            silent = Registered(False, f"Slurm cannot be asked yet: {why}")
            return lambda node, expected: silent
        self.nodes = slurm.read_sinfo(answer.text)
        return lambda node, expected: slurm.registered(node, self.nodes)

    def _kubernetes(self) -> Judge:
        try:
            items: list[dict[str, Any]] = KubernetesApi(self._account, self._environment.cluster_name).nodes()
        except AccountError as error:
            name = self._environment.cluster_name
            self._add(
                f"whether Kubernetes calls the nodes Ready: {error}; `kubectl get nodes` tells ({name})"
            )
            return lambda node, expected: None
        return lambda node, expected: kubernetes_registered(node, expected, items)

    def _add(self, line: str) -> None:
        if line not in self.unproven:
            self.unproven.append(line)


def probe_script(paths: Sequence[str]) -> str:
    """A bash script that runs `node_probe.py` on a node."""
    source = resources.files("ultracluster.operations.wait").joinpath("node_probe.py").read_bytes()
    packed = base64.b64encode(source).decode()
    return f"echo {packed} | base64 -d | python3 -IS - {shlex.join(paths)}"
