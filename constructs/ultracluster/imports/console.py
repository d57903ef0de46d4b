"""Parameters of the templates behind HyperPod's console (aws/sagemaker-hyperpod-cluster-setup, b920fcf:
main stacks for Slurm and EKS), and of the one that makes what clusters of awslabs/awsome-distributed-ai
require (sagemaker-hyperpod.yaml)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from ultracluster.config.plain_text import one_line
from ultracluster.imports import hyperpod
from ultracluster.imports.ledger import Ledger, Part
from ultracluster.imports.outcome import Drafted
from ultracluster.imports.placing import region_of
from ultracluster.imports.reasons import reasons
from ultracluster.imports.surroundings import Asked

_KNOWN = (
    "HyperPodClusterName", "InstanceGroupSettings1", "RigSettings1", "KubernetesVersion", "NodeRecovery",
    "NodeProvisioningMode", "AutoScalerType", "AvailabilityZoneIds", "Tags", "FsxFileSystemId",
    "StorageCapacity", "DeploymentType", "PerUnitStorageThroughput", "DataCompressionType",
    "FileSystemTypeVersion", "FsxAvailabilityZoneId", "FsxSubnetId",
)  # fmt: skip
"""Parameters that are read here."""
_OF_HYP = ("template", "version", "stack_id", "stack_name")
_MOST_SETTINGS = 20
"""InstanceGroupSettings1 to 20."""
_EMPTY = (
    "a file system like the old one is made, and it is empty",
    "copy what is there through S3 or with AWS DataSync, or write deployment existing",
)
_SCRATCH = ("SCRATCH_1", "SCRATCH_2")


def is_console(parameters: Mapping[str, Any]) -> bool:
    """Return whether these are parameters of a main stack."""
    return "HyperPodClusterName" in parameters and "InstanceGroupSettings1" in parameters


def is_hyp(data: Mapping[str, Any]) -> bool:
    """Return whether it is the config.yaml of `hyp init cluster-stack`: the same parameters in snake case."""
    return "instance_group_settings" in data or "hyperpod_cluster_name" in data


def from_hyp(data: Mapping[str, Any]) -> dict[str, Any]:
    """Its keys as the template's parameters have them (aws/sagemaker-hyperpod-cli, model.py of the cluster
    stack's template, 0684d94); a list of words is one text there."""
    names = {_folded(name): name for name in (*reasons("HyperPod console"), *_KNOWN)}
    found: dict[str, Any] = {"InstanceGroupSettings1": []}
    for key, value in data.items():
        if key in _OF_HYP:
            continue
        words = isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))
        name = names.get(_folded(key), key)
        found[name] = ",".join(cast("list[str]", value)) if words else value
    found["HyperPodClusterName"] = found.get("HyperPodClusterName")
    return {"EKSClusterName": "", **found}


def _folded(name: str) -> str:
    return name.replace("_", "").lower().removesuffix("1")


def is_prerequisites(parameters: Mapping[str, Any]) -> bool:
    """Return whether these are parameters of what a cluster requires: network and file systems."""
    return "PrimarySubnetAZ" in parameters and "PerUnitStorageThroughput" in parameters


def drafted(parameters: Mapping[str, Any], name: str, asked: Asked) -> Drafted:
    """Return what the parameters come to as an environment."""
    notes = Ledger(reasons=reasons("HyperPod console"))
    top = notes.part(parameters)
    kubernetes = "KubernetesVersion" in top or "EKSClusterName" in top
    groups = list(_groups(top, notes))
    if not groups and not notes.wrong:
        message = "no parameter has a group: a template's defaults may have none"
        notes.refuse("InstanceGroupSettings1", message, "name the parameters that it was deployed with, too")
    zone = _zone(top, groups, notes, asked)
    request: dict[str, Any] = {
        "ClusterName": top.text("HyperPodClusterName"),
        "InstanceGroups": groups,
        "NodeRecovery": top.text("NodeRecovery"),
        "NodeProvisioningMode": top.text("NodeProvisioningMode"),
        "Tags": list(_tags(top, notes)),
        "Orchestrator": {"Eks": {"ClusterArn": "made by the template"}} if kubernetes else {"Slurm": {}},
    }
    if top.text("AutoScalerType"):
        request["AutoScaling"] = {"Mode": "Enable", "AutoScalerType": top.text("AutoScalerType")}
    where = asked.region or region_of(zone)
    place = Asked(name=asked.name, region=where, zone_id=zone, around=asked.around)
    draft = hyperpod.drafted(request, name, place)
    draft.ledger.reasons = reasons("HyperPod")
    own = "Orchestrator.Eks.ClusterArn"
    draft.ledger.rows[:] = [row for row in draft.ledger.rows if row.where != own]
    _network(top, draft)
    if lustre := _lustre(top, notes):
        draft.data["storage"]["lustre"] = lustre
    if version := top.text("KubernetesVersion"):
        draft.data["orchestrator"]["kubernetes_version"] = version
    draft.ledger.rows += notes.close() if not notes.wrong else ()
    if notes.wrong:
        draft.ledger.wrong[:] = notes.wrong  # what else is missing follows from it
    return draft


