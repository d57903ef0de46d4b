"""One deploy at a time in a project on one machine: both would write the same templates."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ultracluster.config.plain_text import one_line
from ultracluster.project.place import ProjectError

LOCK = "cdk.out.lock"
"""Beside cdk.out, which all environments of a project share. It stays; what counts is who holds it."""


@contextmanager
def only_one(root: Path, what: str) -> Generator[None]:
    """Hold the lock of a project; the system lets it go when the process ends, however it ends.

    Args:
        what: what is being done, for who comes second: `deploy of prod`.

    Raises:
        ProjectError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; CloudFormation still refuses a stack that is at work
        yield
        return
    try:
        number = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ProjectError(f"{root / LOCK} cannot be opened: {error.strerror}") from None
    with os.fdopen(number, "r+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = one_line(file.read(300)) or "another command"
            raise ProjectError(
                f"Nothing changed: {held} is at work in {root} on this machine. Wait until it ends, or "
                "deploy from another checkout: both would write cdk.out."
            ) from None
        except OSError:  # a file system without locks
            yield
            return
        file.seek(0)
        file.truncate()
        since = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        file.write(f"the {what} (process {os.getpid()}, since {since})")
        file.flush()
        yield
