"""Documents of a deployed cluster: its nodes, what was asked of them, what is wrong, capacity on offer."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ultracluster.account.doctor.bundle import Entry
from ultracluster.account.doctor.examination import Fact, Source
from ultracluster.account.nodes.node import Node, Outcome
from ultracluster.account.status.overview import Listed
from ultracluster.account.status.rows import (
    CostState,
    Difference,
    GroupState,
    JobCounts,
    Lease,
    NodeState,
    ReleaseState,
    StackDrift,
    StackState,
    StorageState,
)
from ultracluster.account.wait.look import GroupSeen
from ultracluster.account.wait.smoke import Smoke
from ultracluster.cli.json_rows import Cause, Harmless
from ultracluster.jobs.on_nodes.running_job import Job
from ultracluster.jobs.placement.seats import Seat
from ultracluster.jobs.placement.spread import Layer


class NodeList(TypedDict):
    nodes: list[Node]


class PlacementDocument(TypedDict):
    job: str | None
    nodes: list[Seat]
    unknown: list[str]
    """Nodes of the job of which nobody says where they are."""
    layers: list[Layer]
    good: bool
    """Whether the job spans no more switches than it must."""
    topology: dict[str, str] | None
    """What Slurm knows of it: `kind` (tree, block, flat, unknown), `writer`, `why`; null without Slurm."""


class NodeDocument(TypedDict):
    node: dict[str, Any]
    """What AWS answers, in AWS's own words: these keys are not part of the contract."""


class Outcomes(TypedDict):
    outcomes: list[Outcome]


class OutcomeList(Outcomes, total=False):
    jobs: list[Job]
    """Where nodes were to be taken: what ran there when it was asked."""
    jobs_unknown: str | None
    """Why jobs could not be asked; null where `jobs` is all."""


class Examined(TypedDict):
    """What `doctor` found."""

    healthy: bool
    deployed: bool | None
    """Whether any of its stacks is there; null: that could not be read."""
    causes: list[Cause]
    """The most likely first."""
    benign: list[Harmless]
    facts: list[Fact]
    logs: dict[str, list[str]]
    """Last lines by log stream."""
    sources: list[Source]


class EnvironmentList(TypedDict):
    environments: list[Listed]
    """Those of the folder, then those that only the account has."""


class StatusDocument(TypedDict):
    """State of a deployed environment; a source that did not answer has no rows, and is in `sources`."""

    environment: str
    region: str
    account: str
    orchestrator: str
    asked: str
    """Time of the look."""
    deployed: bool | None
    """True if any of its stacks is there; null: that could not be read."""
    quiet: bool
    """Every source answered in full, nothing is wrong, and nothing was changed by hand. Whether the file is
    what is deployed is not asked: `diff --deployed`."""
    stacks: list[StackState]
    drift: list[StackDrift]
    differences: list[Difference]
    """Changed by hand, or by another program."""
    groups: list[GroupState]
    nodes: list[NodeState]
    releases: list[ReleaseState]
    jobs: JobCounts | None
    storage: list[StorageState]
    capacity: list[Lease]
    cost: list[CostState]
    causes: list[Cause]
    """Known failures that fit, the most likely first."""
    facts: list[Fact]
    """Faults and alerts, and a few rows of information."""
    sources: list[Source]


class BundleDocument(TypedDict):
    """An archive for AWS Support."""

    file: str
    bytes: int
    """Size of the archive."""
    sha256: str
    """Digest of the archive."""
    entries: list[Entry]
    sources: list[Source]
    removed: dict[str, int]
    """Number of secrets that were removed, by kind."""
    pseudonyms: dict[str, str]
    """Names of people by pseudonym. They are not in the archive: keep them here."""


class Waited(TypedDict):
    environment: str
    outcome: Literal["ready", "failed", "late"]
    exit_code: int
    reason: str | None
    group: str | None
    """That failed."""
    node: str | None
    """That failed."""
    seconds: int
    groups: list[GroupSeen]
    not_judged: list[str]
    """What could not be judged from here."""
    collectives: list[Smoke]
    doctor: Examined | None


class Wished(TypedDict):
    """What was searched for."""

    kind: str
    """`capacity-block` or `training-plan`."""
    group: str | None
    instance_type: str
    count: int


class Segment(TypedDict):
    """A part of an offer without a break."""

    zone: str
    start: str
    end: str | None
    count: int


class OfferRow(Wished):
    """What AWS offers."""

    id: str
    zones: list[str]
    fits_zone: bool | None
    """Null: the search was not for an environment's zone."""
    start: str
    end: str | None
    hours: float
    segments: list[Segment]
    upfront_fee: float
    per_instance_hour: float
    currency: str


class SearchFailure(Wished):
    """A search that failed."""

    why: str


class EverywhereOffer(OfferRow, total=False):
    """What AWS offers, with what a search of every Region says of it."""

    region: str
    wanted: int
    """Instances that were wanted."""
    times: int
    """So many such offers hold them."""
    accelerators: int
    """Of one offer."""
    fee_in_all: float
    """Of `times` offers."""
    per_accelerator_hour: float | None
    short: bool
    """It has fewer instances, or ends earlier, than what was asked for."""
    needs: list[str]
    """What it would need besides."""


class HeldCapacity(Wished):
    """Capacity that the account holds, and of which some is unused."""

    region: str
    id: str
    """Of the reservation or block; ARN of the plan."""
    zones: list[str]
    unused: int
    start: str | None
    """Null: it has begun."""
    end: str | None
    """Null: it has no end."""
    short: bool
    needs: list[str]


class UnaskedRegion(TypedDict):
    """What could not be asked."""

    region: str
    what: str
    """`capacity-block`, `training-plan`, `reservation` or a part of these; empty: nothing of the Region."""
    why: str


class CapacitySearch(TypedDict):
    offers: list[EverywhereOffer]
    """The cheapest first: by the instance-hour in one Region, by the sum in all of them."""
    failures: list[SearchFailure]
    held: list[HeldCapacity]
    """What the account holds already; empty without `--everywhere`."""
    regions: list[str]
    """That answered; empty without `--everywhere`."""
    unasked: list[UnaskedRegion]
    """Empty without `--everywhere`."""


class Purchase(TypedDict):
    """Capacity that was bought."""

    environment: str
    group: str
    kind: str
    """`capacity-block` or `training-plan`."""
    id: str
    """Of the block's reservation, or the ARN of the plan."""
    offer: str
    zone_id: str
    instance_type: str
    count: int
    start: str
    end: str | None
    upfront_fee: float
    currency: str
    file: str
    """Where the id was written."""
