"""Rows of `status`: one for each thing, with the call that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

Drifted = Literal["in sync", "differs", "not checked", "checking"]


@dataclass(frozen=True, slots=True)
class StackState:
    """One stack that is deployed."""

    name: str
    status: str
    since: datetime | None
    """Time of its last change."""
    source: str = "CloudFormation DescribeStacks"


@dataclass(frozen=True, slots=True)
class StackDrift:
    """Result of CloudFormation's comparison of a stack with its template."""

    stack: str
    drift: Drifted
    """`in sync` counts what CloudFormation can compare: properties that the template sets, of types that
    support it."""
    checked: datetime | None
    why: str = ""
    """Why it is not a whole answer; empty where it is."""
    source: str = "CloudFormation DetectStackDrift"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as the template or the file has it: changed by hand, or by another program."""

    kind: Literal["property", "resource", "count", "group", "rule"]
    where: str
    expected: str
    actual: str
    source: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """Nodes of one group."""

    name: str
    wanted: int
    """The `count` of the file."""
    asked: int | None
    """Nodes that the service is asked for; null where it does not say."""
    running: int
    nodes: int
    """Nodes that exist, in whatever state."""
    images: dict[str, int]
    """Releases of HyperPod's image, or AMIs, and how many nodes run each."""
    note: str
    source: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node."""

    id: str
    group: str
    status: str
    image: str
    """Release of HyperPod's image, or AMI."""
    image_status: str
    source: str


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """A software release, and nodes that were brought to it."""

    release: str
    state: str
    """Result on the nodes: `ready`, `degraded`; empty where the row is only what the file asks for."""
    nodes: int | None
    """Null: not known."""
    source: str


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Jobs of everybody, as far as whoever asks may see them."""

    running: int
    waiting: int
    unknown: int
    source: str


@dataclass(frozen=True, slots=True)
class StorageState:
    """One file system."""

    id: str
    type: str
    """`LUSTRE` or `OPENZFS`."""
    state: str
    used_bytes: int | None
    size_bytes: int | None
    when: datetime | None
    """Time of the figures; null: CloudWatch has none."""
    source: str = "FSx DescribeFileSystems, CloudWatch AWS/FSx"

    @property
    def fill(self) -> float | None:
        """Part that is used, 0 to 1."""
        if self.used_bytes is None or not self.size_bytes:
            return None
        return self.used_bytes / self.size_bytes


@dataclass(frozen=True, slots=True)
class Lease:
    """A reservation, Capacity Block or training plan."""

    name: str
    level: Literal["red", "yellow", "green", "unknown"]
    """As `preflight` judges it."""
    state: str
    """With its times."""
    do: str
    source: str


@dataclass(frozen=True, slots=True)
class CostState:
    """Cost of the environment."""

    usd: float | None
    """Null: not known."""
    per: Literal["hour", "month to date"]
    since: date | None
    note: str
    source: str


AnyRow = (
    StackState
    | StackDrift
    | Difference
    | GroupState
    | NodeState
    | ReleaseState
    | JobCounts
    | StorageState
    | Lease
    | CostState
)
