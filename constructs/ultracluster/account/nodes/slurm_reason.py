"""What the reason of a Slurm node means, and what happens next: our checks', HyperPod's, Slurm's own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from ultracluster.config.health import Health
from ultracluster.scripts_folder import scripts_folder

PREFIX = "ultracluster:"
"""Of every reason that our checks write: `ultracluster:<check>:<code>`."""
_OURS = re.compile(r"^ultracluster:([a-z0-9_-]+):([A-Za-z0-9_-]+)")
_NEXT = {
    "reboot": "its jobs are told and queued again, it is rebooted, and given back after its checks have "
    "passed twice; a node that comes back too often is replaced",
    "replace": "its jobs are told and queued again, and it is replaced",
    "requeue": "the job on it is queued again, and the node stays",
    "none": "its jobs go on, and it is given back after its checks have passed twice",
}
_LEFT_ALONE = "leave it alone: `resume` withdraws the request"
_OTHERS = (
    (
        r"^Action:Reboot$",
        "HyperPod is asked to reboot it",
        f"it comes back by itself within minutes; {_LEFT_ALONE}",
    ),
    (
        r"^Action:Replace$",
        "HyperPod is asked to replace it",
        f"another instance takes its place within 20 to 30 minutes; {_LEFT_ALONE}",
    ),
    (
        r"^Action:",
        "nearly a request to HyperPod, which acts on Action:Reboot and Action:Replace in these letters",
        "nothing happens by itself: write it again",
    ),
    (
        r"^Prolog error",
        "a prolog failed before a job, without a reason of its own",
        "read slurmd's log on the node; our prolog writes its own reason first",
    ),
    (r"^Epilog error", "an epilog failed after a job", "read slurmd's log on the node; ours never fails"),
    (
        r"^Not responding|^Node unexpectedly rebooted",
        "slurmctld lost it",
        "see whether its instance runs: `ultracluster nodes list`",
    ),
    (
        r"^operator:ultracluster-nodes-",
        "`ultracluster nodes` closed it to new jobs before an operator's request",
        "it is opened after the request; if that was cut off: `scontrol update nodename=<node> state=resume`",
    ),
    (
        r"Scheduler health check failed|Static node maintenance",
        "ParallelCluster's daemon replaces it",
        "another instance takes its place within minutes",
    ),
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Attributes:
    meaning: what was found, or asked for.
    next: what happens, or is to be done.
    source: who says what the fault means; empty where that is nobody but us.
    """

    meaning: str
    next: str
    source: str = ""


def explain(reason: str, health: Health | None = None) -> Explanation | None:
    """What a reason means; None where it is a person's, or nobody's that we know.

    Args:
        reason: as `scontrol show node` prints it, with or without who set it and when.
        health: of the environment file: what happens next depends on it.
    """
    text = reason.strip()
    if found := _OURS.match(text):
        return _ours(found[1], found[2], health or Health())
    for pattern, meaning, following in _OTHERS:
        if re.search(pattern, re.sub(r"\s*\[[^\]]*@[^\]]*\]$", "", text)):
            return Explanation(meaning, following)
    return None


def _ours(check: str, code: str, health: Health) -> Explanation:
    row: dict[str, Any] = {}
    for one in _faults():
        if one["check"] == check and (code in one["codes"] or (not row and "*" in one["codes"])):
            row = one
            if code in one["codes"]:
                break
    action = {"reset": "reboot"}.get(str(row.get("action")), str(row.get("action", "none")))
    if row.get("when_idle") and row.get("severity") != "critical":
        following = (
            "it is rebooted when its jobs have ended, and given back after its checks have passed twice"
        )
    elif action == "replace" and not health.replace:
        following = "`health.replace` is off: a person replaces it (`ultracluster nodes replace`)"
    else:
        following = _NEXT.get(action, _NEXT["none"])
    if health.mode != "enforce":
        following = (
            f"`health.mode` is `{health.mode}`: nothing happens by itself; look at the node, then "
            "`scontrol update NodeName=... State=RESUME`"
        )
    meaning = f"the check `{check}` found `{code}`: {row.get('meaning', 'no row of the fault table has it')}"
    return Explanation(meaning, following, str(row.get("source", "")))


@cache
def _faults() -> list[dict[str, Any]]:
    file = scripts_folder() / "health" / "faults.json"
    return list(json.loads(file.read_text(encoding="utf-8"))["faults"])


__all__ = ["PREFIX", "Explanation", "explain"]
