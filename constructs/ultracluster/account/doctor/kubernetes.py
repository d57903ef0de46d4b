"""Nodes as Kubernetes shows them: conditions, labels and annotations of their agents, and events.

It is only read: the agents there write, and a second writer would contradict them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ultracluster.account.aws import Account
from ultracluster.account.doctor.examination import Fact, Inquiry, Level, said
from ultracluster.account.doctor.known_failures import diagnose
from ultracluster.account.doctor.node_faults import node_fault_diagnoses
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.model import Cluster

NODES, EVENTS = "Kubernetes nodes", "Kubernetes events"
MOST_EVENTS = 50
"""Distinct events that are kept."""
_HYPERPOD = "sagemaker.amazonaws.com/"
_HEALTH = f"{_HYPERPOD}node-health-status"
_FAULTS = tuple(
    f"{_HYPERPOD}{name}" for name in ("fault-types", "fault-type", "fault-reasons", "fault-reason")
)
"""Two pages of the guide write them in two ways (SageMaker Developer Guide, 2026-10)."""
_DETAILS = f"{_HYPERPOD}fault-details"
_ALWAYS = ("InvalidDiskCapacity",)
"""Warnings of a kubelet that has just begun (kubernetes/kubernetes, pkg/kubelet/images)."""
_LONGEST = 2000
"""Characters of an annotation that are read."""


def examine_kubernetes(account: Account, cluster: Cluster, inquiry: Inquiry, since: datetime) -> None:
    """Ask for the nodes, and for warnings about them and about pods."""

    def nodes() -> list[Fact]:
        return [fact for node in _api().nodes() for fact in node_facts(node)]

    def events() -> list[Fact]:
        warnings = _api().items(f"/api/v1/events?fieldSelector={quote('type=Warning')}")
        return event_facts(warnings, since)

    def _api() -> KubernetesApi:
        return KubernetesApi(account, cluster.cluster_name)

    inquiry.ask(NODES, nodes)
    inquiry.ask(EVENTS, events)


def node_facts(node: dict[str, Any]) -> list[Fact]:
    """Facts of one node that are not as they should be, as the API has it."""
    metadata: dict[str, Any] = node.get("metadata") or {}
    name = str(metadata.get("name", ""))
    status: dict[str, Any] = node.get("status") or {}
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    facts = [fact for condition in conditions if (fact := _condition(name, condition))]
    facts += [Fact(NODES, name, text, level) for text, level in _labels(metadata)]
    spec: dict[str, Any] = node.get("spec") or {}
    if spec.get("unschedulable"):
        facts.append(Fact(NODES, name, "is cordoned: new pods stay away", "warning"))
    return facts


def _condition(name: str, condition: dict[str, Any]) -> Fact | None:
    """A condition that is not as it should be: one that ends with Ready should be true, any other should not.

    A node problem detector and HyperPod's agent name theirs after the fault. One whose status is unknown is
    no healthy one.
    """
    kind, status = str(condition.get("type", "")), str(condition.get("status", ""))
    good = "True" if kind.endswith("Ready") else "False"
    if status == good:
        return None
    words = said(str(condition.get("reason", "")), str(condition.get("message", "")))
    level: Level = "error" if kind.endswith("Ready") or _known(words) else "warning"
    return Fact(
        NODES, name, said(f"{kind} is {status}", words), level, _time(condition, "lastTransitionTime")
    )


def _labels(metadata: dict[str, Any]) -> Iterator[tuple[str, Level]]:
    """Words of HyperPod's agent. Faults of a node that works again are history: they count with its state."""
    labels: dict[str, str] = metadata.get("labels") or {}
    health = labels.get(_HEALTH, "Schedulable")
    deep = labels.get(f"{_HYPERPOD}deep-health-check-status", "Passed")
    if deep == "Failed":
        yield f"{_HYPERPOD}deep-health-check-status={deep}", "error"
    if health == "Schedulable":
        return
    yield f"{_HEALTH}={health}", "info" if deep == "InProgress" else "error"
    for key in _FAULTS:
        if labels.get(key):
            yield f"{key}={labels[key]}", "error"
    annotations: dict[str, str] = metadata.get("annotations") or {}
    details = annotations.get(_DETAILS, "")
    if details:
        # JSON in JSON: quotes of the kernel's line are escaped
        yield f"{_DETAILS}: {details[:_LONGEST]}".replace('\\"', '"'), "error"


def event_facts(events: list[dict[str, Any]], since: datetime) -> list[Fact]:
    """Warnings, each text once: of nodes all, of pods those that are known, for every cluster has others."""
    found: dict[tuple[str, str], Fact] = {}
    for event in events:
        about: dict[str, Any] = event.get("involvedObject") or {}
        when = _time(event, "lastTimestamp") or _time(event, "eventTime")
        if when and when < since:
            continue
        text = said(str(event.get("reason") or ""), " ".join(str(event.get("message") or "").split()))
        of_node = about.get("kind") == "Node"
        if not of_node and not _known(text):
            continue
        where = " ".join(part for part in (str(about.get("kind", "")), str(about.get("name", ""))) if part)
        key = (where if of_node else "", text)
        if key not in found and len(found) < MOST_EVENTS:
            level: Level = "info" if event.get("reason") in _ALWAYS else "warning"
            found[key] = Fact(EVENTS, where, text, level, when)
    return list(found.values())


def _known(text: str) -> bool:
    return bool(diagnose([text]) or node_fault_diagnoses([text]))


def _time(value: dict[str, Any], key: str) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value[key]).replace("Z", "+00:00"))
    except (KeyError, ValueError):
        return None
