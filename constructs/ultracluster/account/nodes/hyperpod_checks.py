"""Deep health checks of HyperPod's nodes when somebody asks for them (StartClusterHealthCheck).

SageMaker Developer Guide, "Deep health checks", on EKS and with Slurm: only one such request is active for a
cluster at a time, so everything goes out in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain
from ultracluster.account.nodes.hyperpod import LiveCluster
from ultracluster.account.nodes.hyperpod import judge as judge_nodes
from ultracluster.account.nodes.node import Node, Outcome, Result, result_of
from ultracluster.model import Cluster

STRESS, CONNECTIVITY, TRAINING = "InstanceStress", "InstanceConnectivity", "MultiNodeTrainingValidation"


def judge(
    wanted: Cluster, cluster: LiveCluster, nodes: Sequence[Node], checks: Sequence[str]
) -> list[Outcome]:
    """Return what may be checked now: `would`, `already` or `refused`, one for each node and in their order.

    Args:
        wanted: the cluster as its file has it.
        cluster: as it is.
        nodes: that are meant.
        checks: that are asked for.
    """
    judged = judge_nodes("health-check", cluster, nodes)
    peers = Counter((node.group, node.instance_type) for node in nodes)
    outcomes: list[Outcome] = []
    for node, outcome in zip(nodes, judged, strict=True):
        why = "" if outcome.result != "would" else _unfit(wanted, cluster, node)
        alone = peers[node.group, node.instance_type] < 2
        if not why and outcome.result == "would" and CONNECTIVITY in checks and alone:
            why = (
                "connectivity is tested between nodes of one type of a group: name a second one, or leave "
                "--connectivity out"
            )
        outcomes.append(Outcome(node.name, "refused", why, node.group) if why else outcome)
    return outcomes


def start(
    account: Account,
    cluster: LiveCluster,
    nodes: Sequence[Node],
    checks: Sequence[str],
    *,
    everyone: Sequence[Node] = (),
) -> list[Outcome]:
    """Ask for the checks of nodes that `judge` lets through, in one request; one outcome for each node.

    Args:
        everyone: all nodes of the cluster: a group that is meant as a whole is asked for without ids, of
            which a request takes 500 for a group.
    """
    sagemaker = account.client("sagemaker")
    entries = sagemaker.meta.service_model.operation_model("StartClusterHealthCheck").input_shape.members[
        "DeepHealthCheckConfigurations"
    ]
    most_groups = int(entries.metadata["max"])
    most_ids = int(entries.member.members["InstanceIds"].metadata["max"])
    chosen: dict[str, list[str]] = {}
    for node in nodes:
        chosen.setdefault(node.group, []).append(node.id)
    asked: list[dict[str, Any]] = []
    why: dict[str, str] = {}
    for group, ids in chosen.items():
        entry: dict[str, Any] = {"InstanceGroupName": group, "DeepHealthChecks": list(checks)}
        if set(ids) < {node.id for node in everyone if node.group == group} or not everyone:
            entry["InstanceIds"] = ids
        if len(entry.get("InstanceIds", ())) > most_ids:
            why[group] = (
                f"a request names at most {most_ids} nodes of a group: ask for the whole group, or for fewer"
            )
        elif len(asked) == most_groups:
            why[group] = (
                f"a request takes {most_groups} groups, and HyperPod one request at a time: ask again later"
            )
        else:
            asked.append(entry)
    said = ", ".join(checks)
    result: Result = "accepted"
    try:
        if asked:
            sagemaker.start_cluster_health_check(
                ClusterName=cluster.name, DeepHealthCheckConfigurations=asked
            )
    except AWS_ERRORS as error:
        result, said = result_of(error), f"{explain(error)}; HyperPod takes one such request at a time"
    return [
        Outcome(node.name, "refused", why[node.group], node.group)
        if node.group in why
        else Outcome(node.name, result, said, node.group)
        for node in nodes
    ]


def caution(nodes: Sequence[Node]) -> list[str]:
    """Return what to know before nodes are checked."""
    checked = sum(node.status == "DeepHealthCheckInProgress" for node in nodes)
    lines = [_GENTLE]
    if checked:
        lines.append(
            f"{checked} nodes are being checked: HyperPod may refuse a second request until they are done."
        )
    return lines


_GENTLE = (
    "Jobs that run there go on: HyperPod waits ten minutes for each node to be free, then leaves it out. "
    "A node that fails is rebooted or replaced, if the cluster recovers nodes by itself."
)


def _unfit(wanted: Cluster, cluster: LiveCluster, node: Node) -> str:
    """Return why HyperPod has no checks for a node; empty if it has some, or if that is not known."""
    group = wanted.groups.get(node.group)
    if node.controller or (group and group.role != "compute"):
        return f"is a {group.role if group else 'controller'} node: only workers are checked"
    kind = wanted.instance_type(node.instance_type)
    if kind and kind.accelerator is None:
        return f"{kind.name} has no accelerators: HyperPod skips it"
    if kind and kind.accelerator and kind.accelerator.manufacturer != "NVIDIA" and not cluster.eks:
        return f"with Slurm AWS documents checks of GPUs only, and {kind.name} has {kind.accelerator.name}"
    return ""
