"""Logs of nccom-test on Trainium, read and judged.

AWS publishes no figure of a type that a run could be held to, so none is a gate: what is judged is that all
devices and ranks took part, that the values are right, and that more went between the nodes than an ENA
interface carries, which only EFA or NeuronLink does. Formats of the guide of nccom-test (aws-neuron-sdk of
2026-08-21). Nothing here raises on any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ultracluster.acceptance.lines import read_lines
from ultracluster.acceptance.log_reader import MARK
from ultracluster.acceptance.report import Check, Curve, Report, size_text
from ultracluster.acceptance.runs import Figures, Row
from ultracluster.catalog import InstanceType
from ultracluster.catalog import instance_type as known_type

_GIB = 1.073741824
"""nccom-test prints GiB/s; figures here are GB/s."""
_HEAD = re.compile(r"\s*size\(B\)\s+count\(elems\)\s")
_ROW = re.compile(
    r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s+([a-z][a-z0-9]{1,9})((?:\s+[0-9]{1,12}(?:\.[0-9]{1,9})?){3})\s*(?:[a-z]\w{1,19}\s*)?$"
)
_AVERAGE = re.compile(r"\s*Avg bus bandwidth:\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)GB/s")
_ERROR = re.compile(
    r"errors? found - test failed|Failure running neuron-bench|Neuron DKMS Driver is not running"
    r"|Test failure: |srun: error: |exited with non-zero status|a non-zero exit code"
    r"|CANCELLED AT|DUE TO TIME LIMIT|oom[-_]kill"
)
_MOST_ERRORS = 20


@dataclass(slots=True)
class NccomRun:
    """One run of nccom-test."""

    source: str
    kind: str
    """`single` or `fabric`."""
    nodes: tuple[str, ...]
    cores: int
    """Of a node; 0 where the job does not say."""
    rows: list[Row] = field(default_factory=list[Row])
    average: float | None = None
    errors: list[str] = field(default_factory=list[str])
    status: str | None = None
    """With which it ended; None where the log ends before."""

    @property
    def label(self) -> str:
        return f"single node {self.nodes[0]}" if len(self.nodes) == 1 else f"{len(self.nodes)} nodes"

    @property
    def last(self) -> Row | None:
        """Of the largest message."""
        return max(self.rows, key=lambda row: row.size, default=None)


@dataclass(frozen=True, slots=True)
class NeuronHost:
    """What neuron-ls shows on one node."""

    devices: int
    cores: int
    links: int
    """Ends of links between its devices."""


@dataclass(slots=True)
class NccomLogs:
    """All that was read."""

    runs: list[NccomRun] = field(default_factory=list[NccomRun])
    hosts: dict[str, NeuronHost] = field(default_factory=dict[str, NeuronHost])
    marks: dict[str, str] = field(default_factory=dict[str, str])


def read_nccom(paths: Iterable[Path]) -> NccomLogs:
    """Read logs of our jobs.

    Raises:
        OSError: a file cannot be read.
    """
    logs = NccomLogs()
    for path in paths:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            _read(path.name, read_lines(file), logs)
    return logs


def parse_nccom(text: str, name: str = "log") -> NccomLogs:
    """Read a log that is in memory."""
    logs = NccomLogs()
    _read(name, text.splitlines(), logs)
    return logs


def judge_nccom(logs: NccomLogs, *, instance_type: str, nodes: int | None = None) -> Report:
    """Judge logs of nccom-test on nodes of one type; the run on most nodes is the one that counts.

    Args:
        logs: from `read_nccom`.
        instance_type: EC2 name; HyperPod's prefix "ml." is dropped.
        nodes: how many nodes the run must have; None = as many as it has.
    """
    name = instance_type.removeprefix("ml.")
    kind = known_type(name)
    runs = sorted(logs.runs, key=lambda run: -len(run.nodes))
    checks = list(_hosts(logs, kind, runs[0].nodes if runs else ()))
    if not runs:
        checks.append(Check("output", "not judged", "the logs hold no output of nccom-test"))
    for run in runs:
        checks += _results(run)
        checks += _ranks(run, kind)
    if runs:
        checks += _size(runs[0], nodes)
        checks += _network(runs[0], kind)
    versions = {
        key.removeprefix("version."): value for key, value in logs.marks.items() if key.startswith("version.")
    }
    return Report(
        instance_type=name,
        nodes=runs[0].nodes if runs else (),
        ranks=runs[0].cores * len(runs[0].nodes) if runs else 0,
        versions=versions,
        nics=(),
        checks=tuple(checks),
        curves=tuple(
            Curve(run.label, run.nodes, run.cores * len(run.nodes), tuple(run.rows), run.average)
            for run in runs
        ),
        pairs=None,
    )


def _read(name: str, lines: Iterable[str], logs: NccomLogs) -> None:
    run: NccomRun | None = None
    for number, line in enumerate(lines, 1):
        if (at := line.find(MARK)) >= 0:
            run = _mark(line[at + len(MARK) :], f"{name}:{number}", logs, run)
        elif run is not None:
            _of_run(line, f"{name}:{number}", run)


def _mark(words: str, place: str, logs: NccomLogs, run: NccomRun | None) -> NccomRun | None:
    """A line of our job: a run begins or ends, or what is known of a node or of all."""
    marks = dict(word.split("=", 1) for word in words.split() if "=" in word)
    if "run" in marks:
        nodes = tuple(filter(None, marks.get("nodes", "").split(",")))
        if marks.get("tool") != "nccom-test" or not nodes:
            return None
        run = NccomRun(place, marks["run"], nodes, _whole(marks.get("cores")))
        logs.runs.append(run)
        return run
    if "exit" in marks and run is not None:
        run.status = marks["exit"]
        return None
    if "neuron" in marks:
        counts = (_whole(marks.get(key)) for key in ("devices", "cores", "links"))
        logs.hosts[marks["neuron"]] = NeuronHost(*counts)
    else:
        logs.marks |= marks
    return run


def _of_run(line: str, place: str, run: NccomRun) -> None:
    if match := _ROW.fullmatch(line.rstrip("\r\n")):
        time, algorithm, bus = map(float, match[4].split())
        figures = Figures(time, algorithm * _GIB, bus * _GIB, None)
        run.rows.append(Row(int(match[1]), int(match[2]), match[3], "sum", -1, figures, None))
    elif match := _AVERAGE.match(line):
        run.average = float(match[1]) * _GIB
    elif not _HEAD.match(line) and _ERROR.search(line) and len(run.errors) < _MOST_ERRORS:
        run.errors.append(f"{place}: {line.strip()[:300]}")


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 7 else 0


def _hosts(logs: NccomLogs, kind: InstanceType | None, nodes: Sequence[str]) -> Iterator[Check]:
    """Every node has all its devices, and as many links as the others."""
    if not logs.hosts:
        message = "no lists of neuron-ls: devices and links of the nodes were not looked at"
        yield Check("hosts", "not judged", message)
        return
    expected = kind.accelerator.count if kind and kind.accelerator else 0
    most = max(host.links for host in logs.hosts.values())
    for node, host in logs.hosts.items():
        if host.devices < expected:
            yield Check("hosts", "fail", f"{node} shows {host.devices} of {expected} Neuron devices")
        elif host.links < most:
            words = f"{node} has {host.links} ends of NeuronLink, others have {most}: a link may be down"
            yield Check("hosts", "warn", words)
    missing = [node for node in nodes if node not in logs.hosts]
    if missing:
        yield Check("hosts", "not judged", f"no list of neuron-ls from {', '.join(missing[:8])}")
    elif all(host.devices >= expected and host.links == most for host in logs.hosts.values()):
        yield Check("hosts", "pass", f"{len(logs.hosts)} nodes show all devices and equally many links")


def _results(run: NccomRun) -> Iterator[Check]:
    """The program ran to its end, and found its values right."""
    if run.errors:
        yield Check("errors", "fail", run.errors[0], run.label)
    if run.status not in (None, "0"):
        yield Check("errors", "fail", f"the run ended with status {run.status}", run.label)
    elif run.status is None or run.average is None:
        yield Check(
            "results", "not judged", "the log ends before the end of the results", run.label, run.source
        )
    elif not run.rows:
        yield Check("results", "not judged", "the log has no rows of results", run.label, run.source)
    elif not run.errors:
        yield Check(
            "results", "pass", f"{len(run.rows)} sizes, whose values nccom-test found right", run.label
        )


def _ranks(run: NccomRun, kind: InstanceType | None) -> Iterator[Check]:
    """All cores of a node took part: as many as programs see, or each physical one."""
    cores = kind.logical_neuron_cores if kind else None
    if not cores or not kind or not run.cores:
        yield Check("ranks", "not judged", "how many NeuronCores a node has is not known", run.label)
    elif run.cores not in (cores, cores * kind.neuron_cores_joined):
        yield Check("ranks", "fail", f"{run.cores} ranks on a node, which has {cores} NeuronCores", run.label)


def _size(run: NccomRun, nodes: int | None) -> Iterator[Check]:
    found = len(run.nodes)
    if nodes is not None and found != nodes:
        yield Check("nodes", "fail", f"{nodes} nodes expected, {found} took part: {' '.join(run.nodes)}")
    else:
        yield Check("nodes", "pass", f"{found} nodes, {run.cores * found} ranks")


def _network(run: NccomRun, kind: InstanceType | None) -> Iterator[Check]:
    """More went between the nodes than TCP carries; and the figure, which no gate is held against."""
    last, count = run.last, len(run.nodes)
    if last is None or last.out_of_place is None:
        return
    bus = last.out_of_place.busbw
    yield Check(
        "bandwidth",
        "info",
        f"{bus:.2f} GB/s at {size_text(last.size)}: measured, not judged, AWS publishes no figure",
        run.label,
    )
    tcp = _ena_gigabytes(kind)
    if count < 2:
        yield Check("network", "not judged", "one node: nothing went over the network", run.label)
    elif tcp is None:
        yield Check("network", "not judged", "what TCP carries on the type is not known", run.label)
    elif (sent := bus * (count - 1) / count) > tcp:
        yield Check(
            "network",
            "pass",
            f"each node sent {sent:.1f} GB/s, more than the {tcp:.1f} GB/s of its ENA interface: not TCP",
            run.label,
        )
    else:
        yield Check(
            "network",
            "not judged",
            f"each node sent {sent:.1f} GB/s, which the {tcp:.1f} GB/s of its ENA interface would carry, too",
            run.label,
        )


def _ena_gigabytes(kind: InstanceType | None) -> float | None:
    """GB/s of the first network card, which has the IP address."""
    cards = kind.network_cards_api if kind else ()
    first = next((row for row in cards if row.first == 0), None)
    return first.peak_gbps / 8 if first else None
