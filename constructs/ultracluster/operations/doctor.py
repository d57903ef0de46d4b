"""What is wrong with a deployed environment: every source asked, every answer matched with known failures.

A source that cannot be read takes nothing from the others: it becomes a row that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ultracluster.config import Environment
from ultracluster.operations import ec2_nodes, hyperpod_nodes
from ultracluster.operations.aws import AWS_ERRORS, Account, AccountError, explain, message
from ultracluster.operations.hyperpod_nodes import Cluster
from ultracluster.operations.known_failures import Diagnosis, diagnose
from ultracluster.operations.nodes import Node

TAIL = 40
"""Lines of a log's end."""
LOGS = 5
"""Logs of failing nodes that are read; nodes mostly fail of the same."""
EVENTS = 10
"""Cluster events whose details are asked; only those have the failure message."""

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a source says."""

    source: str
    where: str
    """Stack and resource, group, node or log stream."""
    text: str
    level: Level = "error"
    when: datetime | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Whether a source could be read."""

    name: str
    state: Literal["read", "nothing there", "not readable"]
    why: str = ""


@dataclass(slots=True)
class Examination:
    """Everything found."""

    sources: list[Source] = field(default_factory=list[Source])
    facts: list[Fact] = field(default_factory=list[Fact])
    logs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Tails by log stream."""

    @property
    def texts(self) -> list[str]:
        """What is matched: facts, then the logs."""
        return [
            *(f"{fact.where}: {fact.text}" for fact in self.facts if fact.level != "info"),
            *("\n".join(lines) for lines in self.logs.values()),
        ]

    @property
    def labels(self) -> list[str]:
        """Where each of `texts` is from."""
        return [
            *(f"{fact.source}: {fact.where}" for fact in self.facts if fact.level != "info"),
            *(f"log {name}" for name in self.logs),
        ]

    @property
    def diagnoses(self) -> list[Diagnosis]:
        return diagnose(self.texts)

    @property
    def healthy(self) -> bool:
        """Whether every source was read and none has anything to complain of."""
        return not any(source.state == "not readable" for source in self.sources) and all(
            fact.level == "info" for fact in self.facts
        )


def examine(
    account: Account,
    environment: Environment,
    *,
    hours: int = 72,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Callable[[str], None] = lambda step: None,
) -> Examination:
    """Ask every source of an environment.

    Args:
        hours: how far back events and logs are read.
        progress: called with the name of each source before it is asked.
    """
    found = Examination()
    since = now() - timedelta(hours=hours)
    kind = environment.orchestrator.kind
    stacks = list(environment.stack_names)
    if kind == "parallelcluster":
        stacks.append(environment.cluster_name)  # ParallelCluster makes a second stack, of its own
    for stack in stacks:
        _ask(found, f"stack {stack}", progress, lambda name=stack: _stack(account, name, since))
    if kind.startswith("hyperpod-"):
        _hyperpod(account, environment, found, since, progress)
    else:
        _instances(account, environment, found, since, progress)
    return found


def _ask(
    found: Examination, name: str, progress: Callable[[str], None], question: Callable[[], list[Fact] | None]
) -> list[Fact]:
    """Put a question; its failure is a row."""
    progress(name)
    try:
        facts = question()
    except AccountError as error:
        found.sources.append(Source(name, "not readable", str(error)))
        return []
    except AWS_ERRORS as error:
        found.sources.append(Source(name, "not readable", explain(error)))
        return []
    found.sources.append(Source(name, "nothing there" if facts is None else "read"))
    found.facts += facts or []
    return facts or []


def _stack(account: Account, name: str, since: datetime) -> list[Fact] | None:
    """Failed events of the last operation; what a later success has mended is past."""
    cloudformation = account.client("cloudformation")
    facts: list[Fact] = []
    try:
        for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=name):
            for event in page["StackEvents"]:
                status = event.get("ResourceStatus", "")
                itself = event.get("PhysicalResourceId") == event["StackId"]
                if (itself and status in _SUCCESS) or event["Timestamp"] < since:
                    return facts
                reason = event.get("ResourceStatusReason", "")
                rolled_back = itself and status.endswith("ROLLBACK_COMPLETE")
                if not (rolled_back or status.endswith("_FAILED")) or "cancelled" in reason.lower():
                    continue  # what was cancelled only follows from another failure
                where = f"{event.get('LogicalResourceId', '')} ({event.get('ResourceType', '')})"
                facts.append(Fact(f"stack {name}", where, _said(status, reason), "error", event["Timestamp"]))
    except AWS_ERRORS as error:
        if "does not exist" in message(error):
            return None
        raise
    return facts


_SUCCESS = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE")


def _hyperpod(
    account: Account,
    environment: Environment,
    found: Examination,
    since: datetime,
    progress: Callable[[str], None],
) -> None:
    name = environment.cluster_name
    state: list[Cluster] = []
    nodes: list[Node] = []

    def cluster() -> list[Fact]:
        state.append(hyperpod_nodes.read_cluster(account, name))
        return list(_cluster_facts(state[0]))

    def node_states() -> list[Fact]:
        nodes.extend(hyperpod_nodes.list_nodes(account, state[0], set(environment.groups("controller"))))
        return [
            Fact("nodes", f"{node.group} {node.name}", _said(node.status, node.message), _node_level(node))
            for node in nodes
            if node.status != "Running"
        ]

    _ask(found, f"cluster {name}", progress, cluster)
    if state:
        _ask(found, "nodes", progress, node_states)
        if state[0].continuous:
            _ask(found, "cluster events", progress, lambda: _events(account, name, since))
        else:
            found.sources.append(
                Source("cluster events", "nothing there", "only continuous provisioning has them")
            )
    groups: list[str] = [f"/aws/sagemaker/Clusters/{name}/{state[0].id}"] if state else []
    if not groups:
        _ask(
            found,
            "log groups",
            progress,
            lambda: _newest_group(account, f"/aws/sagemaker/Clusters/{name}/", groups),
        )
    if groups:
        _ask(found, "lifecycle logs", progress, lambda: _lifecycle(account, groups[0], nodes, since, found))
        _ask(found, "health monitoring", progress, lambda: _health(account, groups[0], since))


def _cluster_facts(cluster: Cluster) -> Iterable[Fact]:
    good = cluster.status == "InService"
    working = cluster.status in ("Creating", "Updating", "SystemUpdating", "Deleting")
    text = _said(cluster.status, cluster.failure)
    level: Level = "info" if good and not cluster.failure else "warning" if working else "error"
    yield Fact("cluster", cluster.name, text, level)
    for group in cluster.groups:
        if group.status in ("Failed", "Degraded"):
            yield Fact("cluster", f"group {group.name}", group.status)
        if group.current != group.target:
            short = f"has {group.current} of {group.target} nodes"
            yield Fact("cluster", f"group {group.name}", short, "warning")
        if group.update in ("Failed", "RollbackComplete"):
            yield Fact("cluster", f"group {group.name}", f"software update: {group.update}")
        if group.plan_status in ("Expired", "Failed"):
            yield Fact("cluster", f"group {group.name}", f"training plan is {group.plan_status}: not active")
        if group.image_status in ("SecurityUpdateRequired", "EndOfLife"):
            yield Fact("cluster", f"group {group.name}", f"image is {group.image_status}", "warning")


def _events(account: Account, name: str, since: datetime) -> list[Fact]:
    sagemaker = account.client("sagemaker")
    pages = sagemaker.get_paginator("list_cluster_events").paginate(
        ClusterName=name, EventTimeAfter=since, SortBy="EventTime", SortOrder="Descending",
        PaginationConfig={"PageSize": 100, "MaxItems": 300},
    )  # fmt: skip
    bad = [
        event
        for page in pages
        for event in page.get("Events", [])
        if event.get("EventLevel") in ("Warn", "Error") or _sounds_bad(event.get("Description", ""))
    ]
    facts: list[Fact] = []
    refused = ""
    for number, event in enumerate(bad):
        text = event.get("Description", "")
        if number < EVENTS and not refused:
            try:
                answer = sagemaker.describe_cluster_event(ClusterName=name, EventId=event["EventId"])
                text = _said(text, "; ".join(_failure_messages(answer.get("EventDetails", {}))))
            except AWS_ERRORS as error:
                refused = explain(error)
                facts.append(Fact("cluster events", "details", refused, "warning"))
        where = " ".join(
            part for part in (event.get("InstanceGroupName", ""), event.get("InstanceId", "")) if part
        )
        level: Level = "warning" if event.get("EventLevel") == "Warn" else "error"
        facts.append(Fact("cluster events", where or name, text, level, event["EventTime"]))
    return facts


def _failure_messages(details: dict[str, Any]) -> Iterable[str]:
    metadata: dict[str, dict[str, Any]] = details.get("EventDetails", {}).get("EventMetadata", {})
    for part in metadata.values():
        for key in ("FailureMessage", "Reason", "Advisory", "LcsExecutionState"):
            if part.get(key):
                yield str(part[key])


def _newest_group(account: Account, prefix: str, groups: list[str]) -> list[Fact] | None:
    """The cluster is gone, its logs may have stayed."""
    logs = account.client("logs")
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
    known = [group for page in pages for group in page["logGroups"]]
    if not known:
        return None
    groups.append(max(known, key=lambda group: group.get("creationTime", 0))["logGroupName"])
    return []


def _lifecycle(
    account: Account, group: str, nodes: list[Node], since: datetime, found: Examination
) -> list[Fact] | None:
    """The tails of the nodes in trouble; of the newest logs where no node is."""
    logs = account.client("logs")
    troubled = [node for node in nodes if node.id and node.status in ("Failure", "Pending", "ShuttingDown")]
    troubled.sort(key=lambda node: node.status != "Failure")
    prefixes = [f"LifecycleConfig/{node.group}/{node.id}" for node in troubled[:LOGS]]
    failed = {f"LifecycleConfig/{node.group}/{node.id}" for node in troubled if node.status == "Failure"}
    streams: list[str] = []
    facts: list[Fact] = []
    try:
        for prefix in prefixes or ["LifecycleConfig/"]:
            pages = logs.get_paginator("describe_log_streams").paginate(
                logGroupName=group, logStreamNamePrefix=prefix
            )
            known = [stream for page in pages for stream in page["logStreams"]]
            known.sort(key=lambda stream: stream.get("lastEventTimestamp", 0), reverse=True)
            if not prefixes:  # nodes that run need no log, unless the cluster itself has come to nothing
                healthy = bool(nodes)
                recent = [] if healthy else known[:LOGS]
                streams += [stream["logStreamName"] for stream in recent]
            elif known:
                streams.append(known[0]["logStreamName"])
            else:
                level: Level = "warning" if prefix in failed else "info"  # one that starts may have none yet
                facts.append(Fact("lifecycle logs", prefix, "there is no lifecycle log for it", level))
        for name in streams:
            answer = logs.get_log_events(
                logGroupName=group, logStreamName=name, limit=TAIL, startFromHead=False,
                startTime=_milliseconds(since),
            )  # fmt: skip
            lines = [event["message"].rstrip() for event in answer["events"]]
            if lines:
                found.logs[name] = lines
    except AWS_ERRORS as error:
        if "does not exist" in message(error):
            return None
        raise
    return facts


def _health(account: Account, group: str, since: datetime) -> list[Fact] | None:
    """What the health monitoring agent has detected, and deep checks that failed."""
    logs = account.client("logs")
    facts: list[Fact] = []
    asked = (
        ("SagemakerHealthMonitoringAgent", '{ $.HealthMonitoringAgentDetectionEvent = "HealthEvent" }'),
        ("DeepHealthCheckResults", "?fail ?Fail ?FAIL"),
    )
    try:
        for prefix, pattern in asked:
            pages = logs.get_paginator("filter_log_events").paginate(
                logGroupName=group, logStreamNamePrefix=prefix, filterPattern=pattern,
                startTime=_milliseconds(since), PaginationConfig={"MaxItems": 50},
            )  # fmt: skip
            facts += [_log_fact("health monitoring", event) for page in pages for event in page["events"]]
    except AWS_ERRORS as error:
        if "does not exist" in message(error):
            return None
        raise
    return facts


def _instances(
    account: Account,
    environment: Environment,
    found: Examination,
    since: datetime,
    progress: Callable[[str], None],
) -> None:
    """Nodes of the account, and the reasons that their service gives."""
    name, kind = environment.cluster_name, environment.orchestrator.kind

    def states() -> list[Fact]:
        nodes = ec2_nodes.list_nodes(account, environment)
        return [
            Fact("nodes", f"{node.group} {node.name}", _said(node.status, node.message), "warning")
            for node in nodes
            if node.status != "running"
        ]

    _ask(found, "nodes", progress, states)
    if kind == "pcs":
        _ask(found, "PCS", progress, lambda: _pcs(account, name))
    elif kind == "eks":
        _ask(found, "EKS", progress, lambda: _eks(account, name))
    elif kind == "parallelcluster":
        groups: list[str] = []
        prefix = f"/aws/parallelcluster/{name}-"
        _ask(found, "log groups", progress, lambda: _newest_group(account, prefix, groups))
        if groups:
            _ask(found, "node logs", progress, lambda: _error_lines(account, groups[0], since))


def _pcs(account: Account, name: str) -> list[Fact]:
    pcs = account.client("pcs")
    cluster = pcs.get_cluster(clusterIdentifier=name)["cluster"]
    facts = [
        Fact("PCS", f"cluster {name}", _said(entry.get("code", ""), entry.get("message", "")))
        for entry in cluster.get("errorInfo", [])
    ]
    pages = pcs.get_paginator("list_compute_node_groups").paginate(clusterIdentifier=name)
    for page in pages:
        for summary in page["computeNodeGroups"]:
            answer = pcs.get_compute_node_group(
                clusterIdentifier=name, computeNodeGroupIdentifier=summary["id"]
            )
            facts += [
                Fact(
                    "PCS", f"group {summary['name']}", _said(entry.get("code", ""), entry.get("message", ""))
                )
                for entry in answer["computeNodeGroup"].get("errorInfo", [])
            ]
    return facts


def _eks(account: Account, name: str) -> list[Fact]:
    eks = account.client("eks")
    cluster = eks.describe_cluster(name=name)["cluster"]
    facts = [
        Fact("EKS", f"cluster {name}", _said(issue.get("code", ""), issue.get("message", "")))
        for issue in cluster.get("health", {}).get("issues", [])
    ]
    for page in eks.get_paginator("list_nodegroups").paginate(clusterName=name):
        for group in page["nodegroups"]:
            described = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
            facts += [
                Fact("EKS", f"group {group}", _said(issue.get("code", ""), issue.get("message", "")))
                for issue in described.get("health", {}).get("issues", [])
            ]
    return facts


def _error_lines(account: Account, group: str, since: datetime) -> list[Fact]:
    logs = account.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=group, filterPattern="?ERROR ?CRITICAL ?FATAL", startTime=_milliseconds(since),
        PaginationConfig={"MaxItems": 50},
    )  # fmt: skip
    return [_log_fact("node logs", event) for page in pages for event in page["events"]]


def _log_fact(source: str, event: dict[str, Any]) -> Fact:
    when = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return Fact(source, event.get("logStreamName", ""), event["message"].strip(), "error", when)


def _node_level(node: Node) -> Level:
    return "error" if node.status in ("Failure", "NotFound") else "warning"


def _sounds_bad(text: str) -> bool:
    return any(word in text.lower() for word in ("fail", "error", "unhealthy", "insufficient"))


def _said(head: str, tail: str) -> str:
    return ": ".join(part for part in (head, tail) if part)


def _milliseconds(when: datetime) -> int:
    return int(when.timestamp() * 1000)
