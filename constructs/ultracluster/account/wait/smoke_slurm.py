"""The collective on Slurm: submitted where Slurm's commands are; its logs are read from its first node."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import shlex
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from ultracluster.acceptance.node_tools import slurm_script
from ultracluster.account.aws import AccountError
from ultracluster.account.nodes.node import Node
from ultracluster.account.wait.shell import Answer, Shell
from ultracluster.account.wait.slurm import SlurmNode, slurm_node_of
from ultracluster.account.wait.smoke import EVERY, LIMIT, Clock, Pair, Smoke, new_name, verdict
from ultracluster.catalog import instance_type
from ultracluster.model import Cluster
from ultracluster.project.archives import extract

PART = 16_000
"""Characters of one answer; Run Command keeps 24,000."""
MOST = 8_000_000
"""Characters of packed logs that are read."""


def run_on_slurm(
    cluster: Cluster,
    pair: Pair,
    *,
    shell: Shell,
    entrance: Node | None,
    slurm_nodes: list[SlurmNode],
    clock: Clock | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Smoke:
    """Run the acceptance job on two nodes and judge it. Nothing of it stays when it passes or is interrupted.

    Args:
        entrance: a node on which Slurm's commands run.
        slurm_nodes: the nodes as Slurm knows them.
        say: called with what the job does.
    """
    named = [slurm_node_of(node, slurm_nodes) for node in pair.nodes]
    if entrance is None or any(one is None for one in named):
        return by_hand(cluster, pair, "Slurm cannot be asked from here")
    job = _Job(shell, entrance, pair, [one for one in named if one], clock or Clock(), say)
    try:
        why = job.run()
        if why:
            return by_hand(cluster, pair, why)
        with tempfile.TemporaryDirectory() as folder:
            logs = job.fetch(Path(folder))
            found = verdict(pair.group, pair, logs, cluster)
    except (AccountError, OSError, ValueError, tarfile.TarError) as error:
        job.cancel()
        return by_hand(cluster, pair, str(error))
    except BaseException:
        job.cancel()
        raise
    if found.verdict == "pass":
        job.clean()
        return found
    kept = f"{job.folder} on {pair.nodes[0].name}"
    return Smoke(found.group, found.verdict, found.reason, "", found.nodes, found.report, kept)


def by_hand(cluster: Cluster, pair: Pair, why: str) -> Smoke:
    """Return what to do where the job cannot be run from here."""
    partition = next(
        (
            group.partition
            for name, group in cluster.groups.items()
            if group.partition and pair.group in (name, group.partition)
        ),
        pair.group,
    )
    command = (
        f"ultracluster acceptance --job --type {pair.instance_type} > nccl_tests.sbatch; then on the "
        f"cluster (`ultracluster connect {cluster.name}`): sbatch --nodes=2 --partition={partition} "
        "nccl_tests.sbatch; then here: "
        f"ultracluster acceptance LOGS --type {pair.instance_type} --nodes 2"
    )
    names = tuple(node.name for node in pair.nodes)
    return Smoke(pair.group, "not judged", why, command, names)


class _Job:
    """One job, from its submission to the end of its traces."""

    def __init__(
        self,
        shell: Shell,
        entrance: Node,
        pair: Pair,
        named: list[SlurmNode],
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self._shell, self._entrance, self._pair, self._named = shell, entrance, pair, named
        self._clock, self._say = clock, say
        self.name = new_name()
        self.folder = f"/var/tmp/{self.name}"  # noqa: S108, on the node; the name cannot be guessed

    def run(self) -> str:
        """Submit and wait; why there is nothing to judge, or nothing."""
        kind = instance_type(self._pair.instance_type)
        if kind is None:
            return f"the catalogue does not know {self._pair.instance_type}"
        script = slurm_script(kind)
        refused = self._send(base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode())
        if refused:
            return refused
        words = [
            "sbatch", "--parsable", "--nodes=2", f"--job-name={self.name}", "--chdir=/", "--time=00:30:00",
            f"--nodelist={','.join(one.name for one in self._named)}",
            f"--partition={self._named[0].partition}", f"--output={self.folder}.out",
            f"--export=ALL,ACCEPTANCE_OUTPUT={self.folder},ACCEPTANCE_TYPE={self._pair.instance_type}",
        ]  # fmt: skip
        sent = f"{self.folder}.script"
        answer = self._ask(
            self._entrance,
            f"base64 -d {sent} | gunzip | {shlex.join(words)} 2>&1; S=$?; rm -f {sent}; exit $S",
        )
        number = answer.text.strip().splitlines()[-1].split(";")[0] if answer.text.strip() else ""
        if not answer.good or not number.isdigit():
            return f"sbatch refused the job: {answer.why or answer.text.strip()[-300:]}"
        start, state = self._clock.now(), ""
        while self._clock.now() - start < LIMIT:
            self._clock.sleep(EVERY)
            listing = self._ask(
                self._entrance, f"squeue --noheader --jobs={number} --states=all --format='%T|%r' 2>&1"
            )
            last = listing.text.strip().splitlines()[-1] if listing.text.strip() else ""
            if "Invalid job id" in last or (listing.good and not last) or last.startswith(_ENDED):
                return ""
            if listing.good and last != state:
                state = last
                self._say(f"job {number}: {state.replace('|', ', ')}")
        self.cancel()
        return (
            f"job {number} has not ended in {LIMIT / 60:g} minutes ({state.replace('|', ': ') or 'no state'})"
        )

    def _send(self, packed: str) -> str:
        """The packed script to the entrance, in parts; why that failed, or nothing."""
        for start in range(0, len(packed), PART):
            part = packed[start : start + PART]
            writing = f"umask 077; echo {part} >>{self.folder}.script"
            answer = self._ask(self._entrance, writing)
            if not answer.good:
                return f"the job's script cannot be written there: {answer.why or answer.text.strip()[-200:]}"
        return ""

    def fetch(self, folder: Path) -> list[Path]:
        """The job's logs, in a folder of this machine."""
        node, packed = self._pair.nodes[0], f"{self.folder}.packed"
        name = shlex.quote(self.name)
        packing = self._ask(
            node,
            f"cd /var/tmp && tar -czf - $(ls -d {name} {name}.out 2>/dev/null) | base64 -w0 >{packed} "
            f"&& wc -c <{packed}",
        )
        if not packing.good or not packing.text.strip().isdigit():
            raise ValueError(f"the job's logs cannot be read: {packing.why or packing.text.strip()[-200:]}")
        size = int(packing.text)
        if size > MOST:
            raise ValueError(
                f"the job's logs are too long to be read from here: {self.folder} on {node.name}"
            )
        text = ""
        while len(text) < size:
            part = self._ask(node, f"tail -c +{len(text) + 1} {packed} | head -c {PART}")
            if not part.good or not part.text:
                raise ValueError(f"the job's logs cannot be read: {part.why or 'an answer is empty'}")
            text += part.text
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text)), mode="r:gz") as archive:
            extract(archive, folder)
        self._ask(node, f"rm -f {packed}")
        return sorted(file for file in folder.rglob("*") if file.is_file())

    def cancel(self) -> None:
        """End the job, if it is there, and remove its files; by its name, known before its number is."""
        with contextlib.suppress(AccountError):
            self._ask(self._entrance, f"scancel --quiet --name={self.name}; rm -f {self.folder}.script")
            self.clean()

    def clean(self) -> None:
        """Remove the job's files."""
        with contextlib.suppress(AccountError):
            self._ask(self._pair.nodes[0], f"rm -rf {self.folder} {self.folder}.out {self.folder}.packed")

    def _ask(self, node: Node, script: str) -> Answer:
        return self._shell.run([node], script)[node.id]


_ENDED = (
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE",
)  # fmt: skip
"""States of a job that has ended (squeue manual, "JOB STATE CODES")."""
