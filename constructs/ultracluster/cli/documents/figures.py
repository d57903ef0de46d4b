"""Documents of figures: cost, prices, and the choice of an orchestrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from ultracluster.account.spending import Spent
from ultracluster.catalog.prices import SavingsPlan
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.plan.choice import Reason
from ultracluster.plan.cost import Committed, Line, Periods
from ultracluster.plan.cost_summary import CostPlan
from ultracluster.plan.type_choice import TypeRow


class IdleCost(TypedDict):
    """What an idle or failed node costs."""

    group: str
    instance_type: str
    prepaid: bool
    mark: str | None
    node: Periods | None
    job_groups: list[str]
    job_nodes: int
    job: Periods | None
    """While a job on all its nodes waits."""


class SpentCost(TypedDict):
    """Cost Explorer's figures of the environment's tag, before credits, refunds and tax."""

    since: str
    until: str
    """The first day that is not in it."""
    days: int
    usd: float | None
    """None where Cost Explorer has nothing, which is not zero."""
    estimate_usd: float | None
    """The estimate of as many days."""
    may_change: bool
    """AWS may still correct it."""
    requests: int
    requests_usd: float
    """Cost of the question itself."""
    rows: list[Spent]
    notes: list[str]


class CostReport(TypedDict):
    """The estimate."""

    environment: str
    orchestrator: str
    region: str
    date: str
    currency: str
    hours_per_month: float
    summary: CostPlan
    """What `plan` says of the cost."""
    estimate: Periods | None
    """Everything that has a price."""
    at_most: Periods | None
    strict: Periods | None
    """Own prices of this Region of the last 90 days only."""
    complete: bool
    """Whether both sums are the same."""
    not_priced: list[str]
    days: int | None
    """Length of Capacity Blocks and training plans."""
    upfront: float | None
    by_use: list[str]
    """What only use decides, and no sum has."""
    faults: list[str]
    """Why prices of a file could not be used."""
    lines: list[Line]
    committed_one_year: list[Committed]
    savings_plans: list[SavingsPlan]
    """Those that may cover its instances on demand."""
    idle: IdleCost | None


class Cost(CostReport, total=False):
    spent: SpentCost
    """With `--spent`."""


class PriceChange(TypedDict):
    """One price that AWS answered."""

    key: str
    region: str
    per: str
    before: float | None
    usd: float


class PriceUpdate(TypedDict):
    files: dict[str, list[PriceChange]]
    """By the path of prices.csv."""
    faults: list[str]
    """What AWS did not answer."""


class WantedRow(TypedDict):
    """What was asked for."""

    features: list[str]
    capacity: str
    """Empty: any."""
    instance_type: str
    """Empty: not decided."""


class RankRow(TypedDict):
    """An orchestrator and how it suits."""

    place: int
    """From 1."""
    orchestrator: str
    title: str
    possible: bool
    """Whether nothing that is asked for is refused."""
    lacks: int
    """The least suits best."""
    reasons: list[Reason]


class TypeChoice(TypedDict):
    """Instance types for a model, the cheapest per operation first."""

    parameters: float
    state_gib: float
    rows: list[TypeRow]
    about: str


class ChoiceReport(TypedDict):
    """The orchestrators."""

    wanted: WantedRow
    ranking: list[RankRow]
    comparison: Mapping[str, Mapping[OrchestratorKind, Reason]]
    """Every feature, then each orchestrator's answer."""


class Choice(ChoiceReport, total=False):
    types: TypeChoice
    """With --model."""
