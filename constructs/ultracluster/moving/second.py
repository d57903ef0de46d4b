"""The second environment of a move: what of the file becomes something else in the other place."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from ultracluster.catalog import is_local_zone, region
from ultracluster.catalog.address_ranges import refused_beside
from ultracluster.config import Environment
from ultracluster.config.capacity import STAND_IN, CapacityBlock, Reservation, TrainingPlan
from ultracluster.config.findings import Finding
from ultracluster.config.network import Network
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.remedy import DROP, Change, Option, YamlPath
from ultracluster.model.addresses import vpc_blocks
from ultracluster.model.parent_zone import ENTRANCES, parent_zone
from ultracluster.moving.target import Bought, Target
from ultracluster.plan.draft_place import second_zone
from ultracluster.rules.environment.local_zone import local_zone_entrances, local_zone_routes
from ultracluster.rules.sets import ENV

LOCAL_ZONE_RULES = frozenset(
    rule.id for rule in ENV.rules if rule.check in (local_zone_routes, local_zone_entrances)
)
_LONGEST_NAME = 30
_LONGEST_BUCKET = 63
_ID = re.compile(r"(fs|fsvol|sg|vpc|subnet|ami|nat)-[0-9a-f]{8,17}")
_HEX = STAND_IN.removeprefix("cr-")


@dataclass(frozen=True, slots=True)
class Edit:
    """A value of the second environment."""

    path: YamlPath
    value: Any
    blank: str = ""
    """What it stands in for, where only a person knows it."""


def second_name(environment: Environment, target: Target) -> str:
    """`prod-use2-az1`: the stacks of both must have names of their own."""
    base = environment.name.removesuffix(f"-{environment.network.zone_id}")
    return f"{base[: _LONGEST_NAME - len(target.zone_id) - 1].rstrip('-')}-{target.zone_id}"


def option_of(edits: tuple[Edit, ...]) -> Option:
    """The edits as changes of the file."""
    return tuple(Change(edit.path, edit.value) for edit in edits)


def edits(environment: Environment, data: Any, target: Target, name: str) -> tuple[Edit, ...]:
    """Return what is different in the second environment.

    Args:
        data: what the file says, with the files that it extends.
        name: of the second environment.
    """
    found = [
        *_names(environment, name),
        *_network(environment, target),
        *_zones(environment, target),
        *_buckets(environment, target),
        *(one for group in environment.node_groups for one in _capacity(environment, group, target, name)),
    ]
    if target.region != environment.region:
        found.insert(1, Edit(("region",), target.region))
        taken = {one.path for one in found}
        found += [one for one in _regional(environment, data, target) if not _within(one.path, taken)]
    return tuple(found)


def _names(environment: Environment, name: str) -> Iterator[Edit]:
    yield Edit(("name",), name)
    if environment.orchestrator.cluster_name:
        yield Edit(("orchestrator", "cluster_name"), name)


def _network(environment: Environment, target: Target) -> Iterator[Edit]:
    network = environment.network
    yield Edit(("network", "zone_id"), target.zone_id)
    if network.vpc is None:
        cidr, away = _next(network)
        yield Edit(("network", "cidr"), cidr)
        if network.node_cidr:
            yield Edit(("network", "node_cidr"), _moved(network.node_cidr, away))
        for zone, further in network.further_zones.items():
            if not _leaves(zone, environment, target):
                yield Edit(("network", "further_zones", zone, "cidr"), _moved(further.cidr, away))
    if network.subnet:
        what = f"a private subnet in {target.zone_id}"
        yield Edit(("network", "subnet", "id"), f"subnet-{_HEX}", what)
        yield Edit(("network", "subnet", "cidr"), network.subnet.cidr, f"the network of {what}")
    elif network.vpc and network.node_cidr:
        what = "a free network of the VPC: this one is the first environment's"
        yield Edit(("network", "node_cidr"), network.node_cidr, what)


def _zones(environment: Environment, target: Target) -> Iterator[Edit]:
    """Further zones, which must be others than the new one and of its Region."""
    for zone in environment.network.further_zones:
        if _leaves(zone, environment, target):
            yield Edit(("network", "further_zones", zone), DROP)
    for name, group in environment.node_groups.items():
        if group.zone_id and _leaves(group.zone_id, environment, target):
            yield Edit(("node_groups", name, "zone_id"), DROP)
    for path, now in _second_zones(environment):
        if now and _leaves(now, environment, target):
            other = second_zone(target.region, target.zone_id)
            blank = "" if other else f"another zone of {target.region} than {target.zone_id}"
            yield Edit(path, other.value if other else now, blank)


def _second_zones(environment: Environment) -> Iterator[tuple[YamlPath, str | None]]:
    database = environment.storage.accounting_database
    if database is not None and database.kind == "rds-mysql":
        yield ("storage", "accounting_database", "second_zone_id"), database.second_zone_id
    if environment.kubernetes:
        yield ("orchestrator", "second_zone_id"), environment.kubernetes.second_zone_id


def _leaves(zone: str, environment: Environment, target: Target) -> bool:
    """Return whether a further zone cannot be one of the second environment, or is for a Local Zone alone."""
    if zone == target.zone_id or environment.region != target.region:
        return True
    network = environment.network
    if is_local_zone(target.zone_id) or not is_local_zone(network.zone_id) or zone != parent_zone(network):
        return False
    roles = [group.role for group in environment.node_groups.values() if group.zone_id == zone]
    return ENTRANCES.issuperset(roles)


def local_zone_edits(environment: Environment, findings: Iterable[Finding]) -> Iterator[Edit]:
    """Move what a Local Zone may not have into a zone of the Region, as the rules advise.

    Args:
        environment: the second one.
        findings: what the rules say of it.
    """
    taken: set[YamlPath] = set()
    for finding in findings:
        if finding.code not in LOCAL_ZONE_RULES:
            continue
        for change in next(iter(finding.remedy.options), ()):
            if change.path in taken:
                continue
            taken.add(change.path)
            given = environment.network.vpc is not None and change.path[:2] == ("network", "further_zones")
            what = "a zone with a free network of the VPC" if given else ""
            yield Edit(change.path, change.value, what)


def _capacity(environment: Environment, name: str, target: Target, second: str) -> Iterator[Edit]:
    """Bought capacity stays in its zone: the second environment has capacity of its own."""
    group = environment.node_groups[name]
    place: YamlPath = ("node_groups", name, "capacity")
    if target.bought and _takes(environment, name, target.bought):
        yield Edit(place, capacity_of(target.bought))
        return
    match group.capacity:
        case TrainingPlan():
            account = environment.account or "111122223333"
            arn = f"arn:{_partition(target.region)}:sagemaker:{target.region}:{account}:training-plan/"
            what = f"the ARN of a plan in {target.zone_id}"
            yield Edit((*place, "arn"), f"{arn}{second}-{name}", what)
        case CapacityBlock() as block:
            yield Edit((*place, "id"), STAND_IN, f"the id of a block in {target.zone_id}")
            if block.starts:
                yield Edit((*place, "starts"), DROP)
        case Reservation() as reservation:
            yield from _reservation(place, reservation, target)
        case _:
            pass


def _reservation(place: YamlPath, reservation: Reservation, target: Target) -> Iterator[Edit]:
    if reservation.id:
        yield Edit((*place, "id"), STAND_IN, f"the id of a reservation in {target.zone_id}")
    if reservation.resource_group_arn:
        what = f"the ARN of a resource group with reservations in {target.zone_id}"
        yield Edit((*place, "resource_group_arn"), reservation.resource_group_arn, what)
    if reservation.placement_group:
        what = f"the placement group of the reservation in {target.zone_id}"
        yield Edit((*place, "placement_group"), reservation.placement_group, what)


def takers(environment: Environment, bought: Bought) -> list[str]:
    """The groups that could be filled with this capacity, those of compute nodes first."""
    names = [
        name for name, one in environment.node_groups.items() if one.instance_type == bought.instance_type
    ]
    return sorted(names, key=lambda name: environment.node_groups[name].role != "compute")


def _takes(environment: Environment, name: str, bought: Bought) -> bool:
    return takers(environment, bought)[:1] == [name]


def capacity_of(bought: Bought) -> dict[str, Any]:
    """Capacity as a group names it."""
    if bought.kind == "training-plan":
        return {"kind": bought.kind, "arn": bought.id}
    starts = {"starts": f"{bought.starts:%Y-%m-%dT%H:%M:%SZ}"} if bought.starts else {}
    return {"kind": bought.kind, "id": bought.id, **(starts if bought.kind == "capacity-block" else {})}


def _buckets(environment: Environment, target: Target) -> Iterator[Edit]:
    """Where the objects are: the first environment's own bucket by its name, and in another Region copies."""
    away = target.region != environment.region
    for place, bucket in _repositories(environment):
        if bucket is None:
            name = f"data-bucket-of-{environment.name}"
            where = f"{environment.stack_name('buckets')} made it"
            if away:
                yield Edit(
                    place, bucket_in(name, environment, target), f"a copy of {environment.name}'s bucket"
                )
            else:
                yield Edit(place, name, f"the data bucket of {environment.name}: stack {where}")
        elif away:
            yield Edit(
                place, bucket_in(bucket, environment, target), f"a copy of {bucket} in {target.region}"
            )
    if not away:
        return
    for number, one in enumerate(environment.storage.job_buckets):
        copy = bucket_in(one.bucket, environment, target)
        yield Edit(("storage", "job_buckets", number, "bucket"), copy, f"a copy of {one.bucket}")
    for name, one in environment.kubernetes.mountpoint_s3.items() if environment.kubernetes else ():
        copy = bucket_in(one.bucket, environment, target)
        yield Edit(("orchestrator", "mountpoint_s3", name, "bucket"), copy, f"a copy of {one.bucket}")
    for key, bucket in (
        ("scripts_bucket", environment.storage.scripts_bucket),
        ("log_bucket", environment.storage.log_bucket),
    ):  # fmt: skip
        if bucket:
            copy = bucket_in(bucket.name, environment, target)
            yield Edit(
                ("storage", key, "name"), copy, f"a bucket in {target.region} in place of {bucket.name}"
            )
    if mirror := environment.software.mirror:
        bucket, slash, prefix = mirror.removeprefix("s3://").partition("/")
        copy = f"s3://{bucket_in(bucket, environment, target)}{slash}{prefix}"
        yield Edit(("software", "mirror"), copy, f"a mirror in {target.region}")


