"""Log lines, taken apart: which process said what, however the lines of several processes mix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TextIO

LONGEST = 1 << 16
"""Characters of a line that are looked at together; what is longer is no line of NCCL."""

# What launchers put before a line: `[1,3]<stdout>:` (mpirun), `3: ` (srun --label), `[pod/a/b] ` (kubectl).
_TAG = re.compile(r"(?:\[[0-9]{1,6},[0-9]{1,6}\]<std(?:out|err)>: ?|[0-9]{1,6}: |\[pod/[^\]\s]{1,300}\] )")
# `host:pid:tid [device] NCCL INFO `; warnings name file and line (and function) before NCCL. All lengths are
# bounded, so that no text can make the search slow.
_PREFIX = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,63}):(?P<pid>[0-9]{1,10}):[0-9]{1,10} "
    r"(?:\[[0-9]{1,4}\] )?(?:[^\s:]{1,120}:[0-9]{1,6} (?:\([^\s)]{1,80}\) )?)?"
    r"NCCL (?:INFO|WARN|CALL|TRACE|VERSION) "
)


@dataclass(frozen=True, slots=True)
class Process:
    """A process as NCCL names it in its lines."""

    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a line that one process wrote."""

    process: Process | None
    """None: not a line of NCCL, or it is unknown whose."""
    text: str
    torn: bool = False
    """Another process wrote into it, so that its end may be elsewhere."""


def read_lines(file: TextIO) -> Iterator[str]:
    """Lines with their ends; a longer one than `LONGEST` comes in pieces."""
    while line := file.readline(LONGEST):
        yield line


def fragments(line: str, hosts: Collection[str]) -> list[Fragment]:
    """The pieces of a line, in their order.

    Args:
        line: with its end; without one it is cut, as the last line of a log may be.
        hosts: names known so far, to tell them from torn text.
    """
    cut = not line.endswith("\n")
    line = line.rstrip("\r\n")
    if tag := _TAG.match(line):
        line = line[tag.end() :]
    if "NCCL " not in line:
        return [Fragment(None, line, cut)]
    starts: list[tuple[int, int, Process | None]] = []
    for match in _PREFIX.finditer(line):
        host = _host(match["host"], hosts, alone=match.start() == 0)
        process = Process(host, int(match["pid"])) if host else None
        start = match.end("host") - len(host) if host else match.start()
        starts.append((start, match.end(), process))
    if not starts:
        return [Fragment(None, line, cut)]
    found: list[Fragment] = []
    if line[: starts[0][0]].strip():
        found.append(Fragment(None, line[: starts[0][0]], torn=True))
    for index, (_, end, process) in enumerate(starts):
        last = index + 1 == len(starts)
        text = line[end:] if last else line[end : starts[index + 1][0]]
        found.append(Fragment(process, text, torn=cut or not last))
    return found


def _host(found: str, hosts: Collection[str], *, alone: bool) -> str:
    """The host in what stands before a process number; empty if torn text hides it."""
    if found in hosts:
        return found
    known = max((host for host in hosts if found.endswith(host)), key=len, default="")
    if not alone:
        return known
    # at the start of a line only the end of a number can be in the way
    rest = found.removesuffix(known)
    return known if known and rest.replace(".", "").isdigit() else found
