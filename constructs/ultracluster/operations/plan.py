"""What an environment is made of, computed from the file and the catalogue alone."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from ultracluster.catalog import InstanceType
from ultracluster.catalog.sizing import (
    AcceleratorDomain,
    accelerator_domain,
    lustre_client_gbps,
    lustre_read_mbps_per_tib,
    lustre_write_mbps_per_tib,
    model_state,
)
from ultracluster.compute.capacity import placement_for
from ultracluster.compute.network_cards import network_card_plan
from ultracluster.config import Environment, Finding
from ultracluster.config.capacity import Reservation
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD
from ultracluster.config.storage import ExistingLustre, IntelligentTieringLustre
from ultracluster.operations.quota_needs import most_nodes, needs
from ultracluster.rules.address_budget import address_budget
from ultracluster.rules.endpoints import made_endpoints
from ultracluster.rules.types import instance_type_of

if TYPE_CHECKING:
    from ultracluster.operations.cost import Estimate

SMALLEST_MODEL, LARGEST_MODEL = 10**6, 10**15
"""Parameters between which a model size is believed; anything else is a slip of a unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """One node group in figures, at the most nodes it may have. None is unknown."""

    name: str
    role: str
    instance_type: str
    count: int
    """Nodes that are always there."""
    greatest: int
    """Nodes that there may be."""
    capacity: str
    """Kind of capacity: `on-demand`, `training-plan` ..."""
    capacity_id: str
    """Id or ARN of what is reserved; empty without one."""
    placement: str
    """`hyperpod` where that places the nodes; else the placement group: `cluster`, `reservation-group` (that
    of the reservation) or `none`. Empty where it makes no difference."""
    vcpu: int | None
    memory_gib: float | None
    """Main memory of all nodes in GiB."""
    accelerator: str
    """Name of one; empty without."""
    accelerators: int
    accelerator_memory_gib: float
    """GiB over all nodes."""
    domain: AcceleratorDomain | None
    efa_interfaces: int | None
    """EFA interfaces of one node."""
    efa_gbps_per_node: float | None
    """Gbit/s; 0 without EFA."""

    @property
    def efa_gbps(self) -> float | None:
        """EFA bandwidth of all nodes in Gbit/s."""
        return None if self.efa_gbps_per_node is None else self.efa_gbps_per_node * self.greatest

    @property
    def nodes(self) -> str:
        """`16 x p5en.48xlarge`, `0-4 x p5.48xlarge`."""
        number = f"{self.count}-{self.greatest}" if self.greatest > self.count else str(self.count)
        return f"{number} x {self.instance_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemPlan:
    """A file system, made here or elsewhere."""

    kind: str
    """`Lustre` or `OpenZFS`."""
    deployment: str
    mount_path: str
    id: str = ""
    """Of one that exists."""
    capacity_gib: int | None = None
    """None: unknown, or elastic."""
    read_mbps: float | None = None
    write_mbps: float | None = None
    """MB/s that it takes for as long as it lasts."""
    fabric: str = "TCP"
    """`EFA` or `TCP`."""

    def __str__(self) -> str:
        if self.id:
            return f"{self.id} (existing) at {self.mount_path}"
        size = f"{self.capacity_gib:,} GiB" if self.capacity_gib else "elastic"
        if self.kind != "Lustre":
            return f"{size} {self.kind}, {self.read_mbps:,.0f} MB/s at {self.mount_path}"
        speed = f"{self.read_mbps:,.0f} MB/s"
        if self.write_mbps != self.read_mbps:
            speed += f" ({self.write_mbps:,.0f} writing)"
        return f"{size}, {speed} over {self.fabric} at {self.mount_path} ({self.deployment})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryPlan:
    """A folder of the Lustre file system that is tied to S3."""

    folder: str
    bucket: str
    """Empty: the environment's own, which is made."""
    prefix: str
    import_events: tuple[str, ...]
    export_events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """A training state of so many parameters, in memory and as a checkpoint."""

    parameters: float
    checkpoint_gb: float
    """10^9 bytes."""
    write_mbps: float | None
    """MB/s at which a checkpoint is written; None where the file system's throughput is unknown."""
    write_limit: str
    """What limits it: `file system` or `clients`."""
    state_gib: float
    """In accelerator memory, without activations."""
    group: str
    """The group with the most accelerator memory; empty without accelerators."""
    memory_gib: float
    """Its accelerator memory."""
    nodes: int | None
    """Nodes of it that hold the state at the least; None without accelerators."""
    checkpoint_bytes_per_parameter: int
    state_bytes_per_parameter: int
    assumption: str

    @property
    def write_seconds(self) -> float | None:
        """Time to write one checkpoint."""
        return None if not self.write_mbps else self.checkpoint_gb * 1000 / self.write_mbps

    @property
    def fits(self) -> bool:
        """Whether the accelerators of the group hold the state."""
        return self.state_gib <= self.memory_gib


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRow:
    """Who takes how many addresses."""

    what: str
    count: int
    each: int
    estimate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPlan:
    """The node subnet and what is to fit into it."""

    vpc: str
    """The VPC's network."""
    subnet: str
    usable: int
    total: int
    rows: tuple[AddressRow, ...]

    @property
    def estimate(self) -> bool:
        """Whether a row is one."""
        return any(row.estimate for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPlan:
    """A service quota of which the environment takes something."""

    service: str
    name: str
    code: str
    amount: float
    unit: str
    why: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPlan:
    """A VPC endpoint that is made."""

    service: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningPlan:
    """A rule that warns."""

    code: str
    path: str
    message: str
    acknowledged: str
    """The reason given for accepting it; empty while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPlan:
    """The sum of what has a price that holds; USD, list prices."""

    per_hour: float
    per_month: float
    greatest_per_hour: float
    complete: bool
    left_out: tuple[str, ...]
    """What is billed and not in the sum, with the reason."""
    groups_left_out: tuple[str, ...]
    """Node groups whose instances are not in the sum."""

    def __str__(self) -> str:
        lacks = [f"the nodes of {', '.join(self.groups_left_out)}"] if self.groups_left_out else []
        rest = len(self.left_out) - len(self.groups_left_out)
        if rest:
            lacks.append(f"{rest} thing{'s' * (rest > 1)} more")
        if not self.per_hour:
            return f"no price that holds: {' and '.join(lacks)}" if lacks else "nothing"
        most = ""
        if self.greatest_per_hour > self.per_hour:
            most = f" ({self.greatest_per_hour:,.2f} at the most)"
        text = f"{self.per_hour:,.2f} USD an hour{most}, {self.per_month:,.0f} USD a month"
        return f"{text}, WITHOUT {' and '.join(lacks)}" if lacks else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An environment in figures."""

    name: str
    orchestrator: str
    cluster_name: str
    account: str
    """Empty: that of the credentials."""
    region: str
    zone_id: str
    groups: tuple[GroupPlan, ...]
    lustre: FileSystemPlan | None
    repositories: tuple[RepositoryPlan, ...]
    home: FileSystemPlan | None
    accounting: str
    """Where Slurm's accounting is kept; empty without Slurm."""
    egress: str
    """`nat` or `closed`."""
    makes_vpc: bool
    endpoints: tuple[EndpointPlan, ...]
    addresses: AddressPlan
    quotas: tuple[QuotaPlan, ...]
    model: ModelPlan | None
    cost: CostPlan
    software: str
    protect: bool
    stacks: tuple[str, ...]
    warnings: tuple[WarningPlan, ...]

    @property
    def accelerators(self) -> int:
        """Accelerators of all groups."""
        return sum(group.accelerators for group in self.groups)

    @property
    def open_warnings(self) -> tuple[WarningPlan, ...]:
        """Those nobody has accepted."""
        return tuple(one for one in self.warnings if not one.acknowledged)

    def document(self) -> dict[str, Any]:
        """The plan as JSON has it; the units are those of the fields."""
        return _plain(self)


def plan(
    environment: Environment,
    model: float | None = None,
    today: dt.date | None = None,
    *,
    warnings: Sequence[Finding] = (),
) -> Plan:
    """The plan of an environment that passed its rules.

    Args:
        model: parameters of a model whose checkpoint is to be timed.
        today: which prices hold; the current day by default.
        warnings: what `ultracluster.rules.enforce` returned.
    """
    from ultracluster.operations.cost import estimate

    groups = tuple(_group(environment, name, group) for name, group in environment.node_groups.items())
    lustre = _lustre(environment)
    network = environment.network
    return Plan(
        name=environment.name,
        orchestrator=environment.orchestrator.kind,
        cluster_name=environment.cluster_name,
        account=environment.account or "",
        region=environment.region,
        zone_id=network.zone_id,
        groups=groups,
        lustre=lustre,
        repositories=_repositories(environment),
        home=_home(environment),
        accounting=_accounting(environment),
        egress=network.egress,
        makes_vpc=network.vpc is None,
        endpoints=tuple(
            EndpointPlan(service=one.service, kind=one.kind, reason=one.reason)
            for one in made_endpoints(environment)
        ),
        addresses=_addresses(environment),
        quotas=tuple(
            QuotaPlan(
                service=need.quota.service,
                name=need.quota.name,
                code=need.quota.code,
                amount=need.amount,
                unit=need.unit,
                why=need.why,
                scope=need.scope,
            )
            for need in needs(environment)
        ),
        model=None if model is None else _model(environment, model, groups, lustre),
        cost=_cost(estimate(environment, today=today)),
        software=environment.software.release,
        protect=environment.protect,
        stacks=environment.stack_names,
        warnings=tuple(
            WarningPlan(
                code=one.code, path=one.dotted, message=one.message, acknowledged=one.acknowledged or ""
            )
            for one in warnings
        ),
    )


def parameters(text: str) -> float:
    """The number of parameters that `70B` means.

    Raises:
        ValueError: it is none, or one that nobody means.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([MBT])", text.strip().upper())
    if not found:
        raise ValueError(f"{text!r} is no model size: write parameters with M, B or T, as in 8B, 70B or 1.8T")
    number = float(found[1]) * {"M": 1e6, "B": 1e9, "T": 1e12}[found[2]]
    if not SMALLEST_MODEL <= number <= LARGEST_MODEL:
        raise ValueError(f"{text!r} is no model size between 1M and 1000T; is it another unit?")
    return number


def size_text(number: float) -> str:
    """Parameters as people write them: `70B`."""
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6)):
        if number >= factor:
            return f"{number / factor:g}{unit}"
    return f"{number:g}"


def bandwidth(gbps: float | None) -> str:
    """Gbit/s, or Tbit/s from ten thousand on."""
    if gbps is None:
        return "?"
    if gbps == 0:
        return "-"
    return f"{gbps:,.0f} Gbit/s" if gbps < 10_000 else f"{gbps / 1000:,.1f} Tbit/s"


def _group(environment: Environment, name: str, group: NodeGroup) -> GroupPlan:
    known = instance_type_of(environment, group)
    nodes = most_nodes(environment, group)
    accelerator = known.accelerator if known else None
    interfaces, gbps = _efa(known)
    capacity = group.capacity
    reserved = getattr(capacity, "id", None) or getattr(capacity, "arn", None)
    return GroupPlan(
        name=name,
        role=group.role,
        instance_type=group.instance_type,
        count=group.count,
        greatest=nodes,
        capacity=capacity.kind,
        capacity_id=reserved or getattr(capacity, "resource_group_arn", None) or "",
        placement=_placement(environment, group, known),
        vcpu=known.vcpu * nodes if known and known.vcpu else None,
        memory_gib=known.memory_gib * nodes if known and known.memory_gib else None,
        accelerator=accelerator.name if accelerator else "",
        accelerators=accelerator.count * nodes if accelerator else 0,
        accelerator_memory_gib=accelerator.memory_gib * nodes if accelerator else 0,
        domain=accelerator_domain(known, nodes) if known else None,
        efa_interfaces=interfaces,
        efa_gbps_per_node=gbps,
    )


def _efa(known: InstanceType | None) -> tuple[int | None, float | None]:
    """EFA interfaces of one node and what they carry together."""
    if known is None:
        return None, None
    if known.efa_interfaces == 0:
        return 0, 0
    try:
        shares = [one.gbps for one in network_card_plan(known) if one.kind == "efa-only"]
    except ValueError:  # its cards are unknown: the instance's own figure is what there is
        return known.efa_interfaces, known.network_gbps
    found = [share for share in shares if share is not None]
    return len(shares), sum(found) if len(found) == len(shares) else known.network_gbps


def _placement(environment: Environment, group: NodeGroup, known: InstanceType | None) -> str:
    if group.role != "compute" or known is None:
        return ""
    if environment.orchestrator.kind in HYPERPOD:
        return "hyperpod"
    capacity = group.capacity
    in_group = isinstance(capacity, Reservation) and capacity.placement_group is not None
    return placement_for(
        capacity,
        orchestrator=environment.orchestrator.kind,
        instance_type=known,
        reserved_in_group=in_group,
    ).kind


def _lustre(environment: Environment) -> FileSystemPlan | None:
    lustre = environment.storage.lustre
    if lustre is None:
        return None
    fabric = "EFA" if getattr(lustre, "efa", False) else "TCP"
    if isinstance(lustre, ExistingLustre):
        return FileSystemPlan(
            kind="Lustre", deployment="existing", mount_path=lustre.mount_path, id=lustre.id, fabric=fabric
        )
    if isinstance(lustre, IntelligentTieringLustre):
        capacity, read, write = None, lustre.throughput_mbps, lustre.throughput_mbps
    else:
        tier = getattr(lustre, "throughput_mbps_per_tib", None)
        tib = lustre.capacity_gib / 1000  # AWS counts 1200 GiB as 1.2 TiB
        capacity = lustre.capacity_gib
        read = tib * (lustre_read_mbps_per_tib(lustre.deployment, tier) or 0)
        write = tib * (lustre_write_mbps_per_tib(lustre.deployment, tier) or 0)
    return FileSystemPlan(
        kind="Lustre",
        deployment=lustre.deployment,
        mount_path=lustre.mount_path,
        capacity_gib=capacity,
        read_mbps=read,
        write_mbps=write,
        fabric=fabric,
    )


def _home(environment: Environment) -> FileSystemPlan | None:
    home = environment.storage.openzfs
    if home is None:
        return None
    if home.deployment == "existing":
        return FileSystemPlan(
            kind="OpenZFS", deployment="existing", mount_path=home.mount_path, id=home.id
        )  # fmt: skip
    return FileSystemPlan(
        kind="OpenZFS",
        deployment=home.deployment,
        mount_path=home.mount_path,
        capacity_gib=home.capacity_gib,
        read_mbps=home.throughput_mbps,
        write_mbps=home.throughput_mbps,
    )


def _repositories(environment: Environment) -> tuple[RepositoryPlan, ...]:
    return tuple(
        RepositoryPlan(
            folder=folder,
            bucket=one.bucket or "",
            prefix=one.prefix or "",
            import_events=tuple(one.import_events),
            export_events=tuple(one.export_events),
        )
        for folder, one in environment.data_repositories.items()
    )


def _accounting(environment: Environment) -> str:
    orchestrator = environment.orchestrator
    if orchestrator.kind in ("eks", "hyperpod-eks"):
        return ""
    if orchestrator.kind == "pcs":
        return "kept by PCS" if orchestrator.accounting.mode == "standard" else "none"
    database = environment.storage.accounting_database
    if database is None:
        return "on the controller's disk" if orchestrator.kind == "hyperpod-slurm" else "none"
    if database.kind == "existing":
        return database.endpoint
    return f"RDS for MySQL, db.{database.instance_class}{', two zones' if database.multi_az else ''}"


def _addresses(environment: Environment) -> AddressPlan:
    budget = address_budget(environment)
    network = environment.network
    return AddressPlan(
        vpc=network.vpc.cidr if network.vpc else network.cidr,
        subnet=str(budget.network),
        usable=budget.usable,
        total=budget.total,
        rows=tuple(
            AddressRow(what=row.what, count=row.count, each=row.each, estimate=not row.verified)
            for row in budget.rows
        ),
    )


def _model(
    environment: Environment, size: float, groups: Sequence[GroupPlan], lustre: FileSystemPlan | None
) -> ModelPlan:
    facts = model_state()
    largest = max(groups, key=lambda group: group.accelerator_memory_gib)
    memory = largest.accelerator_memory_gib
    state_gib = size * facts.memory_bytes / 2**30
    write, limit = _write(environment, largest, lustre)
    return ModelPlan(
        parameters=size,
        checkpoint_gb=size * facts.checkpoint_bytes / 1e9,
        write_mbps=write,
        write_limit=limit,
        state_gib=state_gib,
        group=largest.name if memory else "",
        memory_gib=memory,
        nodes=math.ceil(state_gib / (memory / largest.greatest)) if memory else None,
        checkpoint_bytes_per_parameter=facts.checkpoint_bytes,
        state_bytes_per_parameter=facts.memory_bytes,
        assumption=(
            f"mixed precision with Adam, sharded over all nodes: {facts.memory_bytes} bytes a parameter in "
            f"memory without activations, {facts.checkpoint_bytes} in a checkpoint ({facts.source})"
        ),
    )


def _write(
    environment: Environment, group: GroupPlan, lustre: FileSystemPlan | None
) -> tuple[float | None, str]:
    """MB/s at which the nodes of a group together write, and what limits it."""
    if lustre is None or lustre.write_mbps is None:
        return None, ""
    known = instance_type_of(environment, environment.node_groups[group.name])
    efa = lustre.fabric == "EFA" and known is not None and known.lustre_efa_client
    gds = bool(getattr(environment.storage.lustre, "gds", False)) and known is not None
    each = lustre_client_gbps(efa=efa, gds=gds and known is not None and known.lustre_gds_client)
    clients = max(1, group.greatest) * each * 1000 / 8
    return (clients, "clients") if clients < lustre.write_mbps else (lustre.write_mbps, "file system")


def _cost(found: Estimate) -> CostPlan:
    from ultracluster.operations.cost import reason

    return CostPlan(
        per_hour=found.per_hour,
        per_month=found.per_month,
        greatest_per_hour=found.greatest_per_hour,
        complete=found.complete,
        left_out=found.left_out,
        groups_left_out=tuple(
            line.item.group
            for line in found.lines
            if line.item.group and line.item.quantity and line.state != "counted" and reason(line)
        ),
    )


def _plain(value: Any) -> Any:
    """Data classes with their properties as dictionaries."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        names += [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    return value


__all__ = [
    "AddressPlan",
    "AddressRow",
    "CostPlan",
    "EndpointPlan",
    "FileSystemPlan",
    "GroupPlan",
    "ModelPlan",
    "Plan",
    "QuotaPlan",
    "RepositoryPlan",
    "WarningPlan",
    "bandwidth",
    "parameters",
    "plan",
    "size_text",
]