def _repositories(environment: Environment) -> Iterator[tuple[YamlPath, str | None]]:
    """Every association, by the path of its bucket."""
    first = {("lustre",): environment.storage.lustre} if environment.storage.lustre else {}
    further = {("further_lustre", name): one for name, one in environment.storage.further_lustre.items()}
    for place, lustre in {**first, **further}.items():
        links: dict[str, Any] = getattr(lustre, "data_repositories", {})
        for folder, link in links.items():
            yield ("storage", *place, "data_repositories", folder, "bucket"), link.bucket


def bucket_in(bucket: str, environment: Environment, target: Target) -> str:
    """A name for the copy of a bucket in the other Region."""
    if environment.region in bucket:
        return bucket.replace(environment.region, target.region)
    return f"{bucket[: _LONGEST_BUCKET - len(target.region) - 1].rstrip('.-')}-{target.region}"


def _regional(environment: Environment, data: Any, target: Target) -> Iterator[Edit]:
    """Ids, ARNs and addresses of the old Region, wherever the file has one."""
    for path, text in _texts(data, ()):
        if path[:1] == ("acknowledge",) or path == ("region",):
            continue
        if _ID.fullmatch(text):
            kind = text.partition("-")[0]
            yield Edit(path, f"{kind}-{_HEX[:17]}", f"what {text} is in {environment.region}")
        elif f":{environment.region}:" in text or f".{environment.region}." in text:
            if ":aps:" in text:
                continue  # metrics may be written to a workspace of another Region
            moved = text.replace(environment.region, target.region)
            blank = "" if ":key/mrk-" in text else f"what {text} is in {environment.region}"
            yield Edit(path, moved, blank)


