"""Instance groups of HyperPod as node groups."""

from __future__ import annotations

from typing import Any

from ultracluster.imports.ledger import Part

_CHECKS = {"InstanceStress": "instance-stress", "InstanceConnectivity": "instance-connectivity"}
_PATCHING = {"WhenIdle": "when-idle", "WhenAllIdle": "when-all-idle"}


def group_of(part: Part, *, kubernetes: bool) -> dict[str, Any]:
    """A group without its role."""
    types = _types(part)
    count = part.number("InstanceCount")
    if count is None:
        part.ledger.refuse(part.place("InstanceCount"), "is missing", "write how many nodes the group has")
    group: dict[str, Any] = {"instance_type": types[0], "count": count or 0}
    if types[1:] and kubernetes:
        group["instance_types"] = types[1:]
    if (least := part.number("MinInstanceCount")) is not None:
        group["min_count"] = least
    if capacity := _capacity(part):
        group["capacity"] = capacity
    group |= _volume(part)
    if (threads := part.number("ThreadsPerCore")) is not None:
        group["threads_per_core"] = threads
    if interface := part.part("NetworkInterface").text("InterfaceType"):
        group["efa_interface"] = interface
    if checks := [_CHECKS.get(text, text) for text in part.texts("OnStartDeepHealthChecks")]:
        group["deep_health_checks"] = checks
    image = part.text("ImageId") or "default"
    if image.startswith("ami-"):
        group["image"] = image
    elif image != "default":
        part.ledger.left(
            part.place("ImageId"), "it is no AMI id; the newest image is the default", "write `image`"
        )
    if release := part.text("ImageReleaseVersion"):
        group["image_release"] = release
    if patching := _patching(part):
        group["patching"] = patching
    return group | _labels(part.part("KubernetesConfig"))


def _types(part: Part) -> list[str]:
    several = part.part("InstanceRequirements").texts("InstanceTypes")
    alone = part.text("InstanceType")
    found = [one.removeprefix("ml.") for one in ([alone] if alone else several)]
    if not found:
        part.ledger.refuse(part.place("InstanceType"), "is missing", "write the type of the group")
    return found or [""]


def _capacity(part: Part) -> dict[str, Any]:
    requirements = part.part("CapacityRequirements")
    requirements.any("OnDemand")
    spot = requirements.any("Spot") is not None
    if plan := part.text("TrainingPlanArn"):
        return {"kind": "training-plan", "arn": plan}
    return {"kind": "spot"} if spot else {}


def _volume(part: Part) -> dict[str, int]:
    """The second volume; of what else is mounted the file has only addresses."""
    found: dict[str, int] = {}
    for one in part.parts("InstanceStorageConfigs"):
        volume = one.part("EbsVolumeConfig")
        size = volume.number("VolumeSizeInGB")
        if volume.flag("RootVolume"):
            part.ledger.left(
                volume.where,
                "the root volume is HyperPod's own, of 100 GB",
                "storage.keys.volumes has its key",
            )
        elif size is not None:
            found["volume_gib"] = size
    return found


def _patching(part: Part) -> dict[str, Any]:
    if "ScheduledUpdateConfig" in part:
        update = part.part("ScheduledUpdateConfig")
        schedule = update.needed("ScheduleExpression", "write cron(...)")
        return {"kind": "scheduled", "schedule": schedule, **_batches(update.part("DeploymentConfig"))}
    if "AutoPatchConfig" in part:
        update = part.part("AutoPatchConfig")
        strategy = update.text("PatchingStrategy") or ""
        if strategy in _PATCHING:
            return {"kind": _PATCHING[strategy], **_batches(update.part("DeploymentConfig"))}
        update.map_all()
        part.ledger.left(
            update.place("PatchingStrategy"),
            f"{strategy or 'no strategy'} is not one of those that groups have",
            "see node_groups.<group>.patching: when-idle, when-all-idle, scheduled",
        )  # fmt: skip
    return {}


def _batches(config: Part) -> dict[str, Any]:
    batch = config.part("RollingUpdatePolicy").part("MaximumBatchSize")
    size, unit = batch.number("Value"), batch.text("Type")
    found: dict[str, Any] = {}
    if size is not None and unit == "CAPACITY_PERCENTAGE":
        found["batch_percent"] = size
    elif size is not None:
        config.ledger.left(batch.where, "batches are a share of the group", "write batch_percent")
    if (pause := config.number("WaitIntervalInSeconds")) is not None:
        found["wait_seconds"] = pause
    alarms = [part.text("AlarmName") or "" for part in config.parts("AutoRollbackConfiguration")]
    return found | ({"rollback_alarms": alarms} if alarms else {})


def _labels(config: Part) -> dict[str, Any]:
    labels = {key: str(value) for key, value in config.map("Labels").items()}
    taints: list[dict[str, Any]] = []
    for part in config.parts("Taints"):
        taint = {"key": part.text("Key"), "value": part.text("Value"), "effect": part.text("Effect")}
        taints.append({key: value for key, value in taint.items() if value is not None})
    return {**({"labels": labels} if labels else {}), **({"taints": taints} if taints else {})}
