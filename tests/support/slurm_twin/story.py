"""A cluster from our configuration, from its start to the loss of two GPUs, on one screen."""

from __future__ import annotations

import json
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
SETTINGS = "/opt/ultracluster/health/settings.json"


@dataclass
class Figures:
    """Seconds, by what they were taken for; but for the last two."""

    nodes: int
    up: float = 0
    gang: float = 0
    """From the submission of a job over all nodes to a process on each."""
    drain: float = 0
    """From the kernel's first line to its drained node."""
    closed: float = 0
    """From the kernel's second line to its node, which takes no new job."""
    requeue: float = 0
    """From the kernel's first line to its job in the queue again."""
    again: float = 0
    """From the kernel's first line to both nodes in service and both jobs on all their nodes."""
    reasons: list[str] = field(default_factory=list[str])
    """Of the two nodes, when they were closed to new jobs."""
    other_reasons: list[str] = field(default_factory=list[str])


def environment_of(nodes: int) -> Environment:
    """The environment of `make twin`, with that many nodes."""
    text = (HERE / "cluster.yaml").read_text().replace("count: 64", f"count: {nodes}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "twin.yaml"
        file.write_text(text)
        return load(file).environment


def say_now(text: str) -> None:
    """Also through a pipe."""
    print(text, flush=True)


def tell(nodes: int, say: Callable[[str], None] = say_now) -> Figures:
    """Runs it and says what happens as it does, each with the seconds since the start."""
    environment = environment_of(nodes)
    cluster = resolve(environment)
    start = time.monotonic()
    figures = Figures(nodes)

    def line(text: str) -> None:
        say(f"{time.monotonic() - start:6.1f} s  {text}")

    document = state_documents(cluster)["users.json"].decode()
    compute = health.boot(dict(script_configuration(cluster, GROUP)), GROUP)
    with Twin(
        nodes,
        generated=slurm_configuration(cluster),
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
        users = list(environment.users)
        known = [twin.on(twin.nodes[-1], f"id --user --real {user}").stdout.strip() for user in users]
        line("users: " + ", ".join(f"{user} is {number}" for user, number in zip(users, known, strict=True)))
        twin.put("ctl", "/root/accounts.sh", slurm_accounts(cluster), 0o755)
        twin.run("/root/accounts.sh", seconds=120)
        line(f"teams: {shares(twin)}")

        submitted = time.monotonic()
        whole = start_gang(twin, users[0], nodes)
        figures.gang = time.monotonic() - submitted
        line(f"{users[0]}'s job {whole} runs on {nodes} of {nodes} nodes")
        twin.run(f"scancel {whole}")
        twin.wait(lambda: twin.up() == nodes, "idle nodes")
        break_two(twin, users, figures, line)
    line(
        f"{nodes} nodes: up {figures.up:.1f} s, full-width gang {figures.gang:.1f} s,"
        f" drained {figures.drain:.1f} s, requeued {figures.requeue:.1f} s,"
        f" in order again {figures.again:.1f} s"
    )
    return figures


def break_two(twin: Twin, users: list[str], figures: Figures, line: Callable[[str], None]) -> None:
    """A GPU in a node of each of two jobs, one right after the other, under the default limits."""
    width = max(1, (len(twin.nodes) - 2) // 2)
    jobs = {user: start_gang(twin, user, width) for user in users[:2]}
    line(f"{', '.join(f'{user} has job {job}' for user, job in jobs.items())}: {queue(twin)}")
    line(f"limits: {limits(twin)}")
    first, second = (last_node(twin, job) for job in jobs.values())
    boots = {node: twin.pid(node) for node in (first, second)}
    lines: dict[str, float] = {}
    for node in boots:
        lines[node] = time.monotonic()
        twin.journal(node, XID_79)
        line(f"{node}: {XID_79}")
    twin.wait(lambda: "DRAIN" in twin.state(first).states, f"{first} to be drained")
    figures.drain = time.monotonic() - lines[first]
    twin.wait(lambda: "DRAIN" in twin.state(second).states, f"{second} to take no new job")
    figures.closed = time.monotonic() - lines[second]
    closed = twin.states(first, second)
    figures.reasons = [one.reason for one in closed.values()]
    for node, one in closed.items():
        waits = ", its repair waits for the share" if "waiting=yes" in one.comment else ""
        line(f"{node} is closed to new jobs: {'+'.join(sorted(one.states))}, {one.reason}{waits}")
    left = dict(jobs)
    while left:
        twin.wait(lambda: requeued(twin, left), "a job to be queued again")
        figures.requeue = figures.requeue or time.monotonic() - lines[first]
        user = requeued(twin, left)[0]
        job = left.pop(user)
        twin.wait(lambda job=job: tasks(twin, job) == width, f"job {job} to run again")
        line(f"{user}'s job {job} was queued again, and runs on {names(twin, job)}")
    figures.other_reasons = [
        one.reason for name, one in twin.states().items() if name not in boots and one.reason
    ]
    line(f"other nodes with a reason: {', '.join(figures.other_reasons) or 'none'}")
    for node in boots:
        twin.wait(lambda node=node: mended(twin, node, boots[node]), f"{node} to be in service again")
    figures.again = time.monotonic() - lines[first]
    line(f"{first} and {second} have rebooted, passed their checks and take jobs: {queue(twin)}")


def start_gang(twin: Twin, user: str, nodes: int) -> int:
    """A job with a process on each of so many nodes."""
    job = twin.submit(GANG, f"--nodes={nodes}", "--gpus-per-node=8", "--requeue", user=user)
    twin.wait(lambda: tasks(twin, job) == nodes, f"job {job} to start")
    return job


def requeued(twin: Twin, jobs: dict[str, int]) -> list[str]:
    """The users of those jobs that were queued again."""
    return [user for user, job in jobs.items() if twin.job(job)["restart_cnt"]]


def mended(twin: Twin, node: str, boot: int) -> bool:
    return twin.ready(node) and twin.pid(node) != boot and not twin.state(node).reason


def names(twin: Twin, job: int) -> str:
    """The nodes of a job, as Slurm abbreviates them."""
    return twin.run(f"squeue --noheader --jobs={job} --format=%N").stdout.strip()


def last_node(twin: Twin, job: int) -> str:
    return twin.run(f"scontrol show hostnames {names(twin, job)}").stdout.split()[-1]


def limits(twin: Twin) -> str:
    """What the health loop may do to so many nodes."""
    settings = json.loads(twin.on(twin.nodes[0], f"cat {SETTINGS}").stdout)
    nodes = len(twin.nodes)
    share = max(1, nodes * settings["max_drained_percent"] // 100)
    closed = max(2, share, nodes * settings["max_closed_percent"] // 100)
    return f"{share} of {nodes} nodes may be out for repair, {closed} closed to new jobs"


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
