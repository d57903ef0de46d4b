"""The watcher of the kernel's log, and entries of a journal for it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from project import ROOT

HEALTH = ROOT / "lifecycle_scripts" / "health"
# What Python would leave beside them would go to the nodes.
sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
sys.path.insert(0, str(HEALTH))
faults: Any = importlib.import_module("faults")
watch: Any = importlib.import_module("watch")
sys.path.remove(str(HEALTH))
sys.dont_write_bytecode = before

TABLE = faults.load()
BOOT = "0123456789abcdef0123456789abcdef"
SECOND = 10**6
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
NOW = 1_763_841_600 * SECOND

XID_79 = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID_74 = (
    "NVRM: Xid (PCI:0000:53:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link "
    "14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"
)
XID_13 = "NVRM: Xid (PCI:0000:53:00): 13, pid=4242, name=python3, Graphics Exception: ESR 0x546fb0=0x11f000e"


def entry(
    message: Any, at: int = 0, *, boot: str = BOOT, transport: str = "kernel", skew: int = 0
) -> dict[str, Any]:
    """One of the journal, so many microseconds after the boot."""
    return {
        "__CURSOR": f"s=1;b={boot};m={at:x}",
        "__MONOTONIC_TIMESTAMP": str(at),
        "__REALTIME_TIMESTAMP": str(NOW + at + skew),
        "_BOOT_ID": boot,
        "_TRANSPORT": transport,
        "MESSAGE": message,
    }
