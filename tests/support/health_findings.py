"""Findings as the watcher and the checks of a node make them, and the book of open faults with them."""

from __future__ import annotations

from typing import Any

from health_modules import health_module

NOW = 1_800_000_000
OLD, NEW = "aaaaaaaa", "bbbbbbbb"
known, open_faults = health_module("known"), health_module("open_faults")


def line(code: str = "95", **changes: Any) -> Any:
    """What the watcher makes of a line of the kernel."""
    usual: dict[str, Any] = {
        "check": "xid",
        "result": "critical",
        "code": code,
        "action": "reset",
        "event": True,
        "verb": "watch",
        "fault": f"xid-{code}",
        "device": "0000:9b:00",
        "fatal": True,
        "at": NOW,
    }
    return known.Finding(**{**usual, **changes})


def contained(**changes: Any) -> Any:
    mild = {"result": "warn", "action": "requeue", "when_idle": "reset", "fatal": False}
    return line("94", **{**mild, **changes})


def look(result: str = "critical", code: str = "missing", **changes: Any) -> Any:
    """What a check finds."""
    usual: dict[str, Any] = {
        "check": "gpu_count",
        "result": result,
        "code": code,
        "action": "reboot" if result == "critical" else "none",
        "fault": f"gpu_count-{code}",
        "fatal": result == "critical",
        "at": NOW,
    }
    return known.Finding(**{**usual, **changes})


def book(*found: Any, boot: str = OLD, now: float = NOW, **more: Any) -> Any:
    return open_faults.noted(open_faults.Book(boot), found, now=now, **more)


def due(kept: Any, now: float = NOW, **more: Any) -> list[str]:
    return [finding.by for finding in open_faults.due(kept, now=now, **more)]


def refused(kept: Any, finding: Any, answer: str, now: float = NOW) -> Any:
    return open_faults.answered(kept, finding, asked="", answer=answer, now=now)
