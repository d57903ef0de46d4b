"""Capacity in every Region that the account has: what AWS offers there, and what the account holds unused.

found = everywhere(account, wishes, Regions.of(account))
found.rows       # what can be had, what costs least first
found.unasked    # Regions, and kinds of capacity in a Region, that could not be asked, and why

Nothing is bought, and no Region is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from botocore import exceptions as known  # pyright: ignore[reportMissingTypeStubs]

from ultracluster.account.aws import AWS_ERRORS, Account, AccountError, explain, is_credentials, is_denied
from ultracluster.account.side_by_side import as_they_come
from ultracluster.capacity.search import TARGET, Kind, Offer, Segment, Wish, offers_for
from ultracluster.catalog import instance_type, region, regions

HeldKind = Literal["training-plan", "capacity-block", "reservation"]

_UNREACHABLE: tuple[type[Exception], ...] = (
    known.ConnectTimeoutError,
    known.EndpointConnectionError,
    known.HTTPClientError,
    known.ReadTimeoutError,
)
_AT_ONCE = 8
"""Regions that are asked at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Capacity that can be had in one place."""

    wish: Wish
    region: str
    kind: HeldKind
    id: str
    """Of the offer; of what the account holds its reservation's id, or the plan's ARN."""
    zones: tuple[str, ...]
    """Zone ids; the names where AWS gives no ids."""
    count: int
    """Instances, all the time; of what the account holds those that are unused."""
    start: datetime | None
    """None: it has begun."""
    end: datetime | None
    """None: it has no end."""
    hours: float | None = None
    segments: tuple[Segment, ...] = ()
    """Stretches of an offer, with breaks between them."""
    price: float | None = None
    """Of one; None where nothing more is paid: the account holds it."""
    currency: str = "USD"
    short: bool = False
    """It has fewer instances, or ends earlier, than what was asked for."""

    @property
    def own(self) -> bool:
        """Return whether the account holds it already."""
        return self.price is None

    @property
    def accelerators(self) -> int:
        """Accelerators of one."""
        type_ = instance_type(self.wish.instance_type)
        return self.count * type_.accelerator.count if type_ and type_.accelerator else 0

    @property
    def in_all(self) -> float | None:
        """Price of as many as hold what is wanted."""
        return None if self.price is None else self.price * self.wish.times

    @property
    def per_accelerator_hour(self) -> float | None:
        """Price of one accelerator for one hour; None where it is paid, or has none."""
        total = self.accelerators * (self.hours or 0)
        return self.price / total if self.price is not None and total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """What could not be asked."""

    region: str
    what: str
    """`training-plan`, `capacity-block`, `reservation`; empty: nothing of the Region."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """The Regions to ask, and those that cannot be."""

    names: tuple[str, ...]
    unasked: tuple[Unasked, ...] = ()

    @classmethod
    def of(cls, account: Account, named: Sequence[str] = ()) -> Regions:
        """Those that the account has enabled.

        Args:
            named: only these.
        """
        try:
            answer = account.client("ec2").describe_regions(AllRegions=True)
        except AWS_ERRORS as error:
            here = region(account.region)
            rest = [name for name, one in regions().items() if here and one.partition == here.partition]
            lost = Unasked(
                region=account.region,
                what="list of Regions",
                why=f"{explain(error)}; those of the catalogue are asked, enabled or not",
            )
            return cls(names=tuple(named or rest), unasked=(lost,))
        status = {str(one["RegionName"]): str(one.get("OptInStatus", "")) for one in answer["Regions"]}
        wanted = list(dict.fromkeys(named)) or sorted(status)
        closed = [
            Unasked(region=name, what="", why=_closed(status.get(name)))
            for name in wanted
            if status.get(name, "not-opted-in") == "not-opted-in"
        ]
        gone = {one.region for one in closed}
        return cls(names=tuple(name for name in wanted if name not in gone), unasked=tuple(closed))


@dataclass(slots=True)
class Everywhere:
    """What can be had, and what could not be asked."""

    rows: list[Row] = field(default_factory=list[Row])
    unasked: list[Unasked] = field(default_factory=list[Unasked])
    asked: list[str] = field(default_factory=list[str])
    """Regions of which something was answered."""


def everywhere(
    account: Account,
    wishes: Sequence[Wish],
    places: Regions,
    *,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Everywhere:
    """Ask every Region for every wish at the same time; what fails costs nothing else.

    Args:
        wishes: in any zone.
    """
    found = Everywhere(unasked=list(places.unasked))
    progress(0, len(places.names))
    calls = [partial(_Region(account, name).ask, wishes) for name in places.names]
    for done, (number, answer) in enumerate(as_they_come(calls, _AT_ONCE), 1):
        rows, unasked = answer()
        found.rows += rows
        found.unasked += unasked
        if not any(lost.what == "" for lost in unasked):
            found.asked.append(places.names[number])
        progress(done, len(places.names))
    found.rows.sort(key=_rank)
    found.unasked.sort(key=lambda one: (one.what, one.why, one.region))
    found.asked.sort()
    return found


def _rank(row: Row) -> tuple[object, ...]:
    """What is whole before what is short, what is paid before what costs, then price, start and name."""
    start = row.start.timestamp() if row.start else 0.0
    return (row.short, not row.own, row.in_all or 0.0, start, row.region, row.id)


def _closed(status: str | None) -> str:
    if status is None:
        return "AWS names no such Region to this account"
    return "the account has not enabled it (AWS console, Account, AWS Regions)"


class _Region:
    """One Region, asked for all wishes one after the other."""

    def __init__(self, account: Account, name: str) -> None:
        self.account, self.name = account, name
        self.rows: list[Row] = []
        self.unasked: list[Unasked] = []
        self.zones: dict[str, str] = {}

    def ask(self, wishes: Sequence[Wish]) -> tuple[list[Row], list[Unasked]]:
        """Everything that can be had, and what could not be asked."""
        try:
            answer = self.account.client("ec2", self.name).describe_availability_zones(
                AllAvailabilityZones=True
            )
            self.zones = {
                str(zone["ZoneName"]): str(zone["ZoneId"])
                for zone in answer["AvailabilityZones"]
                if "ZoneId" in zone and "ZoneName" in zone
            }
        except (AccountError, *AWS_ERRORS) as error:
            if not is_denied(error):
                return [], [Unasked(region=self.name, what="", why=_why(error))]
            self._lost("zone ids", error)
        self._offers("capacity-block", wishes)
        self._offers("training-plan", wishes)
        self._guarded("reservation", self._reservations, wishes)
        if any(wish.kind == "training-plan" for wish in wishes) and self._has_hyperpod():
            self._guarded("training plans of the account", self._plans, wishes)
        return self.rows, self.unasked

    def _offers(self, kind: Kind, wishes: Sequence[Wish]) -> None:
        own = [wish for wish in wishes if wish.kind == kind]
        if own and kind == "training-plan" and not self._has_hyperpod():
            why = "HyperPod is not there, by the catalogue"
            self.unasked.append(Unasked(region=self.name, what=kind, why=why))
            return
        answered: list[Row] = []
        for wish in own:
            try:
                offers = offers_for(self.account, wish, self.zones, self.name)
            except (AccountError, *AWS_ERRORS) as error:
                self._lost(f"{kind} of {wish.instance_type}" if answered else kind, error)
                if is_denied(error) or isinstance(error, _UNREACHABLE) or is_credentials(error):
                    break  # it would be for every other type
                continue
            answered += [_row(self.name, offer) for offer in offers]
        self.rows += answered

    def _has_hyperpod(self) -> bool:
        found = region(self.name)
        return found is None or found.hyperpod is not False

    def _guarded(
        self, what: str, ask: Callable[[Sequence[Wish]], Iterator[Row]], wishes: Sequence[Wish]
    ) -> None:
        try:
            self.rows += list(ask(wishes))
        except (AccountError, *AWS_ERRORS) as error:
            self._lost(what, error)

    def _lost(self, what: str, error: Exception) -> None:
        self.unasked.append(Unasked(region=self.name, what=what, why=_why(error)))

    def _reservations(self, wishes: Sequence[Wish]) -> Iterator[Row]:
        by_type = {wish.instance_type: wish for wish in wishes}
        pages = (
            self.account.client("ec2", self.name)
            .get_paginator("describe_capacity_reservations")
            .paginate(
                Filters=[
                    {"Name": "instance-type", "Values": sorted(by_type)},
                    {"Name": "state", "Values": ["active", "scheduled"]},
                ]
            )
        )
        for page in pages:
            for reservation in page["CapacityReservations"]:
                wish = by_type.get(str(reservation.get("InstanceType", "")))
                waits = reservation.get("State") == "scheduled"
                free = reservation.get("TotalInstanceCount" if waits else "AvailableInstanceCount", 0)
                if wish is None or free < 1:
                    continue
                yield self._held(
                    wish,
                    "capacity-block"
                    if reservation.get("ReservationType") == "capacity-block"
                    else "reservation",
                    str(reservation.get("CapacityReservationId", "")),
                    (reservation.get("AvailabilityZoneId") or self._zone(reservation),),
                    free,
                    (reservation.get("StartDate") if waits else None, reservation.get("EndDate")),
                )

    def _plans(self, wishes: Sequence[Wish]) -> Iterator[Row]:
        by_type = {wish.instance_type: wish for wish in wishes if wish.kind == "training-plan"}
        for page in (
            self.account.client("sagemaker", self.name).get_paginator("list_training_plans").paginate()
        ):
            for summary in page["TrainingPlanSummaries"]:
                parts: list[Mapping[str, Any]] = summary.get("ReservedCapacitySummaries") or []
                name = str(parts[0]["InstanceType"]).removeprefix("ml.") if parts else ""
                waits = summary["Status"] == "Scheduled"
                free = summary.get("TotalInstanceCount" if waits else "AvailableInstanceCount", 0)
                usable = summary["Status"] in ("Active", "Scheduled") and TARGET in summary.get(
                    "TargetResources", [TARGET]
                )
                if name not in by_type or free < 1 or not usable:
                    continue
                zones = (part.get("AvailabilityZoneId") or self._zone(part) for part in parts)
                yield self._held(
                    by_type[name],
                    "training-plan",
                    str(summary["TrainingPlanArn"]),
                    tuple(dict.fromkeys(zones)),
                    free,
                    (summary.get("StartTime") if waits else None, summary.get("EndTime")),
                )

    def _zone(self, row: Mapping[str, Any]) -> str:
        name = str(row.get("AvailabilityZone", ""))
        return self.zones.get(name, name)

    def _held(
        self,
        wish: Wish,
        kind: HeldKind,
        identifier: str,
        zones: tuple[str, ...],
        free: int,
        term: tuple[datetime | None, datetime | None],
    ) -> Row:
        start, end = term
        begins = max(start, wish.after) if start else wish.after
        wanted = timedelta(hours=wish.needed_hours or wish.hours)
        return Row(
            wish=replace(wish, count=wish.wanted, needed=0),
            region=self.name,
            kind=kind,
            id=identifier,
            zones=zones,
            count=free,
            start=start,
            end=end,
            short=free < wish.wanted or (end is not None and end - begins < wanted),
        )


def _row(name: str, offer: Offer) -> Row:
    return Row(
        wish=offer.wish,
        region=name,
        kind=offer.wish.kind,
        id=offer.id,
        zones=offer.zones,
        count=offer.count,
        start=offer.start,
        end=offer.end,
        hours=offer.hours,
        segments=offer.segments,
        price=offer.price,
        currency=offer.currency,
        short=offer.short,
    )


def _why(error: Exception) -> str:
    """As `explain` says it; credentials that work elsewhere are refused by a Region that is not enabled."""
    if is_credentials(error):
        return f"it does not take these credentials: it is not enabled, or closed to them ({explain(error)})"
    return explain(error)
