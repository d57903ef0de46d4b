"""State of a deployed environment: every source asked side by side, each row with the call behind it.

What `doctor` asks is asked here, too, so that open faults and alerts are the same. A source that is slow
is listed as such, and the others still answer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from ultracluster.account.aws import Account
from ultracluster.account.doctor import Examination, Fact, collected, put_questions, stacks_of
from ultracluster.account.doctor.examination import Asked, Inquiry
from ultracluster.account.preflight import capacity
from ultracluster.account.preflight.rows import Situation
from ultracluster.account.spending import spending
from ultracluster.account.status.drift import foreign_rules, stack_drift, stack_state
from ultracluster.account.status.groups import group_rows
from ultracluster.account.status.rows import (
    AnyRow,
    CostState,
    Difference,
    GroupState,
    JobCounts,
    Lease,
    StackDrift,
    StackState,
    StorageState,
)
from ultracluster.config.environment import ENVIRONMENT_TAG
from ultracluster.model import Cluster
from ultracluster.plan.cost import estimate
from ultracluster.plan.price_file import prices_of, read_prices

Kind = TypeVar("Kind")

BUDGET = 10.0
"""Seconds for all sources: who looks at a screen waits no longer."""
SPARE = 1.5
"""Seconds before the end in which a detection of drift is left, so that its last answer can still be read."""
HOURS = 24
"""Age of the oldest faults that are looked for."""
ALARMS = "CloudWatch alarms"


@dataclass(slots=True)
class Status:
    """Answers that came in time."""

    asked: datetime
    rows: list[AnyRow] = field(default_factory=list[AnyRow])
    found: Examination = field(default_factory=Examination)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The rows of one kind."""
        return [row for row in self.rows if isinstance(row, kind)]

    @property
    def quiet(self) -> bool:
        """True if every source answered in full, and nothing is wrong or was changed by hand."""
        compared = not any(drift.why for drift in self.of(StackDrift))
        full = all(group.running >= (group.asked or 0) for group in self.of(GroupState))
        ends = all(lease.level == "green" for lease in self.of(Lease))
        return self.found.healthy and compared and full and ends and not self.of(Difference)


class _Questions:
    """Questions whose answers are rows, put to an inquiry."""

    def __init__(self, inquiry: Inquiry) -> None:
        self.inquiry = inquiry
        self.rows: dict[str, list[AnyRow]] = {}

    def ask(
        self, name: str, question: Callable[[], Iterable[AnyRow | Fact] | None], *needs: Asked, **more: Any
    ) -> Asked:
        def put() -> list[Fact] | None:
            answer = question()
            if answer is None:
                return None
            both = list(answer)
            self.rows[name] = [one for one in both if not isinstance(one, Fact)]
            return [one for one in both if isinstance(one, Fact)]

        return self.inquiry.ask(name, put, needs=needs, **more)


def status(
    account: Account,
    cluster: Cluster,
    *,
    jobs: Callable[[], Iterable[str]] | None = None,
    detect: bool = True,
    spent: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    budget: float = BUDGET,
    progress: Callable[[str], None] = lambda step: None,
) -> Status:
    """Ask every source of an environment.

    Args:
        jobs: asks the scheduler for the states of everybody's jobs.
        detect: start detections of drift; otherwise the answers of the last ones are read.
        spent: ask Cost Explorer, which AWS bills.
        clock: seconds of a clock that never goes back.
        pause: takes seconds; exchanged in tests.
        budget: seconds for all sources; one that has not answered by then is listed as such.
        progress: called with the name of each source that is waited for.
    """
    asked, end = now(), clock() + budget - SPARE
    inquiry = Inquiry(progress, budget, clock)
    questions = _Questions(inquiry)
    stacks = stacks_of(cluster)
    for name in stacks:
        first = questions.ask(f"CloudFormation {name}", lambda name=name: _maybe(stack_state(account, name)))
        questions.ask(
            f"drift of {name}",
            lambda name=name: stack_drift(
                account, name, detect=detect, over=lambda: clock() >= end, pause=pause
            ),
            first,
            when=lambda name=name: bool(questions.rows.get(f"CloudFormation {name}")),
        )
    questions.ask("security group rules", lambda: foreign_rules(account, stacks))
    questions.ask("groups", lambda: group_rows(account, cluster))
    questions.ask("storage", lambda: _storage(account, cluster, asked))
    questions.ask(ALARMS, lambda: _alarms(account, cluster))
    questions.ask("list prices", lambda: [_per_hour(cluster, asked)])
    if jobs:
        questions.ask("jobs", lambda: [_jobs(jobs())])
    if spent:
        questions.ask("Cost Explorer", lambda: [_month(account, cluster, asked)])
    for one in capacity.questions(Situation(account, cluster, now)):
        questions.ask(f"capacity {one.what}", lambda one=one: _leases(one.what, one.answer()))
    put_questions(account, cluster, inquiry, asked - timedelta(hours=HOURS), {})
    found = collected(inquiry, cluster)
    read = {source.name for source in found.sources if source.state == "read"}
    rows = [row for name, answer in questions.rows.items() if name in read for row in answer]
    return Status(asked, rows, found)


