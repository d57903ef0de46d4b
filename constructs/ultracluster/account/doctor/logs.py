"""What the nodes' logs in CloudWatch say of an environment's trouble."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, message
from ultracluster.account.doctor.examination import Fact, Level
from ultracluster.account.doctor.known_failures import diagnose
from ultracluster.account.doctor.node_faults import node_fault_diagnoses
from ultracluster.account.nodes.node import Node

TAIL = 40
"""Lines of a log's end."""
LOGS = 5
"""Logs of failing nodes that are read; nodes mostly fail of the same."""


def newest_group(account: Account, prefix: str, groups: list[str]) -> list[Fact] | None:
    """Add the newest log group of a prefix to `groups`: the cluster may be gone, and its logs have stayed."""
    logs = account.client("logs")
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
    # what follows is an id or a time: `prod-` is also how the groups of `prod-eu` begin
    own = re.compile(re.escape(prefix) + "[0-9a-z]+")
    named = [group for page in pages for group in page["logGroups"] if group.get("logGroupName")]
    found = [group for group in named if own.fullmatch(group["logGroupName"])]
    if not found:
        return None
    groups.append(max(found, key=lambda group: group.get("creationTime", 0))["logGroupName"])
    return []


def lifecycle_tails(
    account: Account,
    group: str,
    nodes: list[Node],
    since: datetime,
    tails: dict[str, list[str]],
    wanted: Mapping[str, str] | None = None,
) -> list[Fact] | None:
    """Add the last lines of the nodes in trouble to `tails`; of the newest logs where no node is.

    Args:
        wanted: instances that are in trouble whatever their state: group by id.
    """
    logs = account.client("logs")
    bad = ("Failure", "Pending", "ShuttingDown")
    first = [f"LifecycleConfig/{group_name}/{node}" for node, group_name in (wanted or {}).items()]
    troubled = [node for node in nodes if node.id and node.status in bad]
    troubled.sort(key=lambda node: node.status != "Failure")
    prefixes = [f"LifecycleConfig/{node.group}/{node.id}" for node in troubled[:LOGS]]
    prefixes = list(dict.fromkeys([*first, *prefixes]))
    failed = {f"LifecycleConfig/{node.group}/{node.id}" for node in troubled if node.status == "Failure"}
    streams: list[str] = []
    facts: list[Fact] = []
    try:
        for prefix in prefixes or ["LifecycleConfig/"]:
            pages = logs.get_paginator("describe_log_streams").paginate(
                logGroupName=group, logStreamNamePrefix=prefix
            )
            newest = [stream for page in pages for stream in page["logStreams"]]
            newest.sort(key=lambda stream: stream.get("lastEventTimestamp", 0), reverse=True)
            if not prefixes:  # nodes that run need no log, unless the cluster itself has come to nothing
                healthy = bool(nodes)
                recent = [] if healthy else newest[:LOGS]
                streams += [stream["logStreamName"] for stream in recent]
            elif newest:
                streams.append(newest[0]["logStreamName"])
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
                tails[name] = lines
    except AWS_ERRORS as error:
        if "does not exist" in message(error):
            return None
        raise
    return facts


def health_facts(account: Account, group: str, since: datetime) -> list[Fact] | None:
    """Return what the health monitoring agent has detected, and deep checks that failed."""
    logs = account.client("logs")
    facts: list[Fact] = []
    patterns = (
        ("SagemakerHealthMonitoringAgent", '{ $.HealthMonitoringAgentDetectionEvent = "HealthEvent" }'),
        ("DeepHealthCheckResults", "?fail ?Fail ?FAIL"),
    )
    try:
        for prefix, pattern in patterns:
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


def error_lines(account: Account, group: str, since: datetime) -> list[Fact]:
    """Lines of a log group that speak of an error: those of a program that calls them so, and of those that
    have its name in small letters, as kernels and shells write it, the ones that are known."""
    logs = account.client("logs")
    facts: list[Fact] = []
    for pattern, most, any_text in (
        ("?ERROR ?CRITICAL ?FATAL ?FAILED ?DEGRADED", 50, True),
        (_SMALL, 500, False),
    ):
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=group, filterPattern=pattern, startTime=_milliseconds(since),
            PaginationConfig={"MaxItems": most},
        )  # fmt: skip
        found = [_log_fact("node logs", event) for page in pages for event in page["events"]]
        facts += [fact for fact in found if fact not in facts and (any_text or _known(fact.text))]
    return facts


_SMALL = "?error ?Error ?failed ?Failed ?fatal ?NVRM ?LustreError"


def _known(text: str) -> bool:
    return bool(diagnose([text]) or node_fault_diagnoses([text]))


def _log_fact(source: str, event: dict[str, Any]) -> Fact:
    when = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    text = event["message"].strip()
    level: Level = "warning" if "DEGRADED " in text else "error"
    return Fact(source, event.get("logStreamName", ""), text, level, when)


def _milliseconds(when: datetime) -> int:
    return int(when.timestamp() * 1000)
