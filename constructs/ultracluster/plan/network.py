"""The node subnet's addresses in figures, and the VPC endpoints."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.model import Cluster
from ultracluster.model.addresses import address_budget, further_budgets, vpc_blocks
from ultracluster.model.endpoints import made_endpoints
from ultracluster.model.perimeter import perimeter_of


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
    """The VPC's networks."""
    subnet: str
    usable: int
    total: int
    rows: tuple[AddressRow, ...]

    @property
    def estimate(self) -> bool:
        """Whether a row is one."""
        return any(row.estimate for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPlan:
    """A VPC endpoint that is made."""

    service: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePlan:
    """The nodes' subnet in another zone."""

    zone_id: str
    subnet: str
    usable: int
    total: int
    groups: tuple[str, ...]
    """In it, by name."""


def zone_plans(cluster: Cluster) -> tuple[ZonePlan, ...]:
    """Every further zone with what is in it."""
    return tuple(
        ZonePlan(
            zone_id=zone,
            subnet=str(budget.network),
            usable=budget.usable,
            total=budget.total,
            groups=tuple(cluster.further_zones.get(zone, ())),
        )
        for zone, budget in further_budgets(cluster).items()
    )


def address_plan(cluster: Cluster) -> AddressPlan:
    """The node subnet, with a row for each that takes addresses of it."""
    budget = address_budget(cluster)
    network = cluster.environment.network
    return AddressPlan(
        vpc=" and ".join(map(str, vpc_blocks(network))),
        subnet=str(budget.network),
        usable=budget.usable,
        total=budget.total,
        rows=tuple(
            AddressRow(what=row.what, count=row.count, each=row.each, estimate=not row.verified)
            for row in budget.rows
        ),
    )


def endpoint_plans(cluster: Cluster) -> tuple[EndpointPlan, ...]:
    """Every VPC endpoint that is made."""
    return tuple(
        EndpointPlan(service=endpoint.service, kind=endpoint.kind, reason=endpoint.reason)
        for endpoint in made_endpoints(cluster)
    )


def perimeter_words(cluster: Cluster) -> str:
    """Whose resources pass the endpoints that are made; empty where none is."""
    if not made_endpoints(cluster):
        return ""
    perimeter, account = perimeter_of(cluster), cluster.environment.account
    words = [f"account {account}" if account else "this account"]
    words += [f"organization {perimeter.organization}"] if perimeter.organization else []
    words += [f"account {one}" for one in perimeter.accounts]
    words += [f"bucket {bucket}" for bucket in perimeter.buckets]
    read = (*perimeter.read_buckets, *perimeter.readable_buckets)
    words += [f"bucket {one} (to read)" for one in dict.fromkeys(read)]
    words += ["every bucket of S3 (to read)"] if perimeter.reads_anywhere else []
    return ", ".join((*words, "what AWS itself keeps for nodes"))
