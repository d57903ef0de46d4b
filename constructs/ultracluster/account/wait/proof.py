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

from ultracluster.account.aws import Account, AccountError
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait import slurm
from ultracluster.account.wait.evidence import Expected, Probe, Registered, read_probe
from ultracluster.account.wait.kubernetes_nodes import registered as kubernetes_registered
from ultracluster.account.wait.shell import Answer, Shell
from ultracluster.model import Cluster
from ultracluster.model.devices import claims_efa
from ultracluster.scripts_folder import scripts_folder

Judge = Callable[[Node, Expected], Registered | None]


class Proof:
    """Asks nodes and scheduler, and remembers what is proven.

    Attributes:
        unproven: what could not be asked at the last look, with the command that would.
        nodes: Slurm's nodes at the last look, for who submits a job.
    """

    def __init__(self, account: Account, cluster: Cluster, shell: Shell, *, needed: bool = False) -> None:
        """Nothing is asked yet.

        Args:
            shell: how commands run on nodes.
            needed: whether nothing else tells how the nodes' scripts ended.
        """
        self._account, self._cluster, self._shell, self._needed = account, cluster, shell, needed
        self._proven: dict[str, Probe] = {}
        self._seen: dict[str, Probe] = {}
        self.nodes: list[slurm.SlurmNode] = []
        self.unproven: list[str] = []

    def begin(self) -> None:
        """Start a look."""
        self.unproven = []

    def probes(
        self, nodes: Sequence[Node], paths: Sequence[str], complete: Callable[[Node, Probe], bool]
    ) -> Mapping[str, Probe | str]:
        """Return what each node shows, or why it does not, by instance id; empty where no node can be asked.

        Args:
            paths: mounts to look at.
            complete: whether a node has shown all that is asked of it.
        """
        found: dict[str, Probe | str] = {
            node.id: self._proven[node.id] for node in nodes if node.id in self._proven
        }
        unproven = [node for node in nodes if node.id not in self._proven]
        if not unproven:
            return found
        try:
            answers = self._shell.run(unproven, probe_script(paths))
        except AccountError as error:
            if self._needed:
                raise
            self.note(f"mounts and interfaces as nodes show them: {error}")
            return found
        for node in unproven:
            answer = answers[node.id]
            probe = read_probe(answer.text) if answer.good else None
            if probe is None:
                found[node.id] = answer.why or f"its probe ended with status {answer.status}"
            else:
                found[node.id] = self._seen[node.id] = probe
                if complete(node, probe):
                    self._proven[node.id] = probe
        return found

    def scheduler(self, entrances: Sequence[Node]) -> Judge:
        """Return how to ask the scheduler of a node; it is read once for each look.

        Args:
            entrances: nodes on which Slurm's commands run, the best first.
        """
        if self._cluster.traits.kubernetes:
            return self._kubernetes()
        return self._slurm(entrances)

    def _slurm(self, entrances: Sequence[Node]) -> Judge:
        if not entrances:
            return lambda node, expected: None
        name = self._cluster.name
        by_hand = f"`ultracluster connect {name}`, then `sinfo --Node --long`"
        try:
            answer = self._shell.run(entrances[:1], slurm.SINFO)[entrances[0].id]
        except AccountError as error:
            answer = Answer(why=str(error))
        if answer.status is None:
            self.note(f"whether Slurm has registered the nodes: {answer.why}; {by_hand}")
            return lambda node, expected: None
        if not answer.good:
            said = answer.text.strip()[-200:]
            where = entrances[0].name
            why = f"Slurm cannot be asked yet: sinfo on {where} ended with {answer.status}: {said}"
            silent = Registered(False, why)
            return lambda node, expected: silent
        self.nodes = slurm.read_sinfo(answer.text)
        return lambda node, expected: slurm.registered(node, self.nodes)

    def _kubernetes(self) -> Judge:
        try:
            api = KubernetesApi(self._account, self._cluster.cluster_name)
            items: list[dict[str, Any]] = api.nodes()
            claimed = api.claimable_efa() if claims_efa(self._cluster) else None
        except AccountError as error:
            return self._kubelets(str(error))
        return lambda node, expected: kubernetes_registered(node, expected, items, claimed=claimed)

    def _kubelets(self, why: str) -> Judge:
        """Return what the nodes' own kubelets say, where the API cannot be asked from here."""

        def judge(node: Node, expected: Expected) -> Registered | None:
            probe = self._seen.get(node.id)
            if probe is None or not probe.kubelet:
                self.note(f"whether Kubernetes calls the nodes Ready: {why}; `kubectl get nodes` tells")
                return None
            if probe.kubelet == "registered":
                return Registered(True)
            return Registered(False, f"its kubelet is {probe.kubelet} and did not register it")

        return judge

    def note(self, line: str) -> None:
        """Add a line to what could not be asked."""
        if line not in self.unproven:
            self.unproven.append(line)


def probe_script(paths: Sequence[str]) -> str:
    """A bash script that counts EFA devices on a node and runs `node_probe.py` there."""
    counter = (scripts_folder() / "lib/devices.sh").read_bytes() + b"devices::count efa\n"
    source = resources.files("ultracluster.account.wait").joinpath("node_probe.py").read_bytes()
    packed = base64.b64encode(source).decode()
    count = f"$(echo {base64.b64encode(counter).decode()} | base64 -d | bash)"
    return f'echo {packed} | base64 -d | python3 -IS - "{count}" {shlex.join(paths)}'
