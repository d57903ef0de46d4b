"""Where an environment is to move: a zone, a Region, or capacity that is bought already."""

from __future__ import annotations

import datetime as dt
import difflib
import re
from dataclasses import dataclass

from ultracluster.catalog import region, regions, zone_region
from ultracluster.config import Environment
from ultracluster.plan.draft_place import NoZoneError, regions_for, zone_for

CAPACITY = "capacity:"
_ZONE_NAME = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+[a-z]")
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")
_PLAN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):[0-9]{12}:training-plan/[a-z0-9-]+")


class MoveError(ValueError):
    """There is no such move; says why, and what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """Capacity of the account, as AWS describes it."""

    kind: str
    """`capacity-block`, `reservation` or `training-plan`."""
    id: str
    """Id of the reservation or block, or ARN of the plan."""
    region: str
    zone_id: str
    instance_type: str
    """As EC2 writes it."""
    count: int
    starts: dt.datetime | None = None
    """When it begins; None: it has begun, or has no beginning."""
    ends: dt.datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to."""

    region: str
    zone_id: str
    reason: str = ""
    """Why it is that zone, where only a Region was asked for."""
    bought: Bought | None = None


def capacity_named(text: str) -> tuple[str, str] | None:
    """The capacity that a target names, and its Region where the name has one; None for a place.

    Raises:
        MoveError: it is no id of capacity.
    """
    if not text.startswith(CAPACITY):
        return None
    place, slash, name = text.removeprefix(CAPACITY).partition("/")
    if slash and _RESERVATION.fullmatch(name):
        if region(place) is None:
            near = difflib.get_close_matches(place, regions(), n=3)
            also = f"; did you mean {', '.join(near)}" if near else ""
            raise MoveError(f"`{place}` is no Region{also}")
        return name, place
    name = text.removeprefix(CAPACITY)
    if _RESERVATION.fullmatch(name):
        return name, ""
    if plan := _PLAN.fullmatch(name):
        return name, plan[1]
    raise MoveError(
        f"`{name}` names no capacity: write capacity:cr-0123456789abcdef0 for a block or reservation, "
        "capacity:us-west-2/cr-0123456789abcdef0 for one of another Region, or capacity: and the ARN of a "
        "training plan"
    )


def target_of(text: str, environment: Environment) -> Target:
    """The place that a zone id or the name of a Region says.

    Raises:
        MoveError: it says none, or the environment is there.
    """
    if region(text):
        return _in_region(text, environment)
    found = zone_region(text)
    if found is None:
        raise MoveError(f"`{text}` is neither a zone id nor a Region{_near(text)}")
    if _ZONE_NAME.fullmatch(text):
        raise MoveError(
            f"`{text}` is the name of a zone, which is another zone in each account: write its id, one of "
            f"{', '.join(found.zone_ids) or f'{found.zone_prefix}-az1, ...'}"
        )
    if found.zone_ids and text not in found.zone_ids and text.count("-") == 1:
        raise MoveError(f"{found.name} has no zone `{text}`: its zones are {', '.join(found.zone_ids)}")
    return checked(Target(region=found.name, zone_id=text), environment)


def checked(target: Target, environment: Environment) -> Target:
    """The target, unless it is where the environment is, or where nothing of it can be taken along.

    Raises:
        MoveError: it is.
    """
    if target.zone_id == environment.network.zone_id and target.bought is None:
        raise MoveError(f"{environment.name} is in {target.zone_id} already{_others(environment)}")
    _same_partition(target.region, environment)
    return target


def _in_region(name: str, environment: Environment) -> Target:
    if name == environment.region:
        raise MoveError(f"{environment.name} is in {name} already{_others(environment)}")
    _same_partition(name, environment)
    type_name = main_type(environment)
    kind = environment.orchestrator.kind
    try:
        zone = zone_for(name, type_name, kind)
    except NoZoneError as error:
        raise MoveError(str(error).replace("Pass --zone-id:", "Pass the id of a zone to --to:")) from None
    sold = regions_for(type_name, kind)
    if sold and name not in sold:
        reason = f"{name} is not known to have {type_name} for {kind}; known are {', '.join(sold)}"
    else:
        reason = zone.reason
    return checked(Target(region=name, zone_id=zone.value, reason=reason), environment)


def _same_partition(name: str, environment: Environment) -> None:
    here, there = region(environment.region), region(name)
    if here and there and here.partition != there.partition:
        raise MoveError(
            f"{name} is in another partition of AWS ({there.partition}) than {environment.region} "
            f"({here.partition}): accounts, keys and copies end there. Draft a new environment with "
            "`ultracluster init`"
        )


def main_type(environment: Environment) -> str:
    """The type of the most compute nodes; of any group where there are none."""
    groups = environment.groups("compute") or environment.node_groups
    return max(groups.values(), key=lambda group: group.count or group.max_count or 0).instance_type


def _others(environment: Environment) -> str:
    found = region(environment.region)
    zones = [zone for zone in (found.zone_ids if found else ()) if zone != environment.network.zone_id]
    return f"; other zones of {environment.region}: {', '.join(zones)}" if zones else ""


def _near(text: str) -> str:
    ids = [zone for one in regions().values() for zone in one.zone_ids]
    near = difflib.get_close_matches(text, [*regions(), *ids], n=3)
    return f"; did you mean {', '.join(near)}" if near else ": write it as use2-az1 or us-east-2"
