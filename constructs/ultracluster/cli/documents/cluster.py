"""Documents of a deployed cluster: its nodes, what was asked of them, what is wrong, capacity on offer."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ultracluster.acceptance.report import Verdict


class NodeRow(TypedDict):
    """One node, as its service describes it."""

    id: str
    """Instance id; empty while HyperPod still waits for an instance."""
    group: str
    status: str
    """In the words of the service, which may be newer than this release."""
    instance_type: str
    logical_id: str
    """HyperPod's name of the place that the instance fills."""
    dns: str
    """Private host name."""
    message: str
    launched: str | None
    """ISO 8601."""
    image: str
    """Release of HyperPod's image, or AMI id."""
    image_status: str
    controller: bool
    reserved: bool
    """Whether it fills a place in a Capacity Block or a capacity reservation."""
    patched: str | None
    """Last software update through HyperPod, ISO 8601."""


class NodeList(TypedDict):
    nodes: list[NodeRow]


class PlacedNode(TypedDict):
    """One node of a job."""

    name: str
    """As Slurm calls it, or its instance id."""
    path: list[str]
    """Ids of its switches, from the widest to the leaf; empty where nobody tells."""
    ultraserver: str | None


class LayerRow(TypedDict):
    """One layer of the network below a job."""

    layer: str
    """`layer-1` (widest) to the one of the leaves; `ultraserver`."""
    switches: dict[str, int]
    """Nodes of the job by id."""
    best: list[int]
    """Nodes by switch on as few switches as the cluster's nodes allow, busy or not."""


class PlacementDocument(TypedDict):
    job: str | None
    nodes: list[PlacedNode]
    unknown: list[str]
    """Nodes of the job of which nobody says where they are."""
    layers: list[LayerRow]
    good: bool
    """Whether the job spans no more switches than it must."""
    topology: dict[str, str] | None
    """What Slurm knows of it: `kind` (tree, block, flat, unknown), `writer`, `why`; null without Slurm."""


class NodeDocument(TypedDict):
    node: dict[str, Any]
    """What AWS answers, in AWS's own words: these keys are not part of the contract."""


class OutcomeRow(TypedDict):
    """What came of a request for one node or group."""

    node: str
    """Id of the node; the group, where the request is for one."""
    result: Literal["accepted", "already", "would", "refused", "failed", "unknown"]
    """`would`: a dry run; `refused`: before AWS was asked; `failed`: in AWS."""
    why: str
    group: str


class JobRow(TypedDict):
    """A job that ran on nodes which somebody wished to take."""

    id: str
    """Slurm's number; on Kubernetes `namespace/name` of what the pods belong to."""
    user: str
    """On Kubernetes the namespace."""
    name: str
    nodes: list[str]


class Outcomes(TypedDict):
    outcomes: list[OutcomeRow]


class OutcomeList(Outcomes, total=False):
    jobs: list[JobRow]
    """Where nodes were to be taken: what ran there when it was asked."""
    jobs_unknown: str | None
    """Why jobs could not be asked; null where `jobs` is all."""


class Session(TypedDict):
    target: str
    """Of Session Manager."""
    document: str
    command: list[str]
    """The words of the AWS CLI's command."""


class Cause(TypedDict):
    """A known failure that fits."""

    id: str
    cause: str
    certain: bool
    """True where a source states the cause; else it is possible, beside another one of the same text."""
    differs: str
    """The difference from what looks alike."""
    do: str
    run: str
    """The next command."""
    page: str
    """Of docs/, where more stands."""
    sources: list[str]
    """Where the failure is known from."""
    evidence: list[str]
    """Where it was seen."""


class BenignFault(TypedDict):
    """A fault that asks nothing of a node, such as an application's error."""

    id: str
    meaning: str
    times: int
    """Lines that have it."""


class FactRow(TypedDict):
    """One thing that a source says."""

    source: str
    where: str
    """Stack and resource, group, node or log stream."""
    text: str
    level: Literal["error", "warning", "info"]
    when: str | None
    """ISO 8601."""


class SourceRow(TypedDict):
    """Whether a source could be read."""

    name: str
    state: Literal["read", "nothing there", "not readable"]
    why: str


class Examined(TypedDict):
    """What `doctor` found."""

    healthy: bool
    deployed: bool | None
    """Whether any of its stacks is there; null: that could not be read."""
    causes: list[Cause]
    """The most likely first."""
    benign: list[BenignFault]
    facts: list[FactRow]
    logs: dict[str, list[str]]
    """Last lines by log stream."""
    sources: list[SourceRow]


class WaitedNode(TypedDict):
    """A node at the end of a wait."""

    id: str
    state: str
    why: str | None
    degraded: list[str]
    """What it lacks."""
    gone: bool


class WaitedGroup(TypedDict):
    """A group at the end of a wait."""

    name: str
    wanted: int
    ready: int
    note: str | None
    failed: str | None
    nodes: list[WaitedNode]


class Check(TypedDict):
    """One check of an acceptance run."""

    id: str
    outcome: str
    message: str
    run: str
    place: str


class Half(TypedDict):
    """One measurement of nccl-tests."""

    time_us: float | None
    algbw: float | None
    """GB/s."""
    busbw: float | None
    """GB/s."""
    wrong: int | None


class CurveRow(TypedDict):
    """One message size."""

    size: int
    """Bytes."""
    out_of_place: Half | None
    in_place: Half | None


class CurveDocument(TypedDict):
    """One run of nccl-tests."""

    run: str
    nodes: list[str]
    ranks: int
    average_busbw: float | None
    rows: list[CurveRow]


class PairRow(TypedDict):
    """A run over two nodes."""

    nodes: list[str]
    size: int
    busbw: float
    distance: int | None
    """Layers of switches between the nodes; null: not known."""


class SlowRow(TypedDict):
    """A slow node, or two nodes with a slow path between them."""

    nodes: list[str]
    busbw: float
    """GB/s of its fastest pair."""
    others_busbw: float
    """GB/s: the median of the others, without it."""
    outcome: Literal["fail", "warn"]


class UnjudgedNode(TypedDict):
    node: str
    """Empty: no node can be judged."""
    reason: str


class PairLimits(TypedDict):
    """Shares of the others' median below which a node is slow."""

    warn: float
    fail: float


class PairDocument(TypedDict):
    """Runs over pairs of nodes."""

    median_busbw: float | None
    """GB/s, of the nodes' fastest pairs; 0 where there are too few."""
    limits: PairLimits
    slow_nodes: list[str]
    slow: list[SlowRow]
    slow_paths: list[SlowRow]
    """Between nodes that are fast with others."""
    not_judged: list[UnjudgedNode]
    pairs: list[PairRow]


class Acceptance(TypedDict):
    """The verdict on logs of nccl-tests."""

    verdict: Verdict
    reason: str
    instance_type: str
    nodes: list[str]
    ranks: int
    nics: list[int]
    """EFA interfaces per process."""
    versions: dict[str, str]
    checks: list[Check]
    curves: list[CurveDocument]
    pairs: PairDocument | None


class Collective(TypedDict):
    """The collective over two nodes of a group."""

    group: str
    verdict: str
    reason: str
    command: str | None
    """How to run it by hand."""
    nodes: list[str]
    logs: str | None
    report: Acceptance | None


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
    groups: list[WaitedGroup]
    not_judged: list[str]
    """What could not be judged from here."""
    collectives: list[Collective]
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
