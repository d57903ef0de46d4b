"""Bringing a HyperPod group back to the counts of its environment file.

A new group that does not reach its minimum within three hours is set to 0 nodes and minimum 0 (SageMaker
Developer Guide, "Minimum capacity requirements (MinCount)"). The template still says the former counts, so
the next deploy has nothing to change: somebody has to ask HyperPod itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, Account, explain
from ultracluster.account.nodes.hyperpod import LiveCluster, cluster_stop
from ultracluster.account.nodes.node import Outcome, result_of
from ultracluster.config.nodes import NodeGroup

_RENAMED = {"TargetCount": "InstanceCount", "MinCount": "MinInstanceCount"}
_DESIRED = "Desired"
"""What DescribeCluster calls a wish that is still being brought about, in parts of a group."""


def judge_restore(cluster: LiveCluster, groups: Mapping[str, NodeGroup], name: str) -> Outcome:
    """Return whether a group can be restored now: `would`, `already` or `refused`.

    Args:
        cluster: as it is.
        groups: those of the environment file that HyperPod makes.
        name: of the group.
    """

    def say(result: Any, why: str) -> Outcome:
        return Outcome(name, result, why, name)

    wanted, live = groups.get(name), cluster.group(name)
    if wanted is None:
        return say("refused", f"the environment file has no group {name}; it has {', '.join(groups)}")
    if live is None:
        return say("refused", f"{cluster.name} has no group {name} yet: deploy makes it")
    if wanted.count == 0:
        return say("refused", "the environment file has `count: 0` for it: there is nothing to come back to")
    if stop := cluster_stop("restore", cluster):
        return say("refused", stop)
    counts = f"{wanted.count} nodes{_at_least(wanted)}"
    if live.target == wanted.count and live.minimum == (wanted.min_count or 0):
        return say("already", f"has a target of {counts}")
    if live.target > wanted.count:
        return say(
            "refused",
            f"has a target of {live.target}, above the {wanted.count} of the environment file: this command "
            "ends no node; raise `count` there, or delete nodes",
        )
    return say("would", f"from a target of {live.target} to {counts}")


def restore(account: Account, cluster: LiveCluster, name: str, wanted: NodeGroup) -> Outcome:
    """Ask for the counts of the file for one group; every other group is sent as it is now.

    UpdateCluster takes the groups with all that belongs to them, so they are read again right before.
    """
    sagemaker = account.client("sagemaker")
    try:
        described = sagemaker.describe_cluster(ClusterName=cluster.name)
        groups = [specification(dict(entry)) for entry in described.get("InstanceGroups", [])]
        for group in groups:
            if group["InstanceGroupName"] == name:
                group["InstanceCount"] = wanted.count
                if wanted.min_count:
                    group["MinInstanceCount"] = wanted.min_count
    except AWS_ERRORS as error:
        return Outcome(name, "failed", explain(error), name)
    try:
        sagemaker.update_cluster(ClusterName=cluster.name, InstanceGroups=groups)
    except AWS_ERRORS as error:
        return Outcome(name, result_of(error), explain(error), name)
    return Outcome(name, "accepted", f"target {wanted.count}{_at_least(wanted)}", name)


def specification(described: Mapping[str, Any]) -> dict[str, Any]:
    """A group of DescribeCluster as UpdateCluster takes it: what only tells of its state is left out.

    The image is, too: UpdateClusterSoftware changes that, and a group keeps the one that it has.
    """
    accepted: dict[str, Any] = {}
    for key, value in described.items():
        if key == "MinCount" and not value:
            continue  # classic provisioning knows none, and refuses the field
        if key in _RENAMED:
            accepted[_RENAMED[key]] = value
        elif key in _DETAILED:
            if part := _wished(value, _DETAILED[key]):
                accepted[key] = part
        elif key in _AS_IT_IS:
            accepted[key] = value
    return accepted


_AS_IT_IS = frozenset({
    "InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore",
    "InstanceStorageConfigs", "OnStartDeepHealthChecks", "TrainingPlanArn", "OverrideVpcConfig",
    "ScheduledUpdateConfig", "CapacityRequirements", "SlurmConfig", "NetworkInterface",
})  # fmt: skip
_DETAILED = {
    "InstanceRequirements": ("InstanceTypes",),
    "KubernetesConfig": ("Labels", "Taints"),
    "AutoPatchConfig": (
        "PatchingStrategy", "PatchSchedule", "DeploymentConfig", "IdleWaitWindowInSeconds", "DrainPolicy",
    ),
}  # fmt: skip
"""Parts that DescribeCluster gives in another form, with the fields that UpdateCluster takes of each."""


def _wished(value: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    found = {field: value.get(field, value.get(f"{_DESIRED}{field}")) for field in fields}
    return {field: one for field, one in found.items() if one}


def _at_least(group: NodeGroup) -> str:
    return f", at least {group.min_count}" if group.min_count else ""
