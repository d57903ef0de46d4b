"""Kinds of zones, and in which of them services put what; `zone_kinds.json` has the rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ultracluster.catalog.files import catalog_file, table
from ultracluster.catalog.regions import is_local_zone

ZoneKind = Literal["zone", "local", "wavelength"]
ZONE_WORDS: dict[ZoneKind, str] = {
    "zone": "zone of the Region",
    "local": "Local Zone",
    "wavelength": "Wavelength Zone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRow:
    """A part of a service, and kinds of zones in which it can or cannot be."""

    on: Collection[str]
    """Orchestrators."""
    part: Literal["control plane", "nodes"]
    kinds: Collection[ZoneKind]
    verdict: Literal["refused", "discouraged", "allowed"]
    source: str
    date: str
    rule: str = ""
    """Id of the rule; empty where it is allowed."""
    why: str = ""


def zone_kind(zone_id: str) -> ZoneKind:
    """Kind of a zone by the form of its id: use1-az1, use1-dfw2-az1, use1-wl1-bos-wlz1."""
    if not is_local_zone(zone_id):
        return "zone"
    return "wavelength" if re.search(r"-wl[z\d]", zone_id) else "local"


def refused_kinds(rule: str) -> Collection[ZoneKind]:
    """Kinds of zones in which a rule's service puts nothing; each rule is of one part of a service."""
    return {
        kind for row in zone_rows() if row.rule == rule and row.verdict == "refused" for kind in row.kinds
    }


@cache
def zone_rows() -> tuple[ZoneRow, ...]:
    """All rows."""
    return table(ZoneRow, catalog_file("zone_kinds")["rows"])
