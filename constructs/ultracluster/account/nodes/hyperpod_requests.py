"""What is asked of HyperPod for its nodes: reboot, replace, delete, add.

HyperPod's own batch calls do the work, in chunks of their limits (SageMaker API reference; limits from the
SDK's model of the API). Every node gets an outcome, whatever AWS answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, code, explain
from ultracluster.account.nodes.hyperpod import LiveCluster, judge_add, slurm_request
from ultracluster.account.nodes.node import Action, Node, Outcome, chunks, result_of

DELETE_LIMIT = 99
"""Nodes of one BatchDeleteClusterNodes. The SDK's model allows 3000 instance ids, older pages of the API
reference 99; the smaller one holds in both."""
ADD_LIMIT = 50
"""Nodes that one BatchAddClusterNodes may add (API reference, IncrementTargetCountBy)."""
TOKEN = 600
"""Seconds for which the same wish has the same token."""


def act(account: Account, action: Action, cluster: LiveCluster, nodes: Sequence[Node]) -> list[Outcome]:
    """Ask for nodes that `judge` lets through, in chunks; one outcome for each node.

    A chunk that AWS refuses as a whole fails its own nodes only.
    """
    sagemaker = account.client("sagemaker", once=True)
    results: dict[str, Outcome] = {}
    by_id = [node.id for node in nodes if node.id]
    by_logical_id = [node.logical_id for node in nodes if not node.id]
    for key, names in (("NodeIds", by_id), ("NodeLogicalIds", by_logical_id)):
        for chunk in chunks(names, limit(account, action, key)):
            request: dict[str, Any] = {"ClusterName": cluster.name, key: chunk}
            try:
                if action == "reboot":
                    answer = sagemaker.batch_reboot_cluster_nodes(**request)
                elif action == "replace":
                    answer = sagemaker.batch_replace_cluster_nodes(**request)
                else:
                    answer = sagemaker.batch_delete_cluster_nodes(**request)
            except AWS_ERRORS as error:
                why = _chunk_refused(action, cluster, error)
                results |= {name: Outcome(name, result_of(error), why) for name in chunk}
                continue
            results |= {one.node: one for one in _read_batch(answer, chunk, action, cluster)}
    groups = {node.name: node.group for node in nodes}
    return [
        Outcome(one.node, one.result, one.why, groups[one.node]) for one in (results[n.name] for n in nodes)
    ]


def limit(account: Account, action: Action, key: str) -> int:
    """Return how many nodes one request may name, as the SDK's model of the API says."""
    model = account.client("sagemaker").meta.service_model
    if action == "reboot":
        shape = model.operation_model("BatchRebootClusterNodes").input_shape
    elif action == "replace":
        shape = model.operation_model("BatchReplaceClusterNodes").input_shape
    else:
        shape = model.operation_model("BatchDeleteClusterNodes").input_shape
        return min(DELETE_LIMIT, int(shape.members[key].metadata["max"]))
    return int(shape.members[key].metadata["max"])


def add(
    account: Account, cluster: LiveCluster, group: str, count: int, *, now: Callable[[], float] = time.time
) -> list[Outcome]:
    """Raise the target of a group by `count` nodes, at most 50 with each request.

    A request's token comes from the group's target and the time, so a second try after a lost answer adds its
    nodes once. HyperPod remembers a token for 8 hours; ours holds for ten minutes, or nodes that were added,
    deleted and added again on one day would silently not come.

    Args:
        now: seconds since 1970.
    """
    refused = judge_add(cluster, group, count)
    if refused:
        return [refused]
    sagemaker = account.client("sagemaker")
    target = next(one.target for one in cluster.groups if one.name == group)
    outcomes: list[Outcome] = []
    while count > 0:
        step = min(count, ADD_LIMIT)
        token = sha256(f"{cluster.arn}/{group}/{target}+{step}@{now() // TOKEN}".encode()).hexdigest()
        try:
            answer = sagemaker.batch_add_cluster_nodes(
                ClusterName=cluster.name,
                ClientToken=token,
                NodesToAdd=[{"InstanceGroupName": group, "IncrementTargetCountBy": step}],
            )
        except AWS_ERRORS as error:
            return [*outcomes, Outcome(f"{count} more", result_of(error), explain(error), group)]
        outcomes += [
            Outcome(entry["NodeLogicalId"], "accepted", entry.get("Status", ""), entry["InstanceGroupName"])
            for entry in answer["Successful"]
        ]
        failed = [
            Outcome(
                f"{entry['FailedCount']} of {step}",
                "failed",
                ": ".join(part for part in (entry["ErrorCode"], entry.get("Message", "")) if part),
                entry["InstanceGroupName"],
            )
            for entry in answer["Failed"]
        ]
        if failed:
            return outcomes + failed
        count, target = count - step, target + step
    return outcomes


def _read_batch(answer: Any, chunk: list[str], action: Action, cluster: LiveCluster) -> list[Outcome]:
    """One outcome for each id that was asked, whatever lists the answer has."""
    good = {*answer.get("Successful", []), *answer.get("SuccessfulNodeLogicalIds", [])}
    bad: dict[str, str] = {}
    for entry in [*answer.get("Failed", []), *answer.get("FailedNodeLogicalIds", [])]:
        name = entry.get("NodeId") or entry.get("NodeLogicalId", "")
        kind = entry.get("ErrorCode") or entry.get("Code", "")
        bad[name] = _batch_words(kind, entry.get("Message", ""), action, cluster)
    outcomes: list[Outcome] = []
    for name in chunk:
        if name in bad:
            outcomes.append(Outcome(name, "failed", bad[name]))
        elif name in good:
            outcomes.append(Outcome(name, "accepted"))
        else:
            outcomes.append(Outcome(name, "unknown", "AWS did not say what became of it"))
    return outcomes


def _batch_words(kind: str, said: str, action: Action, cluster: LiveCluster) -> str:
    hint = {
        "InvalidInstanceStatus": "its state changed meanwhile; list the nodes and try again",
        "InvalidNodeStatus": "its state changed meanwhile; list the nodes and try again",
        "InstanceIdInUse": "another request for it is under way; wait for that one",
        "NodeIdInUse": "another request for it is under way; wait for that one",
        "InstanceIdNotFound": "it is no longer in the cluster",
        "NodeIdNotFound": "it is no longer in the cluster",
        "InternalServerError": _by_slurm(action, cluster) or "try again",
    }.get(kind, "")
    return "; ".join(part for part in (f"{kind}: {said}" if said else kind, hint) if part)


def _chunk_refused(action: Action, cluster: LiveCluster, error: Exception) -> str:
    why = explain(error)
    if code(error) in ("ValidationException", "ValidationError"):
        advice = (
            "HyperPod takes this call after `ultracluster software update` has run once"
            if action != "delete"
            else ""
        )
        return "; ".join(part for part in (why, advice, _by_slurm(action, cluster)) if part)
    return why


def _by_slurm(action: Action, cluster: LiveCluster) -> str:
    if cluster.eks or action == "delete" or not cluster.recovery:
        return ""
    return f"Slurm can ask instead, on the controller: {slurm_request(action, Node('', '', ''))}"
