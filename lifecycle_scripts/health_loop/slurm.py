"""What is asked of Slurm, and what is told to it: by its own commands, each with a limit in seconds.

Root's commands are taken like SlurmUser's. No look at a healthy node asks anything; its service asks every
two minutes whether the node is held by us.
"""

import calendar
import os
import random
import re
import subprocess
import time
from pathlib import Path

from known import HELD, Node

LOCK = "ultracluster_health"
"""A reservation of one minute. slurmctld makes only one of a name, so it is a lock for the whole cluster
that ends by itself: nodes that find a fault at the same moment drain themselves one after the other, and each
counts those before it."""
_STATE = re.compile(r"^NodeName=(\S+)\s(?:.*?\s)??State=(\S+)")
_SET_BY = re.compile(r"\s*\[[^\]@\s]+@(\d{4}-[0-9T:-]+)\](?=\s|$)")
_COMMENT = re.compile(r"(?:^|\s)Comment=(.*?)(?=\s(?:Extra|InstanceId|InstanceType|Topology)=|$)")
_WEIGHT = re.compile(r"\sWeight=(\d{1,10})(?=\s|$)")
# The commands: PCS has one folder per version of Slurm, and links none.
_FOLDERS = ("opt/aws/pcs/scheduler/slurm-*/bin", "opt/slurm/bin")
_CONFIGURATIONS = (
    "/run/slurm/conf/slurm.conf",
    "/var/spool/slurmd/conf-cache/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
    "/etc/slurm/slurm.conf",
)


class SlurmError(Exception):
    """A command failed, or did not end in its time."""


