"""Sources of a bundle for AWS Support beyond an examination: stacks, nodes, logs, the scheduler's objects.

Each is a source of the same inquiry: one that is refused or slow becomes a row and takes nothing from others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, message
from ultracluster.account.doctor.examination import Asked, Fact, Inquiry, Source
from ultracluster.account.doctor.logs import error_lines, newest_group
from ultracluster.account.kubernetes_api import KubernetesApi
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.node import Node
from ultracluster.model import Cluster

Shell = Callable[[Fleet, list[Node], str], Mapping[str, tuple[str, str]]]
"""Runs a script on nodes: what it printed, and why there is no answer, by instance id."""
Papers = dict[str, tuple[Asked, dict[str, Any]]]
"""Files by the source that has them: text or a value of JSON by name."""

EVENTS = 300
"""Events of a stack, the newest."""
STREAMS = 10
"""Log streams that are read around their faults."""
LINES = 500
"""Lines of one of them."""
AROUND = timedelta(minutes=5)
REPORTS = 10
"""Nodes whose own reports are read: those that do not run well first."""
BYTES = 20_000
"""Bytes of each file of a node: Systems Manager passes on 24,000 characters of a command's output
(Systems Manager API Reference, GetCommandInvocation, 2026-11)."""
REPORT = f"tail -c {BYTES} /var/log/ultracluster/report.jsonl"
SLURM = {
    "nodes": "scontrol show node",
    "partitions": "scontrol show partition",
    "reasons": "sinfo -R -o '%N|%T|%H|%u|%E'",
    "jobs": "squeue -o '%A|%P|%T|UserId=%u|%M|%D|%R'",
    "daemons": "scontrol ping; scontrol show config",
    "version": "sinfo --version",
}
"""Questions by the file of their answer; the shell's user is root, and `UserId=` marks names of people."""
KUBERNETES = {
    "nodes": "/api/v1/nodes",
    "events": "/api/v1/events",
    "system-pods": "/api/v1/namespaces/kube-system/pods",
    "daemonsets": "/apis/apps/v1/daemonsets",
}
"""Objects whose conditions concern nodes; never Secrets, ConfigMaps, or the specification of a container."""
_KEPT = ("status", "type", "reason", "message", "count", "involvedObject", "firstTimestamp", "lastTimestamp")
_OF_SPEC = ("nodeName", "providerID", "taints", "unschedulable")
_OF_METADATA = ("name", "namespace", "labels", "creationTimestamp", "deletionTimestamp")
_ANNOTATIONS = "sagemaker.amazonaws.com/"


def ask_for_bundle(
    account: Account, cluster: Cluster, inquiry: Inquiry, since: datetime, shell: Shell | None = None
) -> Papers:
    """Ask the sources; the papers are filled while `inquiry` collects.

    Args:
        shell: how nodes are asked; without it their reports and Slurm's objects are left out.
    """
    papers: Papers = {}

    def ask(name: str, question: Callable[[dict[str, Any]], list[Fact] | Source | None]) -> None:
        files: dict[str, Any] = {}
        papers[name] = (inquiry.ask(name, lambda: question(files)), files)

    ask("history of stacks", lambda files: _stacks(account, cluster, since, files))
    ask("list of nodes", lambda files: _nodes(account, cluster, files))
    if cluster.log_group:
        ask("logs around faults", lambda files: _logs(account, cluster, since, files))
    if cluster.traits.kubernetes:
        for name, path in KUBERNETES.items():
            ask(f"Kubernetes {name}, whole", lambda files, name=name, path=path: _kubernetes(
                account, cluster, name, path, files
            ))  # fmt: skip
    if shell:
        ask("reports of nodes", lambda files: _reports(account, cluster, shell, files))
    if shell and not cluster.traits.kubernetes:
        ask("Slurm", lambda files: _slurm(account, cluster, shell, files))
    return papers


def _stacks(account: Account, cluster: Cluster, since: datetime, files: dict[str, Any]) -> list[Fact] | None:
    names = list(cluster.environment.stack_names)
    names += [cluster.cluster_name] if cluster.traits.own_stack else []
    for name in names:
        try:
            files |= _stack(account.client("cloudformation"), name, since)
        except AWS_ERRORS as error:
            if "does not exist" not in message(error):
                raise
    return [] if files else None


