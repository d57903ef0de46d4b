"""A HyperPod cluster as DescribeCluster shows it: the request that would make it, and what it is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ultracluster.imports import hyperpod
from ultracluster.imports.ledger import Ledger
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.states import state_row
from ultracluster.imports.surroundings import Asked

_TOP = (
    "ClusterName",
    "VpcConfig",
    "Orchestrator",
    "TieredStorageConfig",
    "NodeRecovery",
    "NodeProvisioningMode",
    "ClusterRole",
    "RestrictedInstanceGroups",
    "RestrictedInstanceGroupsConfig",
)
_SAME = (
    "InstanceGroupName",
    "InstanceType",
    "LifeCycleConfig",
    "ExecutionRole",
    "ThreadsPerCore",
    "InstanceStorageConfigs",
    "OnStartDeepHealthChecks",
    "TrainingPlanArn",
    "OverrideVpcConfig",
    "ScheduledUpdateConfig",
    "CapacityRequirements",
    "SlurmConfig",
    "NetworkInterface",
)
_RENAMED = {"TargetCount": "InstanceCount", "MinCount": "MinInstanceCount"}
STATE = frozenset({
    "ClusterArn", "ClusterStatus", "CreationTime", "FailureMessage", "InstanceGroups.CurrentCount",
    "InstanceGroups.Status", "InstanceGroups.TrainingPlanStatus", "InstanceGroups.InstanceTypeDetails",
    "InstanceGroups.ImageVersionStatus", "InstanceGroups.ActiveOperations", "InstanceGroups.TargetStateCount",
    "InstanceGroups.SoftwareUpdateStatus", "InstanceGroups.ActiveSoftwareUpdateConfig",
    "InstanceGroups.CurrentImageReleaseVersion", "InstanceGroups.DesiredImageReleaseVersion",
    "AutoScaling.Status", "AutoScaling.FailureMessage",
})  # fmt: skip
"""Keys of the answer that say what the cluster is doing; the release of its image moves by itself."""


def drafted(
    answer: Mapping[str, Any], name: str, asked: Asked, parameters: Mapping[str, Any] | None
) -> Drafted:
    """Return what the cluster comes to as an environment.

    Args:
        answer: of DescribeCluster, with the `Tags` of the cluster beside it.
        parameters: its provisioning_parameters.json, where groups do not say what they are.
    """
    own = asked.around.own_images if asked.around else frozenset[str]()
    draft = hyperpod.drafted(request(answer, own), name, asked, parameters)
    _states(answer, draft.ledger)
    return draft


def request(answer: Mapping[str, Any], own_images: frozenset[str]) -> dict[str, Any]:
    """The request of CreateCluster that would make what DescribeCluster shows."""
    groups = [
        _group(mapping, own_images)
        for mapping in _mappings(answer.get("InstanceGroups"))
        if mapping.get("Status") != "Deleting"
    ]
    scaling = answer.get("AutoScaling")
    found = {key: answer[key] for key in _TOP if answer.get(key) not in (None, [], {})}
    if isinstance(scaling, Mapping):
        kept = cast("Mapping[str, Any]", scaling)
        found["AutoScaling"] = {key: kept[key] for key in ("Mode", "AutoScalerType") if key in kept}
    tags = [
        mapping
        for mapping in _mappings(answer.get("Tags"))
        if not str(mapping.get("Key", "")).lower().startswith("aws:")
    ]
    return {**found, "InstanceGroups": groups, **({"Tags": tags} if tags else {})}


def _group(one: Mapping[str, Any], own_images: frozenset[str]) -> dict[str, Any]:
    found = {key: one[key] for key in _SAME if one.get(key) not in (None, [], {})}
    found |= {new: one[old] for old, new in _RENAMED.items() if one.get(old) is not None}
    image = str(one.get("DesiredImageId") or one.get("CurrentImageId") or "")
    if image in own_images:
        found["ImageId"] = image
    several = _map(one, "InstanceRequirements")
    if types := several.get("DesiredInstanceTypes") or several.get("CurrentInstanceTypes"):
        found["InstanceRequirements"] = {"InstanceTypes": types}
        if found.get("InstanceType") in types:
            del found["InstanceType"]
    labels = _map(one, "KubernetesConfig")
    wanted = {
        key: labels.get(f"Desired{key}") or labels.get(f"Current{key}")
        for key in ("Labels", "Taints")
        if labels.get(f"Desired{key}") or labels.get(f"Current{key}")
    }
    if wanted:
        found["KubernetesConfig"] = wanted
    patching = {
        key: value
        for key, value in _map(one, "AutoPatchConfig").items()
        if not key.endswith("PatchSchedule") and value not in (None, {}, [])
    }
    if patching:
        found["AutoPatchConfig"] = patching
    return found


def _states(answer: Mapping[str, Any], ledger: Ledger) -> None:
    status, why = str(answer.get("ClusterStatus", "")), str(answer.get("FailureMessage") or "")
    state_row(ledger, "ClusterStatus", "the cluster", status, why)
    for number, one in enumerate(_mappings(answer.get("InstanceGroups"))):
        where, group = f"InstanceGroups[{number}]", str(one.get("InstanceGroupName", ""))
        if one.get("Status") == "Deleting":
            ledger.left(where, f"group {group} is being deleted", "nothing to do")
            continue
        state_row(ledger, f"{where}.Status", f"group {group}", str(one.get("Status", "")))
        here, wanted = one.get("CurrentCount"), one.get("TargetCount")
        if isinstance(here, int) and isinstance(wanted, int) and here != wanted:
            ledger.changed(
                f"{where}.TargetCount", f"group {group} has {here} nodes now, and is to have {wanted}",
                f"count is {wanted}; correct it where you know better",
            )  # fmt: skip


def _mappings(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("Mapping[str, Any]", one) for one in cast("list[object]", value) if isinstance(one, Mapping)]


def _map(one: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = one.get(key)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
