"""What the health loop knows: a node as slurmctld has it, what is remembered of it, what is allowed, what was
found.

Python 3.9 and newer, and nothing but its standard library: what nodes have.
"""

from dataclasses import dataclass, field, replace

PREFIX = "ultracluster:"
"""Of every reason that is ours: `ultracluster:<check>:<code>`."""
ACTION_REBOOT = "Action:Reboot"
ACTION_REPLACE = "Action:Replace"
"""HyperPod acts on exactly these reasons of a node in state FAIL, and ignores any other spelling without
a word (SageMaker Developer Guide, "Manually replace or reboot a node")."""

DAY, HOUR = 86400, 3600
PASSES = 2
"""So often a check has to pass before its node is given back."""

TAKEN = frozenset(
    {
        "DRAIN",
        "DRAINED",
        "DRAINING",
        "FAIL",
        "FAILING",
        "DOWN",
        "FUTURE",
        "UNKNOWN",
        "POWER_DOWN",
        "POWERING_DOWN",
        "POWERED_DOWN",
        "POWER_DRAIN",
        "REBOOT_REQUESTED",
        "REBOOT_ISSUED",
        "REBOOT",
    }
)
"""States in which a node takes no job already, or is on its way to another state: no drain is asked for."""
BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
HELD = frozenset({"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING"})
MOVING = frozenset(
    {"REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT", "POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN"}
)
ABSENT = frozenset({"POWERED_DOWN", "POWERING_DOWN", "FUTURE", "UNKNOWN", "DOWN", "NOT_RESPONDING"})
"""Nodes that are not there do not count to the cluster of which a share may be drained."""

ORDER = ("none", "requeue", "reboot-idle", "drain", "reboot", "hold", "replace")
"""Actions, from the mildest on. `reboot-idle` reboots when the jobs have ended: none is sent away. `hold`
drains the node for a person, who has to find out whether the GPU or a program is at fault."""
LAST_WEIGHT = 1_000_000
"""Slurm gives jobs to nodes of a lower weight first."""


@dataclass(frozen=True)
class Node:
    """A node as slurmctld has it."""

    name: str
    states: frozenset = frozenset()
    reason: str = ""
    reason_at: int = 0
    """When the reason was set, in seconds since 1970; 0 where that is unknown."""
    comment: str = ""
    weight: int = 1

    @property
    def ours(self):
        return self.reason.startswith(PREFIX)

    @property
    def held_by_us(self):
        return bool(self.states & HELD) and self.ours

    @property
    def foreign(self):
        """Someone else holds it, or HyperPod's own repair is on its way."""
        return self.reason.startswith("Action:") or (bool(self.states & TAKEN) and not self.ours)

    @property
    def described(self):
        return f"{'+'.join(sorted(self.states)) or 'in no state'} ({self.reason or 'no reason'})"


@dataclass(frozen=True)
class Memory:
    """What slurmctld remembers of a node for us, in its comment, which outlives its disks and itself.

    A comment that is not ours is never written over; then there is no memory, and less is done.
    """

    boot: str = ""
    """Boot of the node that was drained: after a reboot or a replacement it must be another."""
    action: str = ""
    by: str = ""
    """`<check>:<code>`, also where the reason has become HyperPod's."""
    event: bool = False
    """The kernel reported it once: no check that passes says that it is over, only another boot does."""
    waiting: bool = False
    """Closed to new jobs beyond the share; what has to follow waits for the share."""
    weight: int = 0
    """Its weight before we made the node the last choice; 0 where we did not."""
    drained: tuple = ()
    idled: tuple = ()
    """Drains that only wait for an idle moment: they have a budget of their own."""
    resumed: tuple = ()
    """Times, in seconds since 1970, of the last 24 hours."""

    @property
    def text(self):
        fields = {
            "boot": self.boot,
            "action": self.action,
            "by": self.by,
            "event": "yes" if self.event else "",
            "waiting": "yes" if self.waiting else "",
            "weight": self.weight or "",
            "drained": _joined(self.drained),
            "idled": _joined(self.idled),
            "resumed": _joined(self.resumed),
        }
        return " ".join(["ultracluster", *(f"{key}={value}" for key, value in fields.items() if value)])

    def since(self, now):
        """Without what is older than a day, or from a clock that was ahead."""
        return replace(
            self,
            drained=_recent(self.drained, now),
            idled=_recent(self.idled, now),
            resumed=_recent(self.resumed, now),
        )


def _joined(times):
    return ",".join(map(str, times))


def _recent(times, now):
    return tuple(time for time in times if now - DAY < time <= now + 60)[-8:]


def memory_of(comment):
    """None where the comment is someone else's."""
    # scontrol keeps the quotes of a dialogue
    words = comment.strip().strip('"').split()
    if words in ([], ["(null)"]):
        return Memory()
    if words[0] != "ultracluster":
        return None
    told = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    action = told.get("action", "")
    return Memory(
        boot=told.get("boot", ""),
        action=action if action in ORDER else "",
        by=told.get("by", ""),
        event=told.get("event") == "yes",
        waiting=told.get("waiting") == "yes",
        weight=next(iter(_times(told.get("weight"))), 0),
        drained=_times(told.get("drained")),
        idled=_times(told.get("idled")),
        resumed=_times(told.get("resumed")),
    )


def _times(text):
    return tuple(int(part) for part in (text or "").split(",") if part.isdigit() and len(part) < 12)


@dataclass(frozen=True)
class Policy:
    """What the environment file allows (`health:`), and what the orchestrator can do."""

    mode: str = "dry-run"
    orchestrator: str = ""
    recovery: bool = False
    """HyperPod reboots and replaces by itself (`node_recovery: automatic`)."""
    replace: bool = True
    max_drained_percent: int = 10
    max_closed_percent: int = 25
    """Closed to new jobs at a time, the share included; at least two nodes."""
    max_drained_per_hour: int = 0
    """0: as many as the share, and two for faults that end running work."""
    max_resumes_per_day: int = 2
    slurm_reboots: bool = False
    """slurmctld has a RebootProgram."""


@dataclass(frozen=True)
class Finding:
    """One line of a check, or of the watcher."""

    check: str
    result: str
    code: str = ""
    action: str = "none"
    """Of the fault table; `none` where the check named no fault."""
    when_idle: str = ""
    """`reset` or `reboot`: to be done when no job runs; empty otherwise."""
    detail: str = ""
    event: bool = False
    """A line of the kernel's log, whoever read it: no check that passes ends it, only another boot does."""
    verb: str = "quick"
    fault: str = ""
    """The row of the fault table."""
    device: str = ""
    fatal: bool = False
    """By the table it ends running work."""
    at: float = 0
    """When the kernel logged it, or the check found it, in seconds since 1970."""
    job: str = ""
    """The job that met it; empty where that is not known."""
    user: str = ""

    @property
    def key(self):
        """The same fault of the same device."""
        return f"{self.check} {self.fault} {self.code} {self.device}"

    @property
    def by(self):
        return f"{self.check}:{self.code or 'critical'}"

    @property
    def reason(self):
        return PREFIX + self.by


@dataclass(frozen=True)
class Plan:
    """What is done, in this order, each as (word, argument); and why nothing is, in words for the log."""

    steps: tuple = ()
    why: str = ""
    refused: str = ""
    """Why not all of it is done, as a word: `foreign`, `ours`, `share`, `hour`, `nothing`, `stuck` (a person
    has to look, for what was asked has no effect); else empty."""
    memory: object = field(default=None)
    """What the node's comment becomes with it; None where it stays."""