def _stack(cloudformation: Any, name: str, since: datetime) -> dict[str, Any]:
    """State and events. Parameters and outputs are left out: they may have what nobody should see."""
    stack: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    kept = ("StackName", "StackId", "StackStatus", "StackStatusReason", "CreationTime", "LastUpdatedTime",
            "DisableRollback", "DriftInformation", "EnableTerminationProtection")  # fmt: skip
    events: list[dict[str, Any]] = []
    pages = cloudformation.get_paginator("describe_stack_events").paginate(
        StackName=name, PaginationConfig={"MaxItems": EVENTS}
    )
    for page in pages:
        events += [event for event in page["StackEvents"] if event["Timestamp"] >= since]
    properties = ("ResourceProperties",)  # they may have a user data or a password that was given in clear
    return {
        f"stacks/{name}.json": {key: stack[key] for key in kept if key in stack},
        f"stacks/{name}-events.json": [
            {key: value for key, value in event.items() if key not in properties} for event in events
        ],
    }


def _nodes(account: Account, cluster: Cluster, files: dict[str, Any]) -> list[Fact]:
    files["nodes.json"] = [asdict(node) for node in Fleet(account, cluster).nodes]
    return []


def _logs(account: Account, cluster: Cluster, since: datetime, files: dict[str, Any]) -> list[Fact] | None:
    """Lines before and behind those of each stream that speak of an error."""
    groups: list[str] = []
    if newest_group(account, cluster.log_group, groups) is None:
        return None
    times: dict[str, list[datetime]] = {}
    for fact in error_lines(account, groups[0], since):
        if fact.when:
            times.setdefault(fact.where, []).append(fact.when)
    logs = account.client("logs")
    newest = sorted(times, key=lambda name: max(times[name]), reverse=True)[:STREAMS]
    for name in newest:
        # behind the last fault there is what it led to; of the time before it, what led to it
        begin, end = max(times[name]) - AROUND, max(times[name]) + AROUND
        answer = logs.get_log_events(
            logGroupName=groups[0], logStreamName=name, startFromHead=False, limit=LINES,
            startTime=int(begin.timestamp() * 1000), endTime=int(end.timestamp() * 1000),
        )  # fmt: skip
        files[f"logs/{name}.log"] = "\n".join(event["message"].rstrip() for event in answer["events"])
    return []


def _kubernetes(
    account: Account, cluster: Cluster, name: str, path: str, files: dict[str, Any]
) -> list[Fact]:
    items = KubernetesApi(account, cluster.cluster_name).items(path)
    files[f"kubernetes/{name}.json"] = [kept_of(item) for item in items]
    return []


def kept_of(item: dict[str, Any]) -> dict[str, Any]:
    """State of an object of Kubernetes; nothing that people wrote into it but labels."""
    metadata: dict[str, Any] = item.get("metadata") or {}
    spec: dict[str, Any] = item.get("spec") or {}
    annotations: dict[str, Any] = metadata.get("annotations") or {}
    return {
        "metadata": {key: metadata[key] for key in _OF_METADATA if key in metadata}
        | {"annotations": {key: one for key, one in annotations.items() if key.startswith(_ANNOTATIONS)}},
        "spec": {key: spec[key] for key in _OF_SPEC if key in spec},
        **{key: item[key] for key in _KEPT if key in item},
    }


def _reports(
    account: Account, cluster: Cluster, shell: Shell, files: dict[str, Any]
) -> list[Fact] | Source | None:
    fleet = Fleet(account, cluster)
    nodes = sorted((one for one in fleet.nodes if one.id), key=lambda one: one.status.lower() == "running")
    if not nodes:
        return None
    answers = shell(fleet, nodes[:REPORTS], REPORT)
    silent = {node: why for node, (text, why) in answers.items() if not text}
    files |= {f"reports/{node}.jsonl": text for node, (text, _) in answers.items() if text}
    if not files:
        return Source("reports of nodes", "not readable", next(iter(silent.values()), "no node answered"))
    return [Fact("reports of nodes", node, why or "it has none", "info") for node, why in silent.items()]


def _slurm(account: Account, cluster: Cluster, shell: Shell, files: dict[str, Any]) -> list[Fact] | Source:
    fleet = Fleet(account, cluster)
    entrance = fleet.entrance()
    if entrance is None:
        return Source("Slurm", "not readable", "no node runs on which its commands are")
    why = ""
    for name, question in SLURM.items():
        text, why = shell(fleet, [entrance], f"{{ {question}; }} 2>&1 | head -c {BYTES}").get(
            entrance.id, ("", "no answer")
        )
        if text:
            files[f"slurm/{name}.txt"] = f"$ {question}\n{text}\n"
        else:
            files[f"slurm/{name}.txt"] = f"$ {question}\nno answer: {why}\n"
    answered = any("\nno answer: " not in text for text in files.values())
    return [] if answered else Source("Slurm", "not readable", why)
