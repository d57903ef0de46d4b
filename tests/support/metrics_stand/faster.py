"""Rules and routes in a hurry, for tests that wait for a real Prometheus; durations have their own tests."""

from __future__ import annotations

import re

FASTER = 60
SHORTEST = 3
"""Seconds of a window: less holds fewer than three samples."""
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+)(ms|[smhdw])")
_WINDOW = re.compile(r"\[(\d+(?:ms|[smhdw]))(?::(\d+(?:ms|[smhdw]))?)?\]")


def faster_rules(text: str) -> str:
    """Rules with windows, offsets and durations sixty times shorter, evaluated every second."""
    text = re.sub(r"(?m)^(\s*interval:) .*$", r"\1 1s", text)
    text = re.sub(r"(?m)^(\s*(?:for|keep_firing_for):) (\S+)$", lambda m: f"{m[1]} {_short(m[2], 0)}", text)
    text = _WINDOW.sub(lambda m: f"[{_short(m[1])}{':1s' if ':' in m[0] else ''}]", text)
    return re.sub(r"\boffset (\w+)", lambda m: f"offset {_short(m[1])}", text)


def faster_routes(text: str) -> str:
    """Routes that wait sixty times shorter, but four seconds: what fails together is scraped within two."""
    return re.sub(
        r"(?m)^(\s*(?:group_wait|group_interval):) (\S+)$", lambda m: f"{m[1]} {_short(m[2], 4)}", text
    )


def _short(duration: str, shortest: int = SHORTEST) -> str:
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration))
    return f"{max(shortest, round(seconds / FASTER))}s"
