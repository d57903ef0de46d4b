"""Logs that somebody has: a file, a folder or standard input, read within bounds and without an account."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from ultracluster.account.doctor.examination import Examination, Quote, Source

LARGEST = 32 << 20
"""Bytes of a log that are read: the last ones, for a log ends with what went wrong."""
LINES = 100_000
"""Distinct lines of all logs."""
FILES = 1000
"""Most files of a folder."""
_LONGEST = 1 << 20
"""Characters of a line that are kept."""
_SKIPPED = (".gz", ".xz", ".bz2", ".zst", ".zip", ".png", ".jpg", ".pdf", ".pyc", ".so")


class LogError(Exception):
    """A log that cannot be read: what, and why."""


@dataclass(slots=True)
class _Lines:
    """Distinct lines, with where each was first and how often."""

    seen: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    left_out: int = 0

    def add(self, line: str, where: str) -> None:
        if line in self.seen:
            self.seen[line][1] += 1
        elif len(self.seen) < LINES:
            self.seen[line] = [where, 1]
        else:
            self.left_out += 1


def read_logs(paths: Sequence[str], stdin: IO[bytes], generations: Sequence[str] = ()) -> Examination:
    """Read logs, to be matched with known failures and with the table of node faults.

    Args:
        paths: of files and folders; `-` is standard input.
        stdin: what `-` reads.
        generations: of the environment's accelerators.

    Raises:
        LogError: it is not there or may not be read.
    """
    lines, sources = _Lines(), list[Source]()
    for path in paths:
        for name, stream, size in _streams(path, stdin):
            sources.append(_read(name, stream, size, lines))
    if lines.left_out:
        sources.append(
            Source("all logs", "read", f"{lines.left_out} lines beyond {LINES} distinct ones not read")
        )
    quotes = [Quote(where, text, times) for text, (where, times) in lines.seen.items()]
    return Examination(sources=sources, quotes=quotes, generations=tuple(generations))


def _streams(path: str, stdin: IO[bytes]) -> Iterator[tuple[str, IO[bytes], int]]:
    """Name, stream and bytes of each log; -1 for a stream of unknown size."""
    if path == "-":
        yield "standard input", stdin, -1
        return
    place = Path(path)
    if place.is_dir():
        files = [Path(folder, name) for folder, _, names in os.walk(place) for name in sorted(names)]
        files = [file for file in sorted(files) if file.suffix not in _SKIPPED][:FILES]
        if not files:
            raise LogError(f"{path}: there is no file in it")
    else:
        files = [place]
    for file in files:
        try:
            about = file.stat()
            if place.is_dir() and not stat.S_ISREG(about.st_mode):
                continue  # a pipe or a device would never end
            with file.open("rb") as stream:
                yield str(file), stream, about.st_size if stat.S_ISREG(about.st_mode) else -1
        except OSError as error:
            if not place.is_dir():
                raise LogError(f"{path}: {error.strerror or error}") from error


def _read(name: str, stream: IO[bytes], size: int, lines: _Lines) -> Source:
    data, whole = _tail(stream, size)
    count = 0
    for number, line in enumerate(_decoded(data).splitlines(), 1):
        count = number
        for text in _messages(line):
            if text.strip():
                lines.add(text[:_LONGEST], f"{name}:{number}" if whole else name)
    if not data:
        return Source(name, "nothing there", "it is empty")
    why = f"{count} line{'s' * (count != 1)}"
    return Source(name, "read", why if whole else f"{why}, the last {LARGEST >> 20} MB of it")


def _tail(stream: IO[bytes], size: int) -> tuple[bytes, bool]:
    """The last bytes, and whether those are all."""
    if size > LARGEST:
        stream.seek(size - LARGEST)
        return stream.read(LARGEST), False
    kept, whole = b"", True
    while chunk := stream.read(io.DEFAULT_BUFFER_SIZE << 4):
        kept += chunk
        if len(kept) > 2 * LARGEST:
            kept, whole = kept[-LARGEST:], False
    return (kept, whole) if len(kept) <= LARGEST else (kept[-LARGEST:], False)


def _decoded(data: bytes) -> str:
    """UTF-8, or UTF-16 as Windows writes it; what is neither is replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _messages(line: str) -> Iterator[str]:
    """The line; of one that is JSON (the journal, CloudWatch, containers) the messages in it, too."""
    yield line
    start = line.lstrip()[:1]
    if start not in ("{", "[") or len(line) > _LONGEST:
        return
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    yield from _texts(value, 4)


def _texts(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from value.splitlines()
        return
    inner = _inner(value) if deep else []
    if len(inner) > 8 and all(isinstance(one, int) and 0 <= one < 256 for one in inner):
        yield bytes(inner).decode("utf-8", "replace")  # the journal's form of what is no UTF-8
        return
    for one in inner:
        yield from _texts(one, deep - 1)


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
