"""What is wrong with a HyperPod cluster: its state, its nodes, its events and its logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain
from ultracluster.account.doctor.examination import Fact, Inquiry, Level, Source, said
from ultracluster.account.doctor.logs import health_facts, lifecycle_tails, newest_group
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes.hyperpod import LiveCluster
from ultracluster.account.nodes.node import Node
from ultracluster.model import Cluster

EVENTS = 10
"""Cluster events whose details are asked; only those have the failure message."""


def examine_hyperpod(
    account: Account,
    wanted: Cluster,
    inquiry: Inquiry,
    since: datetime,
    troubled: Mapping[str, str] | None = None,
) -> None:
    """Ask the cluster, then its nodes, its events and its logs.

    Args:
        troubled: instances whose logs are read whatever their state, also when they are gone: group by id.
    """
    name = wanted.cluster_name
    state: list[LiveCluster] = []
    nodes: list[Node] = []
    groups: list[str] = []
    tails: dict[str, list[str]] = {}

    def cluster() -> list[Fact]:
        state.append(hyperpod_nodes.read_cluster(account, name))
        groups.append(f"{wanted.log_group}{state[0].id}")
        return [*_cluster_facts(state[0]), *_set_to_nothing(state[0], wanted)]

    def node_states() -> list[Fact]:
        nodes.extend(hyperpod_nodes.list_nodes(account, state[0], set(wanted.with_role("controller"))))
        return [
            Fact("nodes", f"{node.group} {node.name}", said(node.status, node.message), _node_level(node))
            for node in nodes
            if node.status != "Running"
        ]

    def events() -> list[Fact] | Source:
        if not state[0].continuous:
            return Source("cluster events", "nothing there", "only continuous provisioning has them")
        return _events(account, name, since)

    itself = inquiry.ask(f"cluster {name}", cluster)
    listed = inquiry.ask("nodes", node_states, needs=[itself], when=lambda: bool(state))
    inquiry.ask("cluster events", events, needs=[itself], when=lambda: bool(state))
    # the cluster may be gone, and its logs have stayed
    searched = inquiry.ask(
        "log groups",
        lambda: newest_group(account, wanted.log_group, groups),
        needs=[itself],
        when=lambda: not state,
    )
    inquiry.ask(
        "lifecycle logs",
        lambda: lifecycle_tails(account, groups[0], nodes, since, tails, troubled or {}),
        needs=[listed, searched],
        when=lambda: bool(groups),
        logs=tails,
    )
    inquiry.ask(
        "health monitoring",
        lambda: health_facts(account, groups[0], since),
        needs=[searched],
        when=lambda: bool(groups),
    )


def _cluster_facts(cluster: LiveCluster) -> Iterable[Fact]:
    good = cluster.status == "InService"
    working = cluster.status in ("Creating", "Updating", "SystemUpdating", "Deleting")
    text = said(cluster.status, cluster.failure)
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


def _set_to_nothing(cluster: LiveCluster, wanted: Cluster) -> Iterable[Fact]:
    """Groups that the file fills and the cluster has none of: only an operator brings them back."""
    for name, group in wanted.in_service.items():
        live, count = cluster.group(name), group.settings.count
        if live and count and live.target == 0:
            yield Fact(
                "cluster",
                f"group {name}",
                f"is set to 0 nodes, the environment file says {count}: HyperPod does that where "
                "min_count was not reached within three hours; fix the cause, then run `ultracluster "
                f"nodes add {wanted.name} --restore --group {name}`",
            )


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
                text = said(text, "; ".join(_failure_messages(answer.get("EventDetails", {}))))
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


def _node_level(node: Node) -> Level:
    return "error" if node.status in ("Failure", "NotFound") else "warning"


def _sounds_bad(text: str) -> bool:
    return any(word in text.lower() for word in ("fail", "error", "unhealthy", "insufficient"))
