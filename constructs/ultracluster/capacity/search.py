"""Capacity that is on offer: SageMaker training plans and EC2 Capacity Blocks. A search buys nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain
from ultracluster.account.side_by_side import as_they_come
from ultracluster.capacity.owned import zone_ids
from ultracluster.catalog import InstanceType, UltraServer, instance_type, ultraservers
from ultracluster.config.capacity import CapacityBlock
from ultracluster.model import Cluster, Group
from ultracluster.model.capacity import decide, sold_days, sold_nodes

Kind = Literal["training-plan", "capacity-block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to look for."""

    kind: Kind
    instance_type: str
    count: int
    """Instances of one offer, as AWS sells them."""
    hours: int
    """As AWS sells them."""
    after: datetime
    needed: int = 0
    """Instances that are wanted, where AWS sells another number; 0: just so many."""
    needed_hours: int = 0
    """Hours that are wanted, where AWS sells another number; 0: just so many."""
    zone_id: str = ""
    """Offers elsewhere are shown, too: they are marked. Empty is any zone."""
    group: str = ""
    """Node group that it is for."""

    @property
    def wanted(self) -> int:
        """Instances that are wanted."""
        return self.needed or self.count

    @property
    def times(self) -> int:
        """So many such offers hold what is wanted: one is not enough where AWS sells none so large."""
        return -(-self.wanted // self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of an offer without a pause."""

    zone: str
    """Zone id; the name where AWS gives no id."""
    start: datetime
    end: datetime | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One offer of AWS."""

    wish: Wish
    id: str
    """For the command that buys it."""
    segments: tuple[Segment, ...]
    hours: float
    price: float
    """Whole fee, paid upfront."""
    currency: str

    @property
    def start(self) -> datetime:
        return min(segment.start for segment in self.segments)

    @property
    def end(self) -> datetime | None:
        return max((segment.end for segment in self.segments if segment.end), default=None)

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(segment.zone for segment in self.segments))

    @property
    def fits_zone(self) -> bool | None:
        """Return whether it is in the wanted zone; None where any would do."""
        return self.zones == (self.wish.zone_id,) if self.wish.zone_id else None

    @property
    def count(self) -> int:
        """Instances that are there all the time."""
        return min(segment.count for segment in self.segments)

    @property
    def short(self) -> bool:
        """Return whether it has fewer instances, or ends more than a day earlier, than what was asked for.

        What begins within a day is shorter by the hours until then: all end at the same time of the day.
        """
        return self.count < self.wish.count or self.hours < self.wish.hours - _PART_OF_A_DAY

    @property
    def instance_hours(self) -> float:
        return self.hours * max(segment.count for segment in self.segments)

    @property
    def per_hour(self) -> float:
        """Price of one instance for one hour."""
        return self.price / self.instance_hours if self.instance_hours else 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """Offers by price, and the wishes that could not be asked."""

    offers: list[Offer]
    failures: list[tuple[Wish, str]] = field(default_factory=list[tuple[Wish, str]])


def wishes_of(cluster: Cluster, *, days: int, after: datetime) -> list[Wish]:
    """Return what the compute groups of an environment could be bought as: plans on HyperPod, else blocks."""
    kind: Kind = "training-plan" if cluster.traits.hyperpod else "capacity-block"
    return [
        replace(
            wish_for(kind, group.settings.instance_type, group.most_nodes, days=days, after=after),
            zone_id=cluster.environment.network.zone_id,
            group=name,
        )
        for name, group in cluster.with_role("compute").items()
        if group.most_nodes and _sold(kind, group)
    ]


def wishes_for(name: str, count: int, *, days: int, after: datetime) -> list[Wish]:
    """Both kinds for an instance type, in any zone."""
    kinds: tuple[Kind, ...] = ("training-plan", "capacity-block")
    return [
        wish_for(kind, name, count, days=days, after=after)
        for kind in kinds
        if (known := instance_type(name)) is None or _listed(kind, known)
    ]


def wish_for(kind: Kind, name: str, count: int, *, days: int, after: datetime) -> Wish:
    """The nearest to so many instances and days that AWS sells, with what was wanted."""
    wish = Wish(kind=kind, instance_type=name, count=count, hours=sold_days(kind, days) * 24, after=after)
    server = _ultraserver(wish)
    sold = sold_nodes(kind, count) if server is None else _servers(wish, server) * server.instances
    wish = replace(wish, count=sold)
    return replace(
        wish,
        needed=count if wish.count != count else 0,
        needed_hours=days * 24 if wish.hours != days * 24 else 0,
    )


def search(
    account: Account, wishes: Sequence[Wish], *, progress: Callable[[int, int], None] = lambda done, of: None
) -> Search:
    """Ask for every wish; one that fails costs the others nothing."""
    zones = zone_ids(account)
    found = Search([])
    progress(0, len(wishes))
    answers: dict[int, Callable[[], list[Offer]]] = {}
    for number, answer in as_they_come([partial(offers_for, account, wish, zones) for wish in wishes], 4):
        answers[number] = answer
        progress(len(answers), len(wishes))
    for number, wish in enumerate(wishes):
        try:
            found.offers.extend(answers[number]())
        except (AccountError, *AWS_ERRORS) as error:
            found.failures.append((wish, explain(error)))
    found.offers.sort(key=lambda offer: (offer.per_hour, offer.price, offer.start))
    return found


def offers_for(
    account: Account, wish: Wish, zones: Mapping[str, str], region: str | None = None
) -> list[Offer]:
    """Return what is offered for one wish.

    Args:
        zones: zone names of the Region to ids.
        region: to ask; the account's by default.
    """
    ask = _plans if wish.kind == "training-plan" else _blocks
    return ask(account, wish, zones, region)


def _sold(kind: Kind, group: Group) -> bool:
    instance_type = group.type
    if instance_type is None:
        return False
    if kind == "training-plan":
        return instance_type.training_plan or instance_type.declared
    block = CapacityBlock(kind="capacity-block", id="cr-00000000")
    return decide(block, orchestrator=group.traits.kind, placement="none", instance_type=instance_type).legal


def _listed(kind: Kind, instance_type: InstanceType) -> bool:
    return (
        instance_type.training_plan if kind == "training-plan" else bool(instance_type.capacity_block_regions)
    )


def _plans(account: Account, wish: Wish, zones: Mapping[str, str], region: str | None) -> list[Offer]:
    sagemaker = account.client("sagemaker", region)
    answer = sagemaker.search_training_plan_offerings(
        **_plan_size(wish),
        StartTimeAfter=wish.after,
        DurationHours=wish.hours,
        TargetResources=[TARGET],
    )
    offers: list[Offer] = []
    for row in answer["TrainingPlanOfferings"]:
        if TARGET not in row["TargetResources"]:
            continue  # a plan for training jobs gives no node to a cluster
        segments = tuple(
            Segment(
                zone=zones.get(
                    str(offering.get("AvailabilityZone", "")), str(offering.get("AvailabilityZone", ""))
                ),
                start=offering.get("StartTime") or wish.after,
                end=offering.get("EndTime"),
                count=_instances(offering, "UltraServerType", "UltraServerCount", wish),
            )
            for offering in row.get("ReservedCapacityOfferings", [])
        )
        hours = _hours(row.get("DurationHours", 0), row.get("DurationMinutes", 0))
        offers += _offer(wish, row["TrainingPlanOfferingId"], segments, hours, row)
    return offers


def _blocks(account: Account, wish: Wish, zones: Mapping[str, str], region: str | None) -> list[Offer]:
    pages = (
        account.client("ec2", region)
        .get_paginator("describe_capacity_block_offerings")
        .paginate(
            **_block_size(wish),
            StartDateRange=wish.after,
            EndDateRange=wish.after + BLOCKS_AHEAD,
            CapacityDurationHours=wish.hours,
        )
    )
    offers: list[Offer] = []
    for page in pages:
        for row in page["CapacityBlockOfferings"]:
            parts: list[Mapping[str, Any]] = row.get("CapacityBlockOfferingSegments") or [row]
            segments = tuple(
                Segment(
                    zone=part.get("AvailabilityZoneId")
                    or zones.get(name := str(part.get("AvailabilityZone", "")), name),
                    start=part.get("StartDate") or row["StartDate"],
                    end=part.get("EndDate"),
                    count=_instances(part, "UltraserverType", "UltraserverCount", wish),
                )
                for part in parts
            )
            hours = _hours(
                row.get("CapacityBlockDurationHours", 0), row.get("CapacityBlockDurationMinutes", 0)
            )
            offers += _offer(wish, row["CapacityBlockOfferingId"], segments, hours, row)
    return offers


BLOCKS_AHEAD = timedelta(days=238)
"""A block starts at most 8 weeks ahead and lasts at most 182 days (EC2 User Guide)."""
TARGET = "hyperpod-cluster"
"""What a training plan must be sold for, to give nodes to a cluster."""
_PART_OF_A_DAY = 24


def _plan_size(wish: Wish) -> dict[str, Any]:
    if server := _ultraserver(wish):
        return {"UltraServerType": server.hyperpod_name, "UltraServerCount": _servers(wish, server)}
    return {"InstanceType": f"ml.{wish.instance_type}", "InstanceCount": wish.count}


def _block_size(wish: Wish) -> dict[str, Any]:
    if server := _ultraserver(wish):
        return {"UltraserverType": server.name, "UltraserverCount": _servers(wish, server)}
    return {"InstanceType": wish.instance_type, "InstanceCount": wish.count}


def _ultraserver(wish: Wish) -> UltraServer | None:
    """The UltraServer that is sold instead of its instances: the smallest that holds all, or the largest."""
    servers = [
        ultraserver
        for ultraserver in ultraservers().values()
        if ultraserver.member == wish.instance_type
        and ultraserver.published
        and (
            ultraserver.hyperpod_name if wish.kind == "training-plan" else ultraserver.capacity_block_regions
        )
    ]
    servers.sort(key=lambda server: server.instances)
    enough = (server for server in servers if server.instances >= wish.count)
    return next(enough, servers[-1] if servers else None)


def _servers(wish: Wish, server: UltraServer) -> int:
    return -(-wish.count // server.instances)


def _instances(row: Mapping[str, Any], type_key: str, count_key: str, wish: Wish) -> int:
    """Instances of a part of an offer; of UltraServers AWS may only say how many they are."""
    if row.get("InstanceCount"):
        return int(row["InstanceCount"])
    name, count = str(row.get(type_key, "")).removeprefix("ml."), row.get(count_key)
    server = ultraservers().get(name) or _ultraserver(wish)
    return int(count) * server.instances if count and server else wish.count


def _hours(whole: int, minutes: int) -> float:
    """The minutes are in addition to the hours (EC2 and SageMaker API References)."""
    return whole + minutes / 60 if minutes else whole


def _offer(
    wish: Wish, identifier: str, segments: tuple[Segment, ...], hours: float, row: Mapping[str, Any]
) -> Iterator[Offer]:
    try:
        price = float(row["UpfrontFee"])
    except (KeyError, ValueError):
        return  # an offer without a price cannot be compared
    if not math.isfinite(price) or price < 0:
        return  # nor held against a limit
    if identifier and segments and all(segment.count > 0 for segment in segments):
        yield Offer(
            wish=wish, id=identifier, segments=segments, hours=hours or wish.hours, price=price,
            currency=str(row.get("CurrencyCode", "USD")),
        )  # fmt: skip


def tomorrow(now: datetime | None = None) -> datetime:
    """Midnight UTC after now."""
    today = (now or datetime.now(UTC)).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)
