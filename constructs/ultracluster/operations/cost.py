"""What an environment costs: everything it is billed for, priced with dated figures.

    found = estimate(environment)
    found.per_hour, found.complete, found.left_out

Nothing is guessed. A figure past its date, or without one, is shown and not summed; HyperPod is never priced
with EC2's figures; what has no figure is unknown, and the total says that it lacks it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ultracluster.catalog import ultraservers, zone_region
from ultracluster.catalog.pcs import pcs_size_for
from ultracluster.catalog.prices import HOURS_PER_MONTH, Figure, figure, hyperpod_premium
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, Pcs
from ultracluster.config.storage import (
    ExistingLustre,
    IntelligentTieringLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.rules.endpoints import made_endpoints

Area = Literal["nodes", "storage", "network", "control plane", "security", "by use"]
State = Literal["counted", "upfront", "expired", "indicative", "unknown", "by use"]
"""`counted`: in the sum. `upfront`: a fee, beside the sum. `expired`, `indicative`: has a figure, past its
date or without one, that is not summed. `unknown`: has none. `by use`: depends on what is done."""

REFERENCE_REGION = "us-east-1"
"""Where a figure is looked for when the environment's Region has none; only ever shown, never summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that is billed."""

    area: Area
    what: str
    key: str
    """Name of its price, as in `catalog/service_prices.json`; empty where none can be asked for."""
    purchase: str
    """`on-demand`, `spot`, `reservation`, `capacity-block`, `training-plan`, or `usage` for the rest."""
    unit: str
    """What is counted: `instance`, `GiB`, `MB/s`, `gateway` ..."""
    quantity: float = 0
    """How many there always are."""
    greatest: float = 0
    """How many there may be."""
    group: str = ""
    """The node group, for instances."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An item with its price."""

    item: Item
    state: State
    figure: Figure | None
    elsewhere: Figure | None
    """Where there is none: the figure of us-east-1, in a Local Zone that of its Region; for orientation."""
    ec2: Figure | None
    """HyperPod's instances: EC2's list price of the type, in the Region or else us-east-1; never summed."""
    days: int | None

    @property
    def around(self) -> tuple[float, float] | None:
        """HyperPod without a figure: USD per hour of all of them, from EC2's list price and the usual
        premium. An order of magnitude, never summed."""
        if self.figure is not None or self.ec2 is None:
            return None
        low, high = (factor * self.ec2.per_hour * self.item.quantity for factor in hyperpod_premium())
        return low, high

    @property
    def premium(self) -> float | None:
        """HyperPod's price over EC2's in the same Region: 0.2 is 20 % more. None where one is not known."""
        if self.figure is None or self.ec2 is None or self.ec2.region != self.figure.region:
            return None
        return self.figure.per_hour / self.ec2.per_hour - 1

    @property
    def per_hour(self) -> float | None:
        """USD per hour of what there always is; None without a figure, or where use decides."""
        return self._at(self.item.quantity)

    @property
    def greatest_per_hour(self) -> float | None:
        """USD per hour of all there may be."""
        return self._at(self.item.greatest)

    @property
    def fee(self) -> float | None:
        """USD paid upfront for the days asked for; None without days, or without a figure that holds."""
        if self.state != "upfront" or self.figure is None or self.days is None:
            return None
        return self.figure.per_hour * 24 * self.days * self.item.quantity

    def _at(self, quantity: float) -> float | None:
        if self.figure is None or self.figure.unit == "gb":
            return None
        return self.figure.per_hour * quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What is paid for nothing while a node is down."""

    group: str
    """The compute group with the most nodes."""
    instance_type: str
    state: State
    """How far the node's figure holds; `upfront`: it is paid already."""
    node_per_hour: float | None
    """USD per hour of one node; None without a figure."""
    job_groups: tuple[str, ...]
    """The groups of its partition."""
    job_nodes: int
    """Their nodes: those of a synchronous job that all wait for the one."""
    job_per_hour: float | None
    """USD per hour of all of them; None where a figure is missing or does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What an environment costs. USD, list prices, without tax and discounts."""

    environment: str
    region: str
    orchestrator: str
    today: dt.date
    days: int | None
    accept_expired: bool
    lines: tuple[Line, ...]
    idle: Idle | None
    faults: tuple[str, ...]
    """Why prices could not be asked of AWS."""

    @property
    def counted(self) -> tuple[Line, ...]:
        """The lines that are summed."""
        return tuple(line for line in self.lines if line.state == "counted")

    @property
    def per_hour(self) -> float:
        """USD per hour, of the lines that are counted."""
        return sum(line.per_hour or 0 for line in self.counted)

    @property
    def per_day(self) -> float:
        """USD per day."""
        return self.per_hour * 24

    @property
    def per_month(self) -> float:
        """USD per month of 730 hours."""
        return self.per_hour * HOURS_PER_MONTH

    @property
    def greatest_per_hour(self) -> float:
        """USD per hour at the most, when every group has all the nodes it may have."""
        return sum(line.greatest_per_hour or 0 for line in self.counted)

    @property
    def grows(self) -> bool:
        """Whether a group may have more nodes than it always has."""
        return any(line.item.greatest > line.item.quantity for line in self.lines)

    @property
    def upfront(self) -> float | None:
        """USD of all fees that are paid upfront, for `days`; None where there is none or one is not known."""
        fees = [line.fee for line in self.lines if line.state == "upfront" and line.item.quantity]
        return sum(fee for fee in fees if fee is not None) if fees and None not in fees else None

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is billed and in neither sum, each with the reason."""
        return self._left_out(lambda line: line.item.quantity > 0)

    @property
    def greatest_left_out(self) -> tuple[str, ...]:
        """What more is left out of the sum at the most."""
        return self._left_out(lambda line: not line.item.quantity)

    def _left_out(self, wanted: Callable[[Line], bool]) -> tuple[str, ...]:
        return tuple(
            f"{line.item.what} ({reason(line)})"
            for line in self.lines
            if wanted(line) and reason(line) and line.state != "by use"
        )

    @property
    def by_use(self) -> tuple[str, ...]:
        """What is billed by use, and is in no sum."""
        return tuple(line.item.what for line in self.lines if line.state == "by use")

    @property
    def complete(self) -> bool:
        """Whether the sums have everything but what is billed by use."""
        return not self.left_out

    @property
    def expired_accepted(self) -> tuple[Line, ...]:
        """Lines that are summed although their figure has expired."""
        return tuple(
            line
            for line in self.lines
            if line.state in ("counted", "upfront") and line.figure and line.figure.expired
        )

    @property
    def unverified(self) -> tuple[Line, ...]:
        """Lines whose figure, summed, rests on one source."""
        return tuple(
            line
            for line in self.lines
            if line.state in ("counted", "upfront") and line.figure and not line.figure.verified
        )


def reason(line: Line) -> str:
    """Why a line is in no sum; empty where it is in one."""
    if line.state == "upfront" and line.days is None:
        return "paid upfront, for a number of days that is not given"
    found = line.figure
    return {
        "unknown": "no price known",
        "indicative": "price without a date",
        "expired": f"price expired on {found.expires}" if found and found.expires else "price expired",
        "by use": "billed by use",
    }.get(line.state, "")


def estimate(
    environment: Environment,
    *,
    today: dt.date | None = None,
    days: int | None = None,
    accept_expired: bool = False,
    live: Mapping[str, Figure] | None = None,
    faults: Sequence[str] = (),
) -> Estimate:
    """Price an environment.

    Args:
        today: decides which figures have expired.
        days: length of Capacity Blocks and training plans, which are paid upfront.
        accept_expired: sum figures past their date, too. Those without a date are never summed.
        live: figures asked of AWS just now, by key; they win over the table.
        faults: why some could not be asked.
    """
    on = today or dt.date.today()
    items = list(billed(environment))
    lines = tuple(_line(environment, item, on, days, accept_expired, live or {}) for item in items)
    return Estimate(
        environment=environment.name,
        region=environment.region,
        orchestrator=environment.orchestrator.kind,
        today=on,
        days=days,
        accept_expired=accept_expired,
        lines=lines,
        idle=_idle(environment, lines),
        faults=tuple(faults),
    )


def billed(environment: Environment) -> Iterator[Item]:
    """Everything that an environment is billed for, as far as the file says."""
    yield from _nodes(environment)
    yield from _control_plane(environment)
    yield from _lustre(environment)
    yield from _open_zfs(environment)
    yield from _database(environment)
    yield from _network(environment)
    yield from _security(environment)
    yield from _by_use(environment)


# What is billed.


def _nodes(environment: Environment) -> Iterator[Item]:
    hyperpod = environment.orchestrator.kind in HYPERPOD
    for name, group in environment.node_groups.items():
        greatest = _greatest(environment, group)
        if not greatest:
            continue
        ours = not hyperpod or group.role == "system"  # system groups are EC2 nodes that EKS manages
        yield _instances(environment, name, group, greatest, hyperpod=not ours)
        gib = group.root_volume_gib if ours else group.volume_gib
        yield Item(
            area="nodes",
            what=f"{name}: {'root' if ours else 'second'} volumes of {gib:,} GiB",
            key="ebs.gp3" if ours else "hyperpod-volume",
            purchase="usage",
            unit="GiB",
            quantity=gib * group.count,
            greatest=gib * greatest,
        )


def _greatest(environment: Environment, group: NodeGroup) -> int:
    scaling = getattr(environment.orchestrator, "autoscaling", None)
    if scaling is not None and group.role == "compute" and group.count == 0:
        return int(scaling.max_nodes)  # HyperPod's Karpenter fills the empty groups
    return group.greatest


def _instances(
    environment: Environment, name: str, group: NodeGroup, greatest: int, *, hyperpod: bool
) -> Item:
    kind, capacity = group.instance_type, group.capacity.kind
    item = Item(
        area="nodes",
        what=f"{name}: {kind}",
        key=f"{'hyperpod' if hyperpod else 'ec2'}.{kind}",
        purchase=capacity,
        unit="instance",
        quantity=group.count,
        greatest=greatest,
        group=name,
    )
    if capacity == "spot":
        return replace(
            item,
            key=f"{'hyperpod-spot' if hyperpod else 'spot'}.{kind}",
            note="Spot has no list price" + ("" if hyperpod else ": --live asks for the current one"),
        )
    if capacity == "reservation":
        return replace(item, note="billed whether or not nodes run in it")
    if capacity == "training-plan":
        return replace(item, key=f"training-plan.{kind}", note=_PREPAID)
    if capacity == "capacity-block":
        return _in_ultraservers(environment, replace(item, key=f"capacity-block.{kind}", note=_PREPAID))
    if group.instance_types:
        return replace(item, note=f"or {', '.join(group.instance_types)} where it cannot be had")
    return item


_PREPAID = "paid upfront, used or not"


def _in_ultraservers(environment: Environment, item: Item) -> Item:
    """Blocks of UltraServers are sold by the UltraServer."""
    kind = item.key.partition(".")[2]
    sold = [one for one in ultraservers().values() if one.member == kind and one.capacity_block_regions]
    sold.sort(key=lambda one: one.instances, reverse=True)
    for one in sold:
        if item.quantity and item.quantity % one.instances == 0 and item.greatest % one.instances == 0:
            return replace(
                item,
                what=f"{item.what} in {one.name}",
                key=f"capacity-block.{one.name}",
                unit="UltraServer",
                quantity=item.quantity // one.instances,
                greatest=item.greatest // one.instances,
            )
    return item


def _control_plane(environment: Environment) -> Iterator[Item]:
    orchestrator = environment.orchestrator
    if isinstance(orchestrator, Eks | HyperPodEks):
        extended = orchestrator.support == "extended"
        yield replace(
            _one("control plane", f"EKS {orchestrator.kubernetes_version}", "eks.standard", "cluster"),
            note="more per hour once the release is in extended support" if extended else "",
        )
        if orchestrator.scaling_tier != "standard":
            tier = orchestrator.scaling_tier
            yield _one("control plane", f"EKS provisioned control plane, {tier}", f"eks.tier.{tier}", "tier")
        for name in _capabilities(orchestrator):
            yield _one("control plane", f"EKS capability {name}", f"eks.capability.{name}", "capability")
    if isinstance(orchestrator, Pcs):
        nodes = sum(group.greatest for group in environment.node_groups.values())
        size = orchestrator.size or pcs_size_for(nodes).name
        yield _one("control plane", f"PCS controller, {size}", f"pcs.controller.{size}", "controller")
        yield Item(
            area="control plane",
            what="PCS fee for each node",
            key="pcs.node",
            purchase="usage",
            unit="node",
            quantity=sum(group.count for group in environment.node_groups.values()),
            greatest=nodes,
        )
        if orchestrator.accounting.mode == "standard":
            yield _one("control plane", "PCS accounting", "pcs.accounting", "cluster")


def _capabilities(orchestrator: Eks | HyperPodEks) -> list[str]:
    wanted = orchestrator.capabilities
    return [
        name for name, on in (("argo-cd", wanted.argo_cd), ("ack", wanted.ack), ("kro", wanted.kro)) if on
    ]


def _lustre(environment: Environment) -> Iterator[Item]:
    lustre = environment.storage.lustre
    if lustre is None or isinstance(lustre, ExistingLustre):
        return
    key = f"lustre.{lustre.deployment}"
    if isinstance(lustre, IntelligentTieringLustre):
        speed = lustre.throughput_mbps
        yield _one("storage", f"Lustre throughput, {lustre.deployment}", f"{key}.throughput", "MB/s", speed)
        yield _one("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops)
        if lustre.read_cache.mode == "sized":
            yield _one("storage", "Lustre read cache", f"{key}.cache", "GiB", lustre.read_cache.gib or 0)
        elif lustre.read_cache.mode == "proportional":
            # FSx decides its size; without one there is nothing to multiply
            yield _one("storage", "Lustre read cache, size by throughput", "", "cache")
        return
    tier = "" if isinstance(lustre, ScratchLustre) else f".{lustre.throughput_mbps_per_tib}"
    cache = "-cached" if getattr(lustre, "drive_cache", "none") == "read" else ""
    speed = f" at {tier[1:]} MB/s per TiB" if tier else ""
    yield _one(
        "storage", f"Lustre {lustre.deployment}{speed}", f"{key}{tier}{cache}", "GiB", lustre.capacity_gib
    )
    if isinstance(lustre, Persistent2SsdLustre) and isinstance(lustre.metadata_iops, int):
        yield replace(
            _one("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops),
            note="some of them may come with the capacity",
        )


def _open_zfs(environment: Environment) -> Iterator[Item]:
    home = environment.storage.openzfs
    if home is None or home.deployment == "existing":
        return
    key = f"openzfs.{home.deployment}"
    yield _one("storage", f"OpenZFS {home.deployment}", f"{key}.storage", "GiB", home.capacity_gib)
    yield _one("storage", "OpenZFS throughput", f"{key}.throughput", "MB/s", home.throughput_mbps)


def _database(environment: Environment) -> Iterator[Item]:
    database = environment.storage.accounting_database
    if database is None or database.kind == "existing":
        return
    zones = "-multi-az" if database.multi_az else ""
    two = ", two zones" if database.multi_az else ""
    yield _one(
        "storage",
        f"RDS for MySQL, db.{database.instance_class}{two}",
        f"rds.mysql{zones}.{database.instance_class}",
        "instance",
    )
    yield _one("storage", f"RDS storage, gp3{two}", f"rds.storage{zones}", "GiB", database.storage_gib)


def _network(environment: Environment) -> Iterator[Item]:
    if _makes_nat(environment):
        yield _one("network", "NAT gateway", "nat", "gateway")
        yield _one("network", "public IPv4 address of the NAT gateway", "ipv4", "address")
    interfaces = [one for one in made_endpoints(environment) if one.kind == "interface"]
    if interfaces:
        yield _one("network", "interface endpoints in one zone", "endpoint", "endpoint", len(interfaces))


def _makes_nat(environment: Environment) -> bool:
    return environment.network.egress == "nat" and environment.network.vpc is None


def _security(environment: Environment) -> Iterator[Item]:
    kubernetes = isinstance(environment.orchestrator, Eks | HyperPodEks)
    ours = 0 if environment.storage.key else 1 + kubernetes  # the control plane has one of its own
    keys = ours + (environment.network.vpc is None)  # flow logs
    if keys:
        yield _one("security", "KMS keys", "kms.key", "key", keys)
    database = environment.storage.accounting_database
    if database is not None and database.kind != "existing":
        yield _one("security", "secret of the accounting database", "secret", "secret")


def _by_use(environment: Environment) -> Iterator[Item]:
    storage = environment.storage

    def use(what: str, key: str = "") -> Item:
        return Item(area="by use", what=what, key=key, purchase="usage", unit="GB")

    if _makes_nat(environment):
        yield use("data through the NAT gateway", "nat.gb")
    if any(one.kind == "interface" for one in made_endpoints(environment)):
        yield use("data through interface endpoints", "endpoint.gb")
    if not storage.scripts_bucket or environment.data_repositories:
        yield use("S3: objects and requests")
    if isinstance(storage.lustre, IntelligentTieringLustre):
        yield use("Lustre: data stored in Intelligent-Tiering")
    if any(
        getattr(getattr(one, "backups", None), "retention_days", 0)
        for one in (storage.lustre, storage.openzfs)
    ):
        yield use("backups of file systems")
    yield use("CloudWatch: logs and metrics")
    yield use("traffic to other zones, Regions and the internet")


def _one(area: Area, what: str, key: str, unit: str, quantity: float = 1) -> Item:
    return Item(
        area=area, what=what, key=key, purchase="usage", unit=unit, quantity=quantity, greatest=quantity
    )


# What it costs.


def _line(
    environment: Environment,
    item: Item,
    today: dt.date,
    days: int | None,
    accept_expired: bool,
    live: Mapping[str, Figure],
) -> Line:
    found = live.get(item.key) or _look_up(item.key, environment.region, today)
    elsewhere = None
    if found and found.region == environment.region and _in_local_zone(environment, item):
        found, elsewhere = None, found
    elif found is None and environment.region != REFERENCE_REGION:
        elsewhere = _look_up(item.key, REFERENCE_REGION, today)
    ec2 = None
    if item.key.startswith("hyperpod."):
        same = item.key.replace("hyperpod.", "ec2.", 1)
        ec2 = _look_up(same, environment.region, today) or _look_up(same, REFERENCE_REGION, today)
    return Line(
        item=item,
        state=_state(item, found, accept_expired),
        figure=found,
        elsewhere=elsewhere,
        ec2=ec2,
        days=days,
    )


def _in_local_zone(environment: Environment, item: Item) -> bool:
    """Whether a thing stands in a Local Zone, which has prices of its own."""
    zonal = item.area in ("nodes", "storage", "network")
    return zonal and not re.fullmatch(r"[a-z]+\d+-az\d+", environment.network.zone_id)


def _look_up(key: str, region: str, today: dt.date) -> Figure | None:
    kind, _, name = key.partition(".")
    server = ultraservers().get(name) if kind == "capacity-block" else None
    places = [region]
    for place in server.capacity_block_regions if server else ():  # they may be sold in a Local Zone alone
        found = zone_region(place)
        if found and found.name == region:
            places.append(place)
    return next((hit for place in places if (hit := figure(key, place, today=today))), None)


def _state(item: Item, found: Figure | None, accept_expired: bool) -> State:
    if item.area == "by use":
        return "by use"
    if found is None:
        return "unknown"
    if found.indicative:
        return "indicative"
    if found.expired and not accept_expired:
        return "expired"
    return "upfront" if item.purchase in ("capacity-block", "training-plan") else "counted"


def _idle(environment: Environment, lines: Sequence[Line]) -> Idle | None:
    """The burn of the compute group with the most nodes."""
    of = {line.item.group: line for line in lines if line.item.group}
    compute = [name for name in environment.groups("compute") if name in of]
    if not compute:
        return None
    nodes = {name: _job_nodes(environment, of[name]) for name in compute}
    group = max(compute, key=lambda name: nodes[name])
    partition = environment.node_groups[group].partition
    job = [
        name
        for name in compute
        if name == group or (partition and environment.node_groups[name].partition == partition)
    ]
    costs = [_burn(environment, of[name], nodes[name]) for name in job]
    first = of[group]
    return Idle(
        group=group,
        instance_type=environment.node_groups[group].instance_type,
        state=first.state,
        node_per_hour=_node(environment, first),
        job_groups=tuple(job),
        job_nodes=sum(nodes[name] for name in job),
        job_per_hour=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _job_nodes(environment: Environment, line: Line) -> int:
    """Nodes of a group that a job may hold: those that are always there, or else those that may be."""
    group = environment.node_groups[line.item.group]
    return group.count or _greatest(environment, group)


def _node(environment: Environment, line: Line) -> float | None:
    if line.figure is None:
        return None
    group = environment.node_groups[line.item.group]
    return line.figure.per_hour * line.item.greatest / _greatest(environment, group)


def _burn(environment: Environment, line: Line, nodes: int) -> float | None:
    node = _node(environment, line)
    return None if node is None or line.state not in ("counted", "upfront") else node * nodes
