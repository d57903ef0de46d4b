"""Options that searches for capacity share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.capacity.search import tomorrow
from ultracluster.cli.report import refuse
from ultracluster.model.capacity import weeks_ahead

if TYPE_CHECKING:
    from ultracluster.config import Environment

_YEAR = 366
"""Days, at most, that `--after` may be ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says of a search of every Region."""

    environment: Environment | None = None
    accelerators: str = ""
    instance_type: str = ""
    count: int = 1
    days: int
    after: datetime
    orchestrator: str | None = None
    regions: Sequence[str] = ()
    write: Path | None = None
    offer: str | None = None


def start_of(text: str | None) -> datetime:
    """The day of --after, else tomorrow."""
    first = tomorrow(now())
    if text is None:
        return first
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        refuse(f"--after is a day as `2026-12-01`, not `{text}`")
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        refuse(f"--after {text}: there is no such day; write it as `2026-12-01`")
    if day < first - timedelta(days=1):
        refuse(f"--after {text} is past: today is {now():%Y-%m-%d} (UTC)")
    if day > first + timedelta(days=_YEAR):
        last = first + timedelta(weeks=weeks_ahead())
        refuse(
            f"--after {text} is more than a year ahead; AWS sells starts up to {weeks_ahead()} weeks ahead, "
            f"until about {last:%Y-%m-%d}"
        )
    return day


def now() -> datetime:
    return datetime.now(UTC)
