"""Documents of figures: cost, prices, and the choice of an orchestrator."""

from __future__ import annotations

from typing import TypedDict

from ultracluster.plan.choice import Answer
from ultracluster.plan.cost_summary import CostPlan


class Periods(TypedDict):
    """USD; a month has 730 hours."""

    hour: float | None
    day: float | None
    month: float | None


class Price(TypedDict):
    """One price, and how old it is."""

    usd: float
    per: str
    region: str | None
    source: str
    date: str | None
    verified: bool
    """False where it rests on a single source that is not the price list itself."""
    live: bool
    """Asked of AWS just now."""


class CostLine(TypedDict):
    """One thing that is billed."""

    area: str
    what: str
    purchase: str
    quantity: float
    at_most: float
    """With all that may be added."""
    unit: str
    mark: str | None
    """Why the strict sum leaves it out: `old`, `undated`, `derived`, `elsewhere`."""
    days_old: int | None
    upfront: bool
    """Whether it is paid before it is used, and not in the sums by hour."""
    note: str | None
    price: Price | None
    cost: Periods | None


class Committed(TypedDict):
    """A group's price with a commitment of one year."""

    group: str
    by: str
    """Name of the commitment: a Reserved Instance or a Savings Plan."""
    price: Price | None
    on_demand: Price | None


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


class SavingsPlanRow(TypedDict):
    """Greatest discount of a Savings Plan on the on-demand price."""

    kind: str
    name: str
    most_percent: int
    note: str
    source: str
    date: str


class SpentRow(TypedDict):
    """One group of usage types of one service."""

    service: str
    usage: str
    """The usage type without Region and what follows: `BoxUsage`, `Cluster`."""
    usd: float


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
    rows: list[SpentRow]
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
    lines: list[CostLine]
    committed_one_year: list[Committed]
    savings_plans: list[SavingsPlanRow]
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


class ReasonRow(TypedDict):
    """How an orchestrator answers to one wish."""

    title: str
    answer: Answer
    words: str
    source: str


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
    reasons: list[ReasonRow]


class TypePriceRow(TypedDict):
    """A list price of one node."""

    usd_per_hour: float
    by: str
    region: str
    source: str
    date: str | None


class TypeRowDocument(TypedDict):
    """An instance type for a model; null is unknown, never 0."""

    instance_type: str
    accelerator: str
    accelerators: int
    memory_gib: float
    """Accelerator memory of one node."""
    nodes: int
    """Number that holds the training state at the least."""
    pflops: float
    """Dense BF16 of one node, at the peak."""
    efa_gbps: float | None
    prices: list[TypePriceRow]
    """The lowest known of each kind."""
    usd_per_pflops_hour: float | None
    nodes_usd_per_hour: float | None
    obtainable: list[str]
    """Kinds of capacity that some orchestrator has it by."""


class TypeChoice(TypedDict):
    """Instance types for a model, the cheapest per operation first."""

    parameters: float
    state_gib: float
    rows: list[TypeRowDocument]
    about: str


class ChoiceReport(TypedDict):
    """The orchestrators."""

    wanted: WantedRow
    ranking: list[RankRow]
    comparison: dict[str, dict[str, ReasonRow]]
    """Every feature, then each orchestrator's answer."""


class Choice(ChoiceReport, total=False):
    types: TypeChoice
    """With --model."""
