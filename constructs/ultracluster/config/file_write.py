"""Files written in one step: the old content or the new content is there, never half of either."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def write(file: Path, content: str | bytes, *, new: bool = False) -> None:
    """Write a regular file: a temporary file in its folder, synced to disk, then renamed.

    An existing file keeps its permissions. Folders above it are not created.

    Args:
        content: text is written as UTF-8, with its line ends as they are.
        new: refuse a file that exists.

    Raises:
        FileExistsError: it exists, and `new` is set.
        OSError: it cannot be written, is read-only, or is a link, a folder, a pipe or a device; the old file
            is then unchanged and nothing is left beside it. `strerror` gives the reason.
    """
    mode = _checked_mode(file, new=new)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:100]}.", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        if new:
            _publish(temporary, file)
        else:
            temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(file.parent)


def replace(file: Path, staged: Path) -> None:
    """Put a file that is written already in the place of another, or of none.

    Raises:
        OSError: as `write`.
    """
    staged.chmod(_checked_mode(file, new=False))
    staged.replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Bring renamed and removed names of a folder to disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _publish(temporary: Path, file: Path) -> None:
    """Rename without replacing: a hard link fails where the name is taken."""
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        temporary.replace(file)


def _checked_mode(file: Path, *, new: bool) -> int:
    """Permissions for the new content, if the file may be written."""
    try:
        mode = file.lstat().st_mode
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a NUL character") from None
    if new:
        raise FileExistsError(errno.EEXIST, "it exists")
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link: write to the file it leads to")
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
    if not mode & 0o222:
        raise PermissionError(errno.EACCES, "it is read-only")
    return stat.S_IMODE(mode)