def _maybe(row: StackState | None) -> list[StackState] | None:
    return [row] if row else None


def _storage(account: Account, cluster: Cluster, now: datetime) -> list[StorageState] | None:
    """File systems with the environment's tag, and those that its file names."""
    environment = cluster.environment
    named = [one.settings for one in environment.lustres.values()]
    ids = {str(getattr(one, "id", "")) for one in (*named, environment.storage.openzfs)} - {""}
    pages = account.client("fsx").get_paginator("describe_file_systems").paginate()
    own = {"Key": ENVIRONMENT_TAG, "Value": cluster.name}
    found: list[dict[str, Any]] = [
        one
        for page in pages
        for one in page["FileSystems"]
        if one["FileSystemId"] in ids or own in one.get("Tags", [])
    ]
    return [_fill(account, one, now) for one in found] or None


def _fill(account: Account, found: dict[str, Any], now: datetime) -> StorageState:
    """Fill of a file system by CloudWatch, which has no figure of one that nobody has mounted yet.

    Lustre: PhysicalDiskUsage, whose sum is that of all storage targets. OpenZFS: UsedStorageCapacity, an
    average (user guides of FSx for Lustre and for OpenZFS, "metrics and dimensions", read 2026-11-28).
    """
    lustre = found.get("FileSystemType") == "LUSTRE"
    size = int(found.get("StorageCapacity") or 0) * 2**30
    metric, statistic = ("PhysicalDiskUsage", "Sum") if lustre else ("UsedStorageCapacity", "Average")
    answer = account.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/FSx",
        MetricName=metric,
        Dimensions=[{"Name": "FileSystemId", "Value": found["FileSystemId"]}],
        StartTime=now - timedelta(minutes=30),
        EndTime=now,
        Period=60,
        Statistics=[statistic],
    )
    points = sorted(answer.get("Datapoints", []), key=lambda point: point["Timestamp"])
    used = int(points[-1][statistic]) if points else None
    when = points[-1]["Timestamp"] if points else None
    kind, state = str(found.get("FileSystemType", "")), str(found.get("Lifecycle", ""))
    return StorageState(found["FileSystemId"], kind, state, used, size or None, when)


def _alarms(account: Account, cluster: Cluster) -> list[Fact]:
    """CloudWatch alarms of the environment that are in alarm."""
    prefix = f"{cluster.environment.governance.stack_prefix or ''}{cluster.name}-"
    pages = account.client("cloudwatch").get_paginator("describe_alarms")
    mine = f"Ultracluster {cluster.name}: "
    return [
        Fact(ALARMS, one["AlarmName"], str(one["AlarmDescription"]).removeprefix(mine), "warning")
        for page in pages.paginate(AlarmNamePrefix=prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm"])
        for one in page["MetricAlarms"]
        if str(one.get("AlarmDescription", "")).startswith(mine)
    ]


def _per_hour(cluster: Cluster, now: datetime) -> CostState:
    given = read_prices(prices_of(cluster.environment), today=now.date())
    found = estimate(cluster, today=now.date(), own=given.figures, faults=given.faults)
    note = "all nodes of the file at all times"
    if not found.complete:
        note += "; some prices are old, derived or missing: see `ultracluster cost`"
    return CostState(found.per_hour, "hour", None, note, "list prices, `ultracluster cost`")


def _month(account: Account, cluster: Cluster, now: datetime) -> CostState:
    first = now.date().replace(day=1)
    spent = spending(account, cluster.name, first, now.date() + timedelta(days=1))
    note = f"up to 24 hours late; AWS bills this question with {spent.fee:.2f} USD"
    if not spent.rows:
        note = f"nothing is not zero: the tag {ENVIRONMENT_TAG} may not be activated; {note}"
    usd = spent.usd if spent.rows else None
    return CostState(usd, "month to date", first, note, "Cost Explorer GetCostAndUsage")


def _jobs(states: Iterable[str]) -> JobCounts:
    counts = Counter(states)
    return JobCounts(counts["running"], counts["waiting"], counts["unknown"], "the scheduler")


def _leases(name: str, rows: Sequence[Any]) -> Iterator[Lease]:
    """The state of capacity with its end, and what `preflight` finds wrong with it."""
    for row in rows:
        if row.what.endswith(" state") or row.level in ("red", "unknown"):
            reserved = name.startswith(("cr-", "open reservations", "resource group"))
            source = "EC2 DescribeCapacityReservations" if reserved else "SageMaker DescribeTrainingPlan"
            yield Lease(row.what.removesuffix(" state"), row.level, row.found, row.do, source)


__all__ = ["CostState", "Status", "status"]
