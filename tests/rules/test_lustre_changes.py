"""Remedies for a Lustre file system bring along what the changed value requires."""

from __future__ import annotations

from typing import Any

from ultracluster.config.lustre import lustre_of
from ultracluster.config.remedy import DROP
from ultracluster.config.storage import Persistent2SsdLustre, ScratchLustre
from ultracluster.rules.lustre_changes import faster, other_deployment, other_tiers, without_efa


def persistent(**changes: Any) -> Persistent2SsdLustre:
    settings = {"capacity_gib": 4800, "throughput_mbps_per_tib": 125, **changes}
    return Persistent2SsdLustre(deployment="persistent-2-ssd", **settings)


def values(remedy: Any) -> list[dict[str, Any]]:
    options = remedy.placed(("storage", "lustre", "any")).options
    return [{str(change.path[-1]): change.value for change in option} for option in options]


def test_without_efa_nothing_is_left_that_requires_it() -> None:
    assert values(without_efa(lustre_of(persistent(efa=True)))) == [{"efa": False}]
    assert values(without_efa(lustre_of(persistent(efa=True, gds=True)))) == [{"efa": False, "gds": False}]


def test_a_tier_brings_a_capacity_that_it_allows() -> None:
    (tier,) = values(other_tiers(lustre_of(persistent(efa=True, capacity_gib=38400)), [1000]))
    assert tier == {"throughput_mbps_per_tib": 1000}
    (tier,) = values(other_tiers(lustre_of(persistent(efa=True, capacity_gib=38400)), [250]))
    assert tier["throughput_mbps_per_tib"] == 250 and tier.get("capacity_gib", 38400) % 2400 == 0


def test_faster_keeps_the_deployment() -> None:
    (scratch,) = values(faster(lustre_of(ScratchLustre(deployment="scratch-2", capacity_gib=1200)), 1000))
    assert set(scratch) == {"capacity_gib"} and scratch["capacity_gib"] > 1200
    (more,) = values(faster(lustre_of(persistent()), 2000))
    assert set(more) <= {"capacity_gib", "throughput_mbps_per_tib"} and more


def test_another_deployment_drops_what_it_lacks() -> None:
    (scratch,) = values(other_deployment(persistent(), "scratch-2"))
    assert scratch["deployment"] == "scratch-2" and scratch["throughput_mbps_per_tib"] is DROP
    (hdd,) = values(
        other_deployment(ScratchLustre(deployment="scratch-2", capacity_gib=1200), "persistent-1-hdd")
    )
    assert hdd["throughput_mbps_per_tib"] and hdd["drive_cache"] == "none" and hdd["capacity_gib"] >= 1200
