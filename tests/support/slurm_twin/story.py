"""A cluster from our configuration, from its start to the loss of a GPU, on one screen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from slurm_twin import health
from slurm_twin.twin import Twin

from ultracluster.config import Environment, load
from ultracluster.model import resolve
from ultracluster.model.cluster_json import script_configuration
from ultracluster.model.state_documents import state_documents
from ultracluster.slurm.accounts import slurm_accounts
from ultracluster.slurm.configuration import slurm_configuration

HERE = Path(__file__).parent
GROUP = "train"
GANG = """#!/bin/bash
#SBATCH --open-mode=append
echo "attempt $SLURM_RESTART_COUNT on $SLURM_JOB_NUM_NODES nodes" >>attempts
srun bash -c 'test $(tr , "\\n" <<<"$CUDA_VISIBLE_DEVICES" | wc -l) = 8; sleep 600'
"""
ACCOUNTS = """
mkdir -p /opt/ultracluster/people /etc/ultracluster
cp /opt/ultracluster/scripts/files/people_*.py /opt/ultracluster/scripts/lib/home.sh /opt/ultracluster/people
echo 'ROLE={role}' >/etc/ultracluster/pull
cat >/run/users.json <<'END'
{document}
END
python3 -ISB /opt/ultracluster/scripts/files/people.py /run/users.json
"""
"""What the pull of the cluster's state does with a document of users on each node."""
XID_79 = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@dataclass
class Figures:
    """Seconds, by what they were taken for."""

    nodes: int
    up: float = 0
    gang: float = 0
    """From the submission of a job over all nodes to a process on each."""
    drain: float = 0
    """From the kernel's line to the drained node."""
    requeue: float = 0
    """From the kernel's line to the job's second start."""
    again: float = 0
    """From the kernel's line to the job on all nodes again, that one rebooted."""
    reason: str = ""
    other_reasons: list[str] = field(default_factory=list[str])


def environment_of(nodes: int) -> Environment:
    """The environment of `make twin`, with that many nodes."""
    text = (HERE / "cluster.yaml").read_text().replace("count: 64", f"count: {nodes}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "twin.yaml"
        file.write_text(text)
        return load(file).environment


def tell(nodes: int, say: Callable[[str], None] = print) -> Figures:
    """Runs it and says what happens, each with the seconds since the start."""
    environment = environment_of(nodes)
    cluster = resolve(environment)
    configuration = slurm_configuration(cluster)
    start = time.monotonic()
    figures = Figures(nodes)

    def line(text: str) -> None:
        say(f"{time.monotonic() - start:6.1f} s  {text}")

    users = list(environment.users)
    document = state_documents(cluster)["users.json"].decode()
    compute = health.boot(dict(script_configuration(cluster, GROUP)), GROUP)
    with Twin(
        nodes,
        generated=configuration,
        accounting=True,
        users=(),
        own=True,
        boot=compute + ACCOUNTS.format(role="compute", document=document),
    ) as twin:
        figures.up = time.monotonic() - start
        shown = twin.run("sinfo --noheader --format='%D nodes %T, %G each, partition %P'").stdout.strip()
        version = twin.run("scontrol --version").stdout.split()[-1]
        line(f"Slurm {version}, cgroup {twin.cgroups.mode}: {shown}")

        twin.run(ACCOUNTS.format(role="login", document=document))
        known = [twin.on(twin.nodes[-1], f"id --user --real {user}").stdout.strip() for user in users]
        line("users: " + ", ".join(f"{user} is {number}" for user, number in zip(users, known, strict=True)))
        twin.put("ctl", "/root/accounts.sh", slurm_accounts(cluster), 0o755)
        twin.run("/root/accounts.sh", seconds=120)
        line(f"teams: {shares(twin)}")

        submitted = time.monotonic()
        job = twin.submit(GANG, f"--nodes={nodes}", "--gpus-per-node=8", "--requeue", user=users[0])
        twin.wait(lambda: tasks(twin, job) == nodes, "the gang to start")
        figures.gang = time.monotonic() - submitted
        waiting = twin.submit("#!/bin/bash\nsleep 1\n", "--nodes=1", "--gpus-per-node=8", user=users[1])
        line(f"{users[0]}'s job {job} runs on {nodes} of {nodes} nodes; {queue(twin)}")

        victim = twin.nodes[len(twin.nodes) // 2]
        boot, broken = twin.pid(victim), time.monotonic()
        twin.journal(victim, XID_79)
        line(f"{victim}: {XID_79}")
        twin.wait(lambda: "DRAIN" in twin.state(victim).states, f"{victim} to be drained")
        figures.drain = time.monotonic() - broken
        figures.reason = twin.state(victim).reason
        line(f"{victim} is {'+'.join(sorted(twin.state(victim).states))}: {figures.reason}")
        twin.wait(lambda: twin.job(job)["restart_cnt"] == 1, "the job to be queued again")
        figures.requeue = time.monotonic() - broken
        line(f"{users[0]}'s job {job} is queued again: {queue(twin)}")
        twin.wait(lambda: twin.job(waiting)["job_state"] == ["COMPLETED"], "the other job to end")
        line(f"{users[1]}'s job {waiting} has run on {twin.job(waiting)['nodes']} meanwhile")
        figures.other_reasons = [
            reason for name in twin.nodes if name != victim and (reason := twin.state(name).reason)
        ]
        line(f"other nodes with a reason: {', '.join(figures.other_reasons) or 'none'}")
        twin.wait(lambda: tasks(twin, job) == nodes, "the gang to run again")
        figures.again = time.monotonic() - broken
        assert twin.pid(victim) != boot and not twin.state(victim).reason
        line(f"{victim} rebooted and passed its checks; {users[0]}'s job {job} runs on {nodes} nodes again")
    line(
        f"{nodes} nodes: up in {figures.up:.1f} s, a full-width gang in {figures.gang:.1f} s, "
        f"drained in {figures.drain:.1f} s, requeued in {figures.requeue:.1f} s, "
        f"whole again in {figures.again:.1f} s"
    )
    return figures


def tasks(twin: Twin, job: int) -> int:
    """Tasks of the job's first step, as slurmctld counts them."""
    done = twin.run(f"squeue --noheader --steps --job={job} --Format=StepID,NumTasks", check=False)
    rows = [row.split() for row in done.stdout.splitlines()]
    return sum(int(row[1]) for row in rows if len(row) > 1 and row[0].endswith(".0"))


def shares(twin: Twin) -> str:
    """Accounts with their shares and users."""
    rows = twin.run("sacctmgr -nP show assoc format=account,user,share").stdout.splitlines()
    found: dict[str, str] = {}
    for account, user, share in (row.split("|") for row in rows):
        if account != "root":
            found[account] = found.get(account, "") + (f", {user}" if user else f"{account} (share {share})")
    return "; ".join(found.values())


def queue(twin: Twin) -> str:
    """The queue in a few words."""
    rows = twin.run("squeue --noheader --format='%u %i %T %r'").stdout.splitlines()
    return ", ".join(" ".join(word for word in row.split() if word != "None") for row in rows)