def place_of(parameters: Mapping[str, Any], asked: Asked) -> Asked:
    """Zone and Region of what a cluster requires, where the user does not say them."""
    zone = asked.zone_id or str(parameters.get("PrimarySubnetAZ") or "")
    return replace(asked, zone_id=zone, region=asked.region or region_of(zone))


def add_prerequisites(draft: Drafted, parameters: Mapping[str, Any]) -> None:
    """File systems of the template that a cluster's create-cluster JSON stands beside."""
    notes = Ledger(reasons=reasons("HyperPod console"))
    top = notes.part(parameters)
    top.any("PrimarySubnetAZ")  # `place_of` has it
    size = top.number("Capacity")
    if size:
        notes.changed("storage.lustre", *_EMPTY)
        draft.data["storage"]["lustre"] = {
            "deployment": "persistent-2-ssd",
            "capacity_gib": size,
            "throughput_mbps_per_tib": top.number("PerUnitStorageThroughput") or 0,
            "compression": (top.text("Compression") or "none").lower(),
            "version": _version(top, "LustreVersion"),
        }
    if top.flag("CreateOpenZFS"):
        draft.data["storage"]["openzfs"] = {
            "deployment": "single-az-2",
            "capacity_gib": top.number("OpenZFSStorageCapacity") or 0,
            "throughput_mbps": top.number("OpenZFSThroughput") or 0,
        }
        notes.changed("storage.openzfs", *_EMPTY)
    else:
        top.any("OpenZFSStorageCapacity")
        top.any("OpenZFSThroughput")
    if (operations := top.number("OpenZFSIops")) and top.flag("CreateOpenZFS"):
        notes.left(
            top.place("OpenZFSIops"),
            f"an OpenZFS has three operations a second for each GiB, not {operations}",
            "give it more capacity",
        )  # fmt: skip
    draft.ledger.rows += notes.close() if not notes.wrong else ()
    draft.ledger.wrong += notes.wrong


def _groups(top: Part, notes: Ledger) -> Iterator[dict[str, Any]]:
    """Groups of all settings: lists in lists, as the templates take them."""
    for number in range(1, _MOST_SETTINGS + 1):
        key = f"InstanceGroupSettings{number}"
        for one in _flat(_json(top, key, notes)):
            if not isinstance(one, Mapping):
                notes.refuse(top.place(key), "must hold groups", "see the template's own default")
                continue
            group = dict(cast("Mapping[str, Any]", one))
            kind = group.pop("InstanceGroupType", None)
            if kind and "SlurmConfig" not in group:
                group["SlurmConfig"] = {"NodeType": kind}
            yield group
        if _json(top, f"RigSettings{number}", notes):
            notes.left(
                top.place(f"RigSettings{number}"),
                "restricted groups run Amazon Nova only, and are not carried over by themselves",
                "write node_groups.<group>.restricted with its Lustre file system and buckets",
            )  # fmt: skip


