"""No test writes into the log folder of this machine, as programs of a node would do without a root."""

from __future__ import annotations

import os
import sys
from typing import Any

FOLDER = "/var/log/ultracluster"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND


class MachineLogError(Exception):
    """No OSError: programs of a node live with a log that cannot be written."""


def forbid() -> None:
    """From now on such a write of this process raises."""
    sys.addaudithook(_watch)


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = args
        writes = bool(flags & _WRITES) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
    elif event in ("os.mkdir", "os.remove", "os.rename"):
        path, writes = args[1 if event == "os.rename" else 0], True
    else:
        return
    if writes and isinstance(path, str) and (path == FOLDER or path.startswith(f"{FOLDER}/")):
        raise MachineLogError(f"a test writes to {path}: give the program a root (ULTRACLUSTER_ROOT)")
