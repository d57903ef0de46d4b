"""What capacity in a zone would need besides: what FSx has there, what is not known, what has to move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ultracluster.catalog import instance_type, is_local_zone, region, zone_region
from ultracluster.catalog.fsx import lustre_offer
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.model import TRAITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where an environment is that capacity is sought for."""

    asked_as: str
    """As commands call it."""
    region: str
    zone_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Capacity in a zone, be it on offer or held."""

    region: str
    zones: tuple[str, ...]
    instance_type: str
    hyperpod: bool
    """HyperPod's nodes are made of it."""
    times: int = 1
    """So many of it are needed."""
    parts: int = 1
    """Stretches with breaks between them."""


def needs_of(place: Place, orchestrator: OrchestratorKind | None, home: Home | None) -> tuple[str, ...]:
    """What it would need besides, in sentences without a full stop."""
    return (
        *_itself(place),
        *_service(place, orchestrator),
        *_quotas(place),
        *_storage(place),
        *_moved(place, home),
    )


def _itself(place: Place) -> Iterator[str]:
    if len(place.zones) > 1:
        yield "it changes its zone on the way, which no cluster does"
    elif place.parts > 1:
        yield f"it comes in {place.parts} stretches with breaks between, in which no node runs"
    if place.times > 1:
        yield f"{place.times} of it, bought one by one and each for a group of its own: none is so large"
    for zone in place.zones:
        if zone_region(zone) is None:
            yield f"the id of its zone: AWS gave only `{zone}`, or nothing"
        elif is_local_zone(zone):
            yield f"the account's opt-in to the Local Zone {zone}"


def _service(place: Place, orchestrator: OrchestratorKind | None) -> Iterator[str]:
    found = region(place.region)
    if found is None:
        yield f"{place.region} is not in the catalogue: what services it has is not known"
    elif orchestrator and (offered := TRAITS[orchestrator].offered(found)) is not True:
        known = "is not in" if offered is False else "may not be in"
        yield f"another orchestrator: {orchestrator} {known} {place.region}, by the catalogue"


def _quotas(place: Place) -> Iterator[str]:
    """Blocks count against no quota of on-demand instances (EC2 User Guide, Capacity Blocks)."""
    if place.hyperpod:
        yield "HyperPod's quotas of the Region, for which `ultracluster preflight` asks"


def _storage(place: Place) -> Iterator[str]:
    type_ = instance_type(place.instance_type)
    if type_ is None or not type_.lustre_efa_client or len(place.zones) != 1:
        return
    zone = place.zones[0]
    offer = lustre_offer(place.region, zone, local=is_local_zone(zone))
    if offer is None:
        known = region(place.region)
        if known is None or known.fsx is None:
            yield f"whether FSx has Lustre over EFA in {zone} is not known"
        elif known.fsx is False:
            yield f"FSx is not in {place.region}, by the catalogue"
    elif not offer.deployments:
        yield f"no Lustre: FSx has none in {zone}"
    elif "persistent-2-ssd" not in offer.deployments or offer.limited:
        yield f"Lustre over TCP only: FSx has none over EFA in {zone}"


def _moved(place: Place, home: Home | None) -> Iterator[str]:
    if home is None or place.zones == (home.zone_id,) or len(place.zones) != 1:
        return
    what = "data is copied there" if place.region != home.region else "another zone"
    yield f"a move ({what}): ultracluster move {home.asked_as} --to {place.zones[0]}"
