"""When Kubernetes releases leave the support of EKS."""

from __future__ import annotations

import datetime as dt
import json
from functools import cache
from pathlib import Path
from typing import Any


def standard_support_ends(release: str) -> dt.date | None:
    """The first day (UTC) on which a release, `1.34`, is billed for extended support; None where unknown."""
    row = _document()["releases"].get(release)
    return dt.date.fromisoformat(row["standard_ends"]) if row else None


@cache
def _document() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "eks_calendar.json").read_text(encoding="utf-8"))
