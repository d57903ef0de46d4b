"""Changes of a Lustre file system that more than one rule advises, each with what it brings with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from ultracluster.catalog.fsx import lustre
from ultracluster.catalog.sizing import lustre_write_mbps_per_tib
from ultracluster.config.lustre import LustreFacts, NewLustre, lustre_of
from ultracluster.config.remedy import DROP, Remedy, ask, beside, either, inside
from ultracluster.config.storage import (
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.model.checkpoints import GIB_PER_TIB, smallest_lustre

_MODELS = (ScratchLustre, Persistent1SsdLustre, Persistent1HddLustre, Persistent2SsdLustre)


def without_efa(facts: LustreFacts) -> Remedy:
    """No EFA, and nothing that needs it; for a finding at a key of the file system."""
    needing: dict[str, object] = {"gds": False} if facts.gds else {}
    needing |= {"efa_interfaces_per_client": DROP} if facts.efa_interfaces_per_client else {}
    return beside(efa=False, **needing)


def other_tiers(facts: LustreFacts, tiers: Iterable[int]) -> Remedy:
    """These tiers, each with the nearest capacity that it allows."""
    return either(*(beside(**_sized(facts, tier)) for tier in tiers))


def faster(facts: LustreFacts, mbps: float, tiers: Sequence[int] = ()) -> Remedy:
    """The same deployment, large enough to write `mbps`; for a finding at the file system itself.

    `tiers`: the only ones that are sold there; empty for all.
    """
    match facts.new:
        case Persistent1SsdLustre() | Persistent1HddLustre() | Persistent2SsdLustre() as settings:
            capacity, tier = smallest_lustre(
                settings.deployment, settings.capacity_gib, mbps, efa=facts.efa, grows=True, tiers=tiers
            )
            changes = {"capacity_gib": capacity, "throughput_mbps_per_tib": tier}
            own = {
                "capacity_gib": settings.capacity_gib,
                "throughput_mbps_per_tib": settings.throughput_mbps_per_tib,
            }
            return inside(**{key: value for key, value in changes.items() if value != own[key]})
        case ScratchLustre() as settings:
            sizes = lustre(settings.deployment).capacity()
            per_tib = lustre_write_mbps_per_tib(settings.deployment, None)
            larger = sizes.above(math.ceil(mbps / per_tib * GIB_PER_TIB) - 1) if sizes and per_tib else None
            return inside(capacity_gib=larger) if larger else ask("decision", "another deployment")
        case IntelligentTieringLustre() as settings:
            steps = lustre(settings.deployment).throughput
            more = steps.above(math.ceil(mbps) - 1) if steps else None
            return inside(throughput_mbps=more) if more else ask("decision", "another deployment")
        case None:
            return ask("decision", "a faster file system")


def _sized(facts: LustreFacts, tier: int) -> dict[str, Any]:
    changes: dict[str, Any] = {"throughput_mbps_per_tib": tier}
    sizes = lustre(facts.settings.deployment).capacity(tier, efa=facts.efa)
    if sizes and facts.capacity_gib is not None and facts.capacity_gib not in sizes:
        changes["capacity_gib"] = sizes.neighbours(facts.capacity_gib)[-1]
    return changes


def other_deployment(settings: NewLustre, name: str) -> Remedy:
    """Another deployment with what it needs and without what it lacks; at a key of `settings`."""
    model = next(one for one in _MODELS if name in get_args(one.model_fields["deployment"].annotation))
    changes: dict[str, Any] = {"deployment": name}
    changes |= {key: DROP for key in sorted(settings.model_fields_set) if key not in model.model_fields}
    offered, facts = lustre(name), lustre_of(settings)
    tier = facts.throughput_mbps_per_tib
    if offered.throughput and (tier is None or tier not in offered.throughput):
        tier = (offered.throughput.neighbours(tier) if tier else offered.throughput.neighbours(0))[-1]
        changes["throughput_mbps_per_tib"] = tier
    sizes, capacity = offered.capacity(tier), facts.capacity_gib or 0
    if sizes and capacity not in sizes:
        changes["capacity_gib"] = sizes.neighbours(capacity)[-1]
    if name == "persistent-1-hdd" and settings.deployment != name:
        changes["drive_cache"] = "none"
    if settings.version not in offered.versions:
        changes["version"] = offered.versions[-1]
    return beside(**changes)