def _zone(top: Part, groups: list[dict[str, Any]], notes: Ledger, asked: Asked) -> str:
    """The zone of most nodes; groups in other zones are told."""
    named = [text for text in (top.text("AvailabilityZoneIds") or "").split(",") if text.strip()]
    wanted: dict[str, int] = {}
    for group in groups:
        if zone := str(group.get("TargetAvailabilityZoneId") or ""):
            count = group.get("InstanceCount")
            wanted[zone] = wanted.get(zone, 0) + (count if isinstance(count, int) else 0)
    most = max(wanted, key=lambda one: wanted[one], default=named[0].strip() if named else "")
    zone = asked.zone_id or most
    others = [one.strip() for one in named if one.strip() != zone]
    if others[1:] or (others and "KubernetesVersion" not in top and "EKSClusterName" not in top):
        notes.left(
            top.place("AvailabilityZoneIds"), f"nodes are in {zone} only, not in {', '.join(others)}",
            "network.further_zones are for Spot and serving in other zones",
        )  # fmt: skip
    for number, group in enumerate(groups):
        other = group.pop("TargetAvailabilityZoneId", None)
        if other and other != zone:
            notes.changed(
                f"InstanceGroups[{number}].TargetAvailabilityZoneId",
                f"the group was in {one_line(str(other))}: EFA and file systems do not leave {zone}",
                "network.further_zones and zone_id of the group are for Spot and serving in other zones",
            )  # fmt: skip
    return zone


def _network(top: Part, draft: Drafted) -> None:
    cidr = top.text("VpcCIDR")
    network: dict[str, Any] = draft.data.get("network", {})
    if top.flag("CreateVPCStack") is not False and cidr and network and "vpc" not in network:
        network["cidr"] = cidr
        for key in ("VpcId", "PrivateSubnetIds", "NatGatewayIds"):
            top.any(key)  # defaults that mean nothing


def _lustre(top: Part, notes: Ledger) -> dict[str, Any]:
    """A file system like the one that the template makes."""
    number = top.text("FsxFileSystemId")
    makes, size = top.flag("CreateFsxStack"), top.number("StorageCapacity")
    kind = top.text("DeploymentType") or "PERSISTENT_2"
    tier, word = top.number("PerUnitStorageThroughput"), (top.text("DataCompressionType") or "none").lower()
    version = _version(top, "FileSystemTypeVersion")
    top.any("FsxAvailabilityZoneId")
    top.any("FsxSubnetId")
    if number:
        notes.left(
            top.place("FsxFileSystemId"),
            f"the parameters have only the id {one_line(number)}, and nodes need its mount name and group",
            "`ultracluster import --cluster NAME` reads them; or write storage.lustre (deployment existing)",
        )  # fmt: skip
        return {}
    if makes is False or not size:
        return {}
    notes.changed("storage.lustre", *_EMPTY)
    found: dict[str, Any] = {"capacity_gib": size, "compression": word, "version": version}
    if kind in _SCRATCH:
        return {"deployment": kind.lower().replace("_", "-"), **found}
    deployment = f"{kind.lower().replace('_', '-')}-ssd"
    return {"deployment": deployment, **found, "throughput_mbps_per_tib": tier or 0}


def _version(top: Part, key: str) -> str:
    return top.text(key) or "2.15"


def _tags(top: Part, notes: Ledger) -> Iterator[dict[str, str]]:
    """A list or a mapping, both also as JSON text, or `key=value,key=value`."""
    value = top.data.get("Tags")
    written = isinstance(value, list | Mapping)
    text = json.dumps(top.any("Tags")) if written else top.text("Tags") or ""
    try:
        given: Any = json.loads(text) if text[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        notes.refuse(top.place("Tags"), "is not JSON", "correct it")
        return
    if isinstance(given, Mapping):
        pairs = cast("Mapping[str, Any]", given).items()
        yield from ({"Key": str(key), "Value": str(value)} for key, value in pairs)
    elif isinstance(given, list):
        yield from (
            cast("dict[str, str]", one) for one in cast("list[object]", given) if isinstance(one, Mapping)
        )
    else:
        pairs = (word.partition("=") for word in text.split(",") if "=" in word)
        yield from ({"Key": key.strip(), "Value": value.strip()} for key, _, value in pairs)


def _json(top: Part, key: str, notes: Ledger) -> list[Any]:
    """A parameter whose value is JSON text; also where somebody wrote the list itself."""
    value = top.any(key)
    if isinstance(value, list):
        return cast("list[Any]", value)
    if not isinstance(value, str) or not value.strip():
        return []
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        notes.refuse(top.place(key), "is not JSON", "a list of groups, as CreateCluster takes them")
        return []
    if not isinstance(document, list):
        notes.refuse(top.place(key), "is not a list", "a list of groups, as CreateCluster takes them")
        return []
    return cast("list[Any]", document)


def _flat(given: list[Any]) -> Iterator[Any]:
    for one in given:
        if isinstance(one, list):
            yield from cast("list[Any]", one)
        else:
            yield one