def _texts(data: Any, path: YamlPath) -> Iterator[tuple[YamlPath, str]]:
    if isinstance(data, dict):
        for key, value in cast("dict[Any, Any]", data).items():
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(cast("list[Any]", data)):
            yield from _texts(value, (*path, number))
    elif isinstance(data, str):
        yield path, data


def _within(path: YamlPath, taken: set[YamlPath]) -> bool:
    return any(path[:length] in taken for length in range(1, len(path) + 1))


def _partition(region_name: str) -> str:
    found = region(region_name)
    return found.partition if found else "aws"


def _next(network: Network) -> tuple[str, int]:
    """The next networks of the same sizes, so that both VPCs can be joined, and how far they are."""
    blocks = vpc_blocks(network)
    step = max(block.num_addresses for block in blocks)  # each network stays one of its size
    for away in (sign * number * step for number in range(1, 257) for sign in (1, -1)):
        try:
            moved = [ipaddress.IPv4Network(_moved(str(block), away)) for block in blocks]
        except ValueError:  # no address has that number
            continue
        if any(new.is_private != old.is_private for new, old in zip(moved, blocks, strict=True)):
            continue
        if any(new.overlaps(old) for new in moved for old in blocks):
            continue
        if not any(refused_beside(one, moved[:place]) for place, one in enumerate(moved) if place):
            return str(moved[0]), away
    return network.cidr, 0


def _moved(cidr: str, away: int) -> str:
    network = ipaddress.IPv4Network(cidr)
    return f"{ipaddress.IPv4Address(int(network.network_address) + away)}/{network.prefixlen}"


def bought_before(group: NodeGroup) -> bool:
    """Return whether the group's capacity is bought or reserved, in its zone."""
    return isinstance(group.capacity, TrainingPlan | CapacityBlock) or (
        isinstance(group.capacity, Reservation)
        and bool(group.capacity.id or group.capacity.resource_group_arn)
    )
