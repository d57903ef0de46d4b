"""Files that somebody else wrote, read with a bound: never a pipe, which may never end, nor a device."""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Literal

MOST_BYTES = 4 << 20
"""Of a file that people or this package write; the greatest lock file has 42 kB."""
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def bytes_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: it does not exist, is no regular file, or has more than `most` bytes; `strerror` says why.
    """
    with opened(path, most) as file:
        content = file.read(most + 1)  # it may have grown
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return content


def opened(path: Path, most: int) -> BinaryIO:
    """A regular file, opened for reading.

    Raises:
        OSError: as `bytes_of`.
    """
    try:
        file = os.fdopen(os.open(path, _OPEN), "rb")
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "its name holds a NUL character") from None
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_size <= most:
        return file
    file.close()
    if stat.S_ISREG(found.st_mode):
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    raise OSError(
        errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(found.st_mode), 'something else')}, not a file"
    )


def text_of(path: Path, most: int = MOST_BYTES) -> str:
    """The same as text; a byte order mark of UTF-8 is no part of it.

    Raises:
        OSError: as `bytes_of`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return bytes_of(path, most).decode("utf-8-sig")


def gunzipped(data: bytes, most: int) -> bytes:
    """Unpack a gzip stream, bounded: a megabyte can become a gigabyte.

    Raises:
        OSError: it is no such stream, is cut, or holds more than `most` bytes.
    """
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(data, most + 1)
    except zlib.error:
        raise OSError(errno.EINVAL, "it is not gzip") from None
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most:,} bytes")
    if not stream.eof:
        raise OSError(errno.EINVAL, "it is cut")
    return content


def kind_of(path: Path) -> Literal["file", "folder", "else", "none"]:
    """What lies there; `none` for a name, too, that no file can have."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return "none"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "else"


def real(path: Path) -> Path:
    """The path with every link followed; as it is where that leads nowhere."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, links that lead to themselves
        return path.absolute()


def json_of(text: str | bytes) -> Any:
    """JSON of a stranger.

    Raises:
        ValueError: it is none, a number has too many digits, or its values lie in one another too deep.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its values lie in one another too deep") from None
