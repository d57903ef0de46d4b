"""Faults that agents on nodes of Kubernetes report: their words, and the rows of the table of faults.

The list is `node_agents.json`, with its sources. What an agent does not publish is not known, and counts as
nothing that it looks at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ultracluster.catalog.files import catalog_file, record
from ultracluster.catalog.node_faults import REASON_PREFIX, Fault, faults_of_reason, node_faults

Hardware = Literal["nvidia", "neuron", "host"]
_NVIDIA = ("dcgm", "ecc", "fabric_manager", "gpu_count", "nvlink", "sxid", "xid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One thing that an agent reports."""

    reason: str
    """Its word for it, `*` for a number; empty where that is not published."""
    what: str = ""
    """Said instead of a word that is not published."""
    fault: str
    """`check:code` of the table, `*` where the reason has it; `check:#*` for a number of DCGM's errors."""
    kind: Literal["condition", "event"]
    """A condition of the node, on which a repair may act; or an event, on which nothing acts."""
    repair: Literal["", "none", "reboot", "replace"] = ""
    """Repair that acts by itself, where it is switched on; empty where that is not published."""

    def fault_of(self, number: str) -> str:
        """`check:code` for the number of a reason."""
        return self.fault.replace("*", number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent."""

    id: str
    title: str
    hardware: tuple[Hardware, ...]
    """Hardware that it looks at."""
    source: str
    date: str
    """Date of the source."""
    notes: tuple[str, ...]
    reports: tuple[Report, ...]

    def grave_faults(self) -> tuple[Fault, ...]:
        """Rows of its hardware after which a node works only with a reset, a reboot or another machine."""
        return tuple(row for row in grave_faults() if hardware_of(row) in self.hardware)

    def reports_of(self, fault: Fault) -> tuple[Report, ...]:
        """Reports of a row; empty where the agent publishes nothing.

        A row that another line of the driver decides, with no number in it, is not reported by its number.
        """
        codes = {f"{fault.check}:{code}" for code in fault.codes}
        if fault.check == "xid" and fault.line and "Xid (" not in fault.line:
            return ()
        found = tuple(
            report for report in self.reports if report.fault in codes and not _elsewhere(report, fault)
        )
        if found or fault.check != "xid" or not fault.codes[0].isdecimal():
            return found
        return tuple(report for report in self.reports if report.fault == "xid:*")


def _elsewhere(report: Report, fault: Fault) -> bool:
    """True for a report by a number that is of another row of the same code: of none whose text decides."""
    return fault.check == "xid" and bool(fault.text) and "*" not in report.fault


@cache
def node_agents() -> tuple[Agent, ...]:
    """Every agent."""
    return tuple(
        record(Agent, agent, reports=tuple(record(Report, row, kind=row["as"]) for row in agent["reports"]))
        for agent in catalog_file("node_agents")["agents"]
    )


def reported(line: str) -> Iterator[tuple[Agent, Report, str]]:
    """Reports that a line has the words of: agent, report, and the number in it, empty for none."""
    for agent, report, pattern in _patterns():
        for match in pattern.finditer(line):
            yield agent, report, match[1] if match.groups() else ""


@cache
def _patterns() -> tuple[tuple[Agent, Report, re.Pattern[str]], ...]:
    return tuple(
        (agent, report, _pattern(report.reason))
        for agent in node_agents()
        for report in agent.reports
        if report.reason
    )


def _pattern(reason: str) -> re.Pattern[str]:
    """Expression of the word alone: a name that continues is another one."""
    word = reason.replace("*", r"(\d{1,5})")
    return re.compile(rf"(?<![\w-]){word}(?![\w-])", re.IGNORECASE | re.ASCII)


def grave_faults() -> tuple[Fault, ...]:
    """Rows after which a node does no more work until a reset, a reboot or another machine."""
    return tuple(
        row
        for row in node_faults()
        if row.severity == "critical" and row.action in ("reset", "reboot", "replace")
    )


def hardware_of(fault: Fault) -> Hardware:
    """Hardware that a row is about."""
    return "nvidia" if fault.check in _NVIDIA else "neuron" if fault.check == "neuron" else "host"


def rows_of(report: Report, number: str = "") -> tuple[Fault, ...]:
    """Rows that a report may mean, before a generation decides; empty for a number of DCGM's errors."""
    return faults_of_reason(REASON_PREFIX + report.fault_of(number))


__all__ = [
    "Agent",
    "Hardware",
    "Report",
    "grave_faults",
    "hardware_of",
    "node_agents",
    "reported",
    "rows_of",
]
