"""The day on which rules are read: whether a release is out of support depends on it."""

from __future__ import annotations

from datetime import date

_CATALOGUE = date(2026, 11, 20)


def today() -> date:
    """The current day; never before the catalogue's own, whatever the clock says."""
    return max(date.today(), _CATALOGUE)
