"""Settings that AWS does not change where they are deployed (`fixed_settings.json`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSetting:
    """Settings of some orchestrators, or the remedies of some rules."""

    settings: tuple[str, ...] = ()
    """Dotted paths of the file; `*` stands for any characters. After `write` or `remove`, one of both."""
    rules: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Orchestrators; empty for all."""
    roles: tuple[str, ...] = ()
    """Node groups; empty for all."""
    way: str
    """Words: what works instead."""
    source: str

    def holds(self, setting: str, rule: str, kind: str, role: str, *, removed: bool) -> bool:
        """Return whether AWS refuses what a rule's remedy writes to a setting, or its removal."""
        if self.rules:
            return rule in self.rules
        return (
            (not self.kinds or kind in self.kinds)
            and (not self.roles or role in self.roles)
            and any(
                fnmatchcase(text, one)
                for text in (setting, f"{'remove' if removed else 'write'} {setting}")
                for one in self.settings
            )
        )


@cache
def fixed_settings() -> tuple[FixedSetting, ...]:
    """Every row."""
    rows = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    lists = ("settings", "rules", "kinds", "roles")
    return tuple(
        FixedSetting(**{key: tuple(row.get(key, ())) for key in lists}, way=row["way"], source=row["source"])
        for row in rows
    )
