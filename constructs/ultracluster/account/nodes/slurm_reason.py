"""Meaning of a node's reason, and what happens next: of our checks' reasons in Slurm, of published ones, and
of the words of Kubernetes' agents."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ultracluster.catalog.node_agents import Report, reported, rows_of
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
_SHORTEST = 8
"""Letters of a published reason by which one is known that a table has cut off."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Attributes:
    meaning: what was found, or asked for.
    next: what happens, or is to be done.
    source: who says what the fault means; empty where that is nobody but us.
    by: who wrote the reason.
    """

    meaning: str
    next: str
    source: str = ""
    by: str = ""


def explain(reason: str, health: Health | None = None) -> Explanation | None:
    """Return what a reason means; None where it is a person's, or nobody's that we know.

    Args:
        reason: as `scontrol show node` or `sinfo -R` prints it, whole or cut off, with or without who set it
            and when; or of a node's condition or event on Kubernetes.
        health: of the environment file: what happens next depends on it.
    """
    text = re.sub(r"\s*\[[^\]]*@[^\]]*\]?$", "", " ".join(reason.split()))
    if match := _OURS.match(text):
        return _ours(match[1], match[2], health or Health())
    text = re.sub(r"(?:\.{3}|…|\+)$", "", text).strip().strip("\"'")
    known = _published(text)
    if not known:  # slurmctld puts one reason behind another
        parts = [_published(part) for part in re.split(r", (?![^(]*\))| : ", text)]
        known = [row for part in parts for row in part] if all(parts) else []
    if not known:
        return _of_an_agent(text)
    join = "; or, for the text is cut off: " if _cut(text, known) else "; and: "
    return Explanation(
        *(join.join(dict.fromkeys(row[key] for row in known)) for key in ("meaning", "next")),
        *("; ".join(dict.fromkeys(row[key] for row in known)) for key in ("source", "by")),
    )


def _published(text: str) -> list[dict[str, Any]]:
    """The row of a published reason; of one that is cut off each row that it may be of."""
    rows = reasons()
    whole = [row for row in rows if any(_fits(row, one, text, False) for one in row["texts"])]
    if whole:
        return whole[:1]
    return [row for row in rows if any(_fits(row, one, text, True) for one in row["texts"])][:3]


def _cut(text: str, rows: list[dict[str, Any]]) -> bool:
    return all(any(_fits(row, one, text, True) for one in row["texts"]) for row in rows)


def _fits(row: dict[str, Any], published: str, text: str, cut: bool) -> bool:
    pattern = _beginning(published) if cut else _whole(published)
    return bool(re.fullmatch(pattern, text, 0 if row.get("exact") else re.IGNORECASE))


@cache
def _whole(published: str) -> str:
    return "".join(_pieces(published))


@cache
def _beginning(published: str) -> str:
    """Expression of every beginning of a published reason that has letters enough."""
    pieces = _pieces(published)
    letters = [number for number, piece in enumerate(pieces, 1) if piece not in _ANY.values()]
    shortest = letters[:_SHORTEST][-1]
    rest = pieces[shortest:]
    return "".join([*pieces[:shortest], *(f"(?:{one}" for one in rest), ")?" * len(rest)])


_ANY = {"**": ".*", "*": "[^ ()]*"}


def _pieces(published: str) -> list[str]:
    """Expressions for a published reason, one for each letter or place."""
    matches = re.findall(r"\*\*|(?<![a-z])\*(?![a-z])|.", published)
    return [_ANY[one] if one in _ANY else re.escape(one) for one in matches]


@cache
def reasons() -> list[dict[str, Any]]:
    """Published reasons: id, by, texts, meaning, next, source; `exact` where upper and lower case count."""
    file = resources.files("ultracluster.account.nodes").joinpath("slurm_reasons.json")
    return list(json.loads(file.read_text("utf-8"))["reasons"])


def _ours(check: str, code: str, health: Health) -> Explanation:
    row: dict[str, Any] = {}
    for fault in _faults():
        if fault["check"] == check and (code in fault["codes"] or (not row and "*" in fault["codes"])):
            row = fault
            if code in fault["codes"]:
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
    return Explanation(meaning, following, str(row.get("source", "")), "the health checks of this package")


def _of_an_agent(text: str) -> Explanation | None:
    """By the row of the fault table that the word of an agent stands for."""
    for agent, report, number in reported(text):
        rows = rows_of(report, number)
        if rows:
            # of rows that only a line or a generation decides between, the one for all
            row = next((row for row in rows if not (row.generations or row.text)), rows[0])
            return Explanation(row.meaning, _repair(report, row.severity), row.source, f"the {agent.title}")
    return None


def _repair(report: Report, severity: str) -> str:
    if severity == "none":
        return "nothing: the application has met an error of its own, and the node is well"
    look = "`ultracluster doctor ENVIRONMENT` says what to do"
    if report.kind == "event":
        return f"nothing acts on an event; {look}"
    acts = {"reboot": "reboots", "replace": "replaces"}.get(report.repair)
    silence = "no repair acts on it" if report.repair == "none" else "no repair of it is published"
    by = f"node repair, where it is on, {acts} the node" if acts else silence
    return f"{by}; {look}"


@cache
def _faults() -> list[dict[str, Any]]:
    file = scripts_folder() / "health" / "faults.json"
    return list(json.loads(file.read_text(encoding="utf-8"))["faults"])
