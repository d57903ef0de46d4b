"""Faults of nodes in any text, by the table that nodes read themselves (`health/faults.json`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from runpy import run_path
from types import SimpleNamespace
from typing import Any

from ultracluster.account.doctor.known_failures import Diagnosis, KnownFailure, readable
from ultracluster.catalog.node_agents import Agent, Report, reported
from ultracluster.catalog.node_faults import Fault, faults_of_reason, node_faults
from ultracluster.scripts_folder import scripts_folder

_MENTIONS = (
    (re.compile(r"\bXID (\d{1,5}) on GPU", re.IGNORECASE), "ultracluster:xid:{}"),
    (re.compile(r"last XID of GPU \S+ is (\d{1,5})\b", re.IGNORECASE), "ultracluster:xid:{}"),
    (re.compile(r"\b(ultracluster:[a-z0-9_-]+:[a-z0-9_-]+)", re.IGNORECASE), "{}"),
    # a condition has the last reason, and the words of all (aws/eks-node-monitoring-agent, node_exporter.go)
    (re.compile(r"\bdetected (?:unknown )?XID-(\d{1,5})\b", re.IGNORECASE), "ultracluster:xid:{}"),
    (re.compile(r"\bXID Error\W.{0,200}?ErrNum\W{1,6}(\d{1,5})\b", re.IGNORECASE), "ultracluster:xid:{}"),
)
"""Names of a fault in the words of this package, in reasons of nodes, in messages of the agent of EKS, and in
DCGM's violations of a policy as HyperPod's agent logs them."""
_STATUS = re.compile(r"\bNRT_EXEC_HW_ERR_([A-Z_]+)\b", re.IGNORECASE)
_STATUSES = {
    "HBM_UE": "line_hbm",
    "NC_UE": "line_core",
    "DMA_ABORT": "line_dma",
    "REPAIRABLE_HBM_UE": "line_repairable",
}
"""Statuses of Neuron's runtime for its driver's errors (AWS Neuron documentation, nrt_status, 2026-08-21)."""
_RUNBOOKS = {"reset": "GpuXidReset", "reboot": "GpuXidReboot", "replace": "GpuXidReplace"}
_LOOK = "nothing happens by itself: see whether jobs still run, and read the lines around it"
_DO = {
    "requeue": "submit the job again; the node may stay",
    "reset": "drain the node and reboot it, which resets its GPUs: `ultracluster nodes reboot`",
    "reboot": "drain the node and reboot it: `ultracluster nodes reboot`",
    "replace": "replace the node: `ultracluster nodes replace`",
}


def node_fault_diagnoses(texts: Sequence[str], generations: Sequence[str] = ()) -> list[Diagnosis]:
    """Diagnoses by the table: one for each fault that a person should act on.

    Args:
        generations: of the environment's accelerators; none where that is not known.
    """
    return [
        Diagnosis(_as_failure(row, [texts[number] for number in evidence]), tuple(evidence))
        for row, evidence in _seen(texts, generations).values()
        if row.severity != "none"
    ]


def benign_faults(texts: Sequence[str], generations: Sequence[str] = ()) -> list[tuple[Fault, int]]:
    """Faults of the texts that ask nothing of the node, as an application's errors do, and how many texts
    have them."""
    seen = _seen(texts, generations).values()
    return [(row, len(evidence)) for row, evidence in seen if row.severity == "none"]


def _seen(texts: Sequence[str], generations: Sequence[str]) -> dict[str, tuple[Fault, list[int]]]:
    rows = {row.id: row for row in node_faults()}
    found: dict[str, tuple[Fault, list[int]]] = {}
    for number, text in enumerate(texts):
        for name in dict.fromkeys(name for line in readable(text) for name in _faults(line, generations)):
            evidence = found.setdefault(name, (rows[name], []))[1]
            evidence.append(number)
    return found


def _faults(line: str, generations: Sequence[str]) -> Iterator[str]:
    """Ids of the rows that a line stands for."""
    by_agents = [
        row for _, report, number in reported(line) for row in _row_of_report(report, number, generations)
    ]
    for start in _starts().finditer(line):
        row = _judge(line[start.end() :], generations)
        if row:
            # an agent that quotes the line has read it for this very hardware
            if not (by_agents and row["severity"] == "warn" and row["check"] == _check(by_agents[0])):
                yield row["id"]
            break  # a second driver's words in a line are quoted
    for pattern, reason in _MENTIONS:
        for match in pattern.finditer(line):
            yield from _row_of(reason.format(match[1].lower()), generations)
    for status in _STATUS.findall(line):
        if code := _STATUSES.get(status.upper()):
            yield from _row_of(f"ultracluster:neuron:{code}", generations)
    yield from by_agents


def _check(name: str) -> str:
    return next(row.check for row in node_faults() if row.id == name)


def _row_of_report(report: Report, number: str, generations: Sequence[str]) -> Iterator[str]:
    """The row of a report of a node's agent; DCGM's number of an error, not its words, decides."""
    check, _, code = report.fault_of(number).partition(":")
    if code.startswith("#"):
        code = _reading().by_error(_table(), int(number))
    if code:
        yield from _row_of(f"ultracluster:{check}:{code}", generations)


def _row_of(reason: str, generations: Sequence[str]) -> Iterator[str]:
    """The gravest row of a reason for one of the generations, as nodes choose it without a line's text; of
    rows that only a line or a generation decides between, the one for all."""
    rows = faults_of_reason(reason)
    _, check, code = reason.split(":", 2)
    find: Callable[..., dict[str, Any] | None] = _reading().find
    found = [find(_table(), generation, check, code) for generation in generations]
    order = _reading().SEVERITIES
    row = max((one for one in found if one), key=lambda one: order.index(one["severity"]), default=None)
    if row and any(row["id"] == one.id for one in rows):
        yield row["id"]
    elif rows:
        yield next((row for row in rows if not (row.generations or row.text)), rows[0]).id


def _judge(message: str, generations: Sequence[str]) -> dict[str, Any] | None:
    """The gravest row for one of the generations."""
    judge: Callable[..., tuple[dict[str, Any] | None, str]] = _reading().judge
    found = [judge(message, _table(), generation)[0] for generation in generations or ("",)]
    order = _reading().SEVERITIES
    return max((row for row in found if row), key=lambda row: order.index(row["severity"]), default=None)


def _as_failure(row: Fault, texts: Sequence[str]) -> KnownFailure:
    code = f"ultracluster:{row.check}:{row.codes[0]}"
    agents = _by_agents(row, texts)
    act = _DO.get(row.action, _LOOK)
    if act == _LOOK and any(_REPAIRS[verb] in words for words in agents for verb in ("reboot", "replace")):
        act = "before node repair acts, see whether jobs still run, and read the kernel's log of the node"
    if row.when_idle != "none" and row.action in ("none", "requeue"):
        act = f"{act}; reboot the node when no job runs" if row.action == "requeue" else _WHEN_IDLE
    if row.repeats and row.repeats.action == "replace" != row.action:
        act += "; where it comes again within a day, replace it: `ultracluster nodes replace`"
    differs = row.note or _TELL.get(row.check, "the words of the driver's whole line decide")
    page = f"runbooks/{_RUNBOOKS[row.action]}.md" if row.check == "xid" and row.action in _RUNBOOKS else ""
    return KnownFailure(
        id=f"fault-{row.id}",
        layer="Faults of nodes",
        weight=3 if row.severity == "critical" else 2,
        when="node",
        seen=row.line,
        pattern="",
        unless="",
        words=(),
        cause=row.meaning,
        differs="; ".join([differs, *agents]),
        do=act,
        run=f"ultracluster doctor ENVIRONMENT --reason {code}",
        page=page or f"faults.md#{row.check}",
        sources=(row.source,),
    )


def _by_agents(row: Fault, texts: Sequence[str]) -> list[str]:
    """Words on what agents that have reported a row do about it by themselves."""
    found = dict.fromkeys(
        _by_agent(agent, report)
        for text in texts
        for line in readable(text)
        for agent, report, number in reported(line)
        if row.id in _row_of_report(report, number, row.generations)
    )
    return list(found)


def _by_agent(agent: Agent, report: Report) -> str:
    if report.kind == "event":
        return f"the {agent.title} reports it as an event, on which nothing acts"
    acts = _REPAIRS[report.repair]
    return f"the {agent.title} reports it as a condition of the node, {acts}"


_REPAIRS = {
    "": "and no repair of it is published",
    "none": "on which no repair acts",
    "reboot": "after which node repair, where it is on, reboots it",
    "replace": "after which node repair, where it is on, replaces it",
}


_TELL = {
    "xid": "the number and the words behind it decide; a line that names another Xid as its cause counts "
    "for that one",
    "dcgm": "DCGM's number of the error decides, not its words, which change with its release",
}
_WHEN_IDLE = "jobs may run to their end; reboot the node when none runs: `ultracluster nodes reboot`"


@cache
def _reading() -> SimpleNamespace:
    """The nodes' own reading of a line: there is no second one."""
    return SimpleNamespace(**run_path(str(scripts_folder() / "health" / "faults.py")))


@cache
def _table() -> dict[str, Any]:
    """With patterns that take upper and lower case alike: logs pass through what changes it."""
    table = _reading().load()
    for row in table["faults"]:
        row.update({key: f"(?i){row[key]}" for key in ("pattern", "text", "follows") if key in row})
    return table


@cache
def _starts() -> re.Pattern[str]:
    """Places where a driver's words may begin in a line: behind a time, a host and a kernel, or quoted."""
    lines = [line for row in node_faults() for line in (row.line, *(form for form, _ in row.forms)) if line]
    words = {match[0] for line in lines if (match := re.match(r"[A-Za-z][A-Za-z_-]*[A-Za-z]", line))}
    either = "|".join(sorted(map(re.escape, words)))
    return re.compile(rf"(?:^|(?<=[\s\]\";,|]))(?=(?:{either}))", re.IGNORECASE)
