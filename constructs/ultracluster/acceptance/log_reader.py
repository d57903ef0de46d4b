"""Logs of nccl-tests, read line by line into `Run`s.

Formats of nccl-tests 2.13 to 2.19. Text that is none of it is passed over: a log holds what launchers,
NCCL and others write, too. Nothing here raises on any text.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from ultracluster.acceptance.lines import Fragment, Process, fragments, read_lines
from ultracluster.acceptance.patterns import patterns
from ultracluster.acceptance.runs import Evidence, Figures, Logs, Rank, Row, Run

MARK = "# ultracluster-acceptance "
"""Lines of our own jobs: `key=value` words that say what follows."""
HOST_REPORT = "# ultracluster-host "
"""Lines of our own jobs: the JSON report of verify/fabric.sh on one node."""

_START = re.compile(r"# nThread +[0-9]+ +nGpus +[0-9]+ ")
_TESTS_VERSION = re.compile(r"# nccl-tests version (\S{1,40})")
_COLLECTIVE = re.compile(r"# Collective test starting: (?:\S*/)?(\w{1,40})")
_RANK = re.compile(
    r"# +Rank +([0-9]{1,7}) +(?:Group +([0-9]{1,7}) +)?Pid +([0-9]{1,10}) +on +(\S{1,255}) +"
    r"device +([0-9]{1,4}) +\[[^\]]{1,40}\] *(.{0,200})"
)
_ROW = re.compile(
    r" *([0-9]{1,18}) +([0-9]{1,18}) +([a-z][a-z0-9_]{1,19}) +([a-z]{2,10}) +(-?[0-9]{1,7})(?![0-9.])(.*)"
)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}:[0-9]{2}")
_NUMBER = re.compile(r"N/A|[-+]?(?:[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]{1,3})?|nan|inf)")
_BOUNDS = re.compile(r"# Out of bounds values *: *(-?[0-9]{1,18}) +(\w{1,20})")
_AVERAGE = re.compile(r"# Avg bus bandwidth *: *(\S{1,20})(?: +(\w{1,20}))?")
_REDUCED = re.compile(r"# Reducing maxBytes to ([0-9]{1,18}) ")
_ERROR = re.compile(
    r"Test (?:NCCL|CUDA) failure|: Test timeout \(|: Test failure "
    r"|srun: error: .*(?:[Ee]xited with|[Kk]illed|[Tt]erminated)"
    r"|exited with non-zero status|a non-zero exit code|CANCELLED AT|DUE TO TIME LIMIT|oom[-_]kill"
)

_LONGEST_ROW = 5 + 2 * 8 + 2  # head, two halves with the times of each iteration, a time stamp
MOST_LOG_BYTES = 256 << 20
"""Limit of one log: a thousand ranks with NCCL_DEBUG=INFO write a tenth of it."""
_MOST_ERRORS = 20  # kept per run: the first ones tell the cause


def read(paths: Iterable[Path]) -> Logs:
    """Read logs, line by line: of one job, or NCCL's own files (`NCCL_DEBUG_FILE`) next to it.

    Raises:
        OSError: a file cannot be read, is none, or has more than `MOST_LOG_BYTES`.
    """
    from ultracluster.config.file_text import opened  # nodes import this module, and no models with it

    logs = Logs()
    loose: list[Run] = []
    for path in paths:
        try:
            binary = opened(path, MOST_LOG_BYTES)
        except OSError as error:
            error.filename = str(path)
            raise
        with io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="\n") as file:
            loose += _read_one(path.name, read_lines(file), logs)
    for run in loose:
        _join(run, logs)
    return logs


def parse(text: str, name: str = "log") -> Logs:
    """Read a log that is in memory."""
    logs = Logs()
    for run in _read_one(name, text.splitlines(keepends=True), logs):
        _join(run, logs)
    return logs


def _read_one(name: str, lines: Iterable[str], logs: Logs) -> list[Run]:
    """Adds the runs of one file; gives back lines of NCCL for which the file has no run."""
    reader = _Reader(name, logs)
    for number, line in enumerate(lines, 1):
        reader.line(line, f"{name}:{number}")
    if reader.run.started:
        logs.runs.append(reader.run)
    elif logs.runs and reader.run_count and not reader.run.evidence.empty:
        logs.runs[-1].evidence.merge(reader.run.evidence)
    elif not reader.run.evidence.empty or reader.run.errors:
        return [reader.run]
    return []


def _join(loose: Run, logs: Logs) -> None:
    """Lines of NCCL from a file of its own belong to the run with that process, else to the largest run."""
    if not logs.runs:
        logs.runs.append(loose)
        return
    largest = max(logs.runs, key=lambda run: len(run.ranks))
    evidence = loose.evidence
    for process, kinds in evidence.processes.items():
        places = {key: place for key, place in evidence.places.items() if key[1] == str(process)}
        part = Evidence(processes={process: kinds}, places=places)
        next((run for run in logs.runs if process in run.processes), largest).evidence.merge(part)
    rest = {key: place for key, place in evidence.places.items() if not key[1]}
    largest.evidence.merge(Evidence(unattributed=evidence.unattributed, places=rest, torn=evidence.torn))
    largest.errors += loose.errors


class _Reader:
    """Where one file stands: the run that is being read, and the row that has begun."""

    def __init__(self, name: str, logs: Logs) -> None:
        self._logs = logs
        self._name = name
        self.run = Run(name)
        self.run_count = 0
        self._hosts: set[str] = set()
        self._row: list[str] = []
        self._figures = 4  # per half row; 8 with the times of each iteration

    def line(self, line: str, place: str) -> None:
        for fragment in fragments(line, self._hosts):
            if fragment.process is None:
                if fragment.text and not fragment.text.isspace():
                    self._text(fragment, place)
            else:
                self._hosts.add(fragment.process.host)
                self.run.evidence.add(fragment, place)

    def _text(self, fragment: Fragment, place: str) -> None:
        text = fragment.text
        if "# " in text and self._comment(text, place):
            return
        if match := _ROW.match(text):
            self._row = list(match.groups()[:5])
            self._row_goes_on(match[6])
        elif self._row and self._row_goes_on(text):
            pass
        else:
            self._other(fragment, place)

    def _other(self, fragment: Fragment, place: str) -> None:
        if any(pattern.contains in fragment.text for pattern in patterns()):
            self.run.evidence.add(fragment, place)
        if len(self.run.errors) < _MOST_ERRORS and _ERROR.search(fragment.text):
            self.run.errors.append(f"{place}: {fragment.text.strip()[:300]}")

    def _comment(self, text: str, place: str) -> bool:
        """Return whether the text is a line of nccl-tests or of our jobs."""
        run = self.run
        if (at := text.find(MARK)) >= 0:
            self._mark(text[at + len(MARK) :], place)
        elif (at := text.find(HOST_REPORT)) >= 0:
            self._host_report(text[at + len(HOST_REPORT) :])
        elif match := _TESTS_VERSION.search(text):
            self._begin(place)
            self.run.tests_version = match[1]
        elif match := _COLLECTIVE.search(text):
            self._begin(place)
            self.run.collective = match[1]
        elif _START.search(text):
            self._begin(place)
        elif match := _RANK.search(text):
            process = Process(match[4], int(match[3]))
            self._hosts.add(process.host)
            run.started = True
            rank, group, device = int(match[1]), int(match[2] or 0), int(match[5])
            run.ranks.append(Rank(rank, group, process, device, match[6].strip()))
        elif match := _REDUCED.search(text):
            run.reduced_to = int(match[1])
        elif "# Per-Iteration Report" in text:
            self._figures = 8
        elif match := _BOUNDS.search(text):
            run.out_of_bounds, run.bounds_ok = int(match[1]), match[2] == "OK"
        elif match := _AVERAGE.search(text):
            run.average, run.finished = _number(match[1]), True
            if match[2] == "FAILED":
                run.errors.append(f"{place}: {text.strip()[:300]}")
        elif "# error: " in text:
            run.errors.append(f"{place}: {text.strip()[:300]}")
        else:
            return False
        self._row = []
        return True

    def _begin(self, place: str) -> None:
        """A header line: the first of a new run, or one more of the same header."""
        run = self.run
        if run.ranks or run.rows or run.finished:
            self._end()
        if not self.run.started:
            self.run.started, self.run.source = True, place
        self._figures = 4

    def _end(self) -> None:
        if self.run.started:
            self._logs.runs.append(self.run)
            self.run_count += 1
        self.run = Run(self._name)
        self._row = []

    def _mark(self, words: str, place: str) -> None:
        marks = dict(word.split("=", 1) for word in words.split() if "=" in word)
        if "run" in marks:  # the first line of a run
            if self.run.started:
                self._end()
            self.run.marks |= marks
            self.run.started, self.run.source = True, place
        elif "exit" in marks and self.run.started:  # the last one
            self.run.marks |= marks
        elif "place" in marks:
            # the last part is the node itself
            self._logs.places[marks["place"]] = tuple(marks.get("path", "").split(".")[:-1])
        else:
            self._logs.marks |= marks

    def _host_report(self, text: str) -> None:
        try:
            report: Any = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(report, dict):
            return
        entry = cast("dict[str, Any]", report)
        if isinstance(entry.get("host"), str):
            hosts, host = self._logs.hosts, str(entry["host"])
            hosts[host] = max(hosts.get(host, {}), entry, key=_badness)

    def _row_goes_on(self, text: str) -> bool:
        """Takes the figures of a row, however they are spread over lines; False if these are none."""
        words = text.split()
        if not all(_NUMBER.fullmatch(word) or _TIMESTAMP.fullmatch(word) for word in words):
            return False
        self._row += words[: _LONGEST_ROW - len(self._row)]
        half = self._figures
        if len(self._row) >= 5 + 2 * half:
            size, count, kind, redop, root, *figures = self._row
            halves = (_figures(figures[:4]), _figures(figures[half : half + 4]))
            self.run.rows.append(Row(int(size), int(count), kind, redop, int(root), *halves))
            self._row = []
        return True


def _badness(report: dict[str, Any]) -> int:
    """A report that is none is the least."""
    return {"pass": 1, "fail": 3}.get(str(report.get("verdict")), 2) if report else 0


def _figures(words: list[str]) -> Figures | None:
    time, algbw, busbw = (_number(word) for word in words[:3])
    if time is None or algbw is None or busbw is None:
        return None
    return Figures(time, algbw, busbw, _number(words[3]))


def _number(word: str) -> float | None:
    """None: "N/A", or no finite number."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
