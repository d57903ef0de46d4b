"""Files that somebody else wrote, read with a bound: never a pipe, which may never end, nor a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

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
    try:
        handle = os.open(path, _OPEN)
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, "its name holds a NUL character") from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if not stat.S_ISREG(mode):
            raise OSError(
                errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file"
            )
        content = bytearray()
        while part := os.read(handle, most + 1 - len(content)):
            content += part
            if len(content) > most:
                raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    finally:
        os.close(handle)
    return bytes(content)


def text_of(path: Path, most: int = MOST_BYTES) -> str:
    """The same as text; a byte order mark of UTF-8 is no part of it.

    Raises:
        OSError: as `bytes_of`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return bytes_of(path, most).decode("utf-8-sig")


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