class Slurm:
    """slurmctld, as this node reaches it."""

    def __init__(self, seconds=5.0, root=None):
        self.seconds = seconds
        self.environment = environment(os.environ, root=root)

    def run(self, *command, seconds=None, text=""):
        try:
            done = subprocess.run(
                command,
                env=self.environment,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds or self.seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SlurmError(f"{command[0]}: {error}") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise SlurmError(f"{' '.join(command[:3])}: {said[-1] if said else done.returncode}")
        return done.stdout

    def nodes(self):
        return [
            node
            for line in self.run("scontrol", "--oneliner", "show", "nodes").splitlines()
            if (node := parsed(line))
        ]

    def node(self, name):
        found = [
            node
            for line in self.run("scontrol", "--oneliner", "show", "node", name).splitlines()
            if (node := parsed(line))
        ]
        if len(found) != 1:
            raise SlurmError(f"slurmctld does not know {name}")
        return found[0]

    def name_here(self):
        """The host's name, where Slurm has a node of that name; else None."""
        try:
            return self.node(os.uname().nodename.split(".")[0]).name
        except SlurmError:
            return None

    def update(self, name, *settings):
        self.run("scontrol", "update", f"NodeName={name}", *settings)

    def swap(self, name, *settings):
        """An update of state and reason. Slurm has no compare-and-set: the same dialogue reads the node
        before and after. Returns it as it was and as it is; (None, None) where scontrol holds no dialogue."""
        show = f"show node {name}"
        words = " ".join(f'{key}="{value}"' if " " in value else f"{key}={value}" for key, value in settings)
        said = self.run("scontrol", "--oneliner", text=f"{show}\nupdate NodeName={name} {words}\n{show}\n")
        seen = [node for line in said.splitlines() if (node := parsed(line.removeprefix("scontrol: ")))]
        if len(seen) == 2:
            return seen[0], seen[1]
        self.update(name, *(f"{key}={value}" for key, value in settings))
        return None, None

    def reboots(self):
        """Whether slurmctld has a program for `scontrol reboot`."""
        found = re.search(r"^RebootProgram\s*=\s*(\S+)", self.run("scontrol", "show", "config"), re.MULTILINE)
        return bool(found) and found[1] not in ("(null)", "none")

    def jobs(self, name):
        """Ids of the jobs that have this node now."""
        return sorted({job for job, _, _ in self.queue(name)}, key=int)

    def queue(self, name):
        """The jobs that have this node now, each as (id, start in seconds since 1970, number of its user)."""
        lines = self.run(
            "squeue", "--noheader", "--nodelist", name, "--states=R,S,CF,CG,SO", "--format=%A|%S|%U"
        ).split()
        rows = [[*line.split("|"), "", ""][:3] for line in lines]
        return [(job, _seconds(start), user) for job, start, user in rows if job.isdigit()]

    def job_note(self, job):
        """Notes of administrators on a job."""
        said = self.run("scontrol", "--oneliner", "show", "job", job)
        found = re.search(r"\sAdminComment=(.*?)(?=\s[A-Z]\w*=|$)", said, re.MULTILINE)
        return found[1].strip() if found and found[1] != "(null)" else ""

    def job_comment(self, job):
        found = re.search(r"\sComment=(\S+)", self.run("scontrol", "--oneliner", "show", "job", job))
        return found[1] if found else ""

    def lock(self, name, until):
        """Takes the lock, or gives up at `until` (monotonic seconds).

        Raises:
            SlurmError: slurmctld makes no reservation at all.
        """
        words = (
            f"ReservationName={LOCK}",
            "StartTime=now",
            "Duration=1",
            "Users=root",
            f"Nodes={name}",
            "Flags=IGNORE_JOBS,OVERLAP",
        )
        pause = 0.1
        while True:
            try:
                self.run("scontrol", "create", "reservation", *words)
                return True
            except SlurmError as error:
                if "duplicate" not in str(error).lower():
                    raise
            if time.monotonic() >= until:
                return False
            # A fault of what all nodes share is found by hundreds at once: slurmctld has jobs to see to.
            time.sleep(min(pause * random.uniform(0.5, 1.5), max(until - time.monotonic(), 0)))  # noqa: S311
            pause = min(pause * 1.5, 3.0)

    def unlock(self):
        self.run("scontrol", "delete", f"ReservationName={LOCK}")


def take(slurm, me, state, reason, memory):
    """Takes the node, and gives it back at once where someone else has taken it at the same moment.

    Raises:
        SlurmError: it is someone else's now.
    """
    settings = [("State", state), ("Reason", reason)]
    if memory is not None:
        settings.append(("Comment", memory.text))
    before, after = slurm.swap(me.name, *settings)
    if before is None:
        return
    # our own request, made again, finds itself
    same = (before.reason, before.states) == (me.reason, me.states)
    if not same and before.foreign and before.states & (HELD | {"DOWN"}):
        theirs = next((word for word in ("FAIL", "DOWN") if word in before.states), "DRAIN")
        slurm.update(
            me.name, f"State={theirs}", f"Reason={before.reason or 'not ours'}", f"Comment={before.comment}"
        )
        raise SlurmError(f"at this moment the node became {before.described}: that is restored")
    if after.reason != reason:
        raise SlurmError(f"at this moment the node became {after.described}")


def environment(base, root=None):
    """What Slurm's commands need: a HealthCheckProgram is given SLURMD_NODENAME and PATH and nothing else."""
    told = {
        key: value for key, value in base.items() if key.startswith(("SLURM_CONF", "SLURMD_NODENAME", "LANG"))
    }
    folders = []
    if not root:  # a test's PATH is its own
        for pattern in _FOLDERS:
            folders += sorted(map(str, Path("/").glob(pattern)), reverse=True)
        folders += [base.get("PATH") or "/usr/bin:/bin", "/usr/local/bin", "/usr/sbin", "/sbin"]
    told["PATH"] = os.pathsep.join(folders) or base.get("PATH", "")
    told["TZ"] = "UTC0"
    if "SLURM_CONF" not in told and "SLURM_CONF_SERVER" not in told:
        told.update(_configuration())
    return told


def _configuration():
    """As the slurmd of this node was told, else where such a file usually is."""
    cached = next((path for path in _CONFIGURATIONS if Path(path).exists()), None)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if not words[0].endswith("slurmd"):
            continue
        if "-f" in words[:-1] and Path(words[words.index("-f") + 1]).exists():
            return {"SLURM_CONF": words[words.index("-f") + 1]}
        servers = [word.split("=", 1)[1] for word in words if word.startswith("--conf-server=")]
        if servers and not cached:
            return {"SLURM_CONF_SERVER": servers[0]}
    return {"SLURM_CONF": cached} if cached else {}


def parsed(line):
    """A node from a line of `scontrol --oneliner show node`, None where it is none.

    The reason is free text, with who set it and when behind it; the comment follows it.
    """
    named = _STATE.match(line)
    if not named:
        return None
    before, told, rest = line.partition(" Reason=")
    reason, at = "", 0
    if told:
        marks = list(_SET_BY.finditer(rest))
        end = marks[-1] if marks else re.search(r"\s(?:Comment|Extra)=|$", rest)
        reason, at = rest[: end.start()], _seconds(end[1]) if marks else 0
        before = rest[end.start() :]
    comment = _COMMENT.search(before)
    weight = _WEIGHT.search(line.partition(" Reason=")[0])
    return Node(
        name=named[1],
        states=frozenset(word.strip("*~#!%$@^-") for word in named[2].split("+")),
        reason="" if reason == "(null)" else reason.strip(),
        reason_at=at,
        comment=comment[1].strip() if comment else "",
        weight=int(weight[1]) if weight else 1,
    )


def _seconds(text):
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0
