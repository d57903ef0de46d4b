"""Images of nodes, and versions of add-ons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.catalog.eks import addon_version, addons
from ultracluster.catalog.hyperpod_eks import hyperpod_addon_version
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import HYPERPOD, KUBERNETES
from ultracluster.model.types import instance_type_of


def questions(situation: Situation) -> Iterator[Question]:
    environment = situation.environment
    images: dict[str, list[tuple[str, NodeGroup]]] = defaultdict(list)
    for name, group in environment.node_groups.items():
        if group.image:
            images[group.image].append((name, group))
    for image, groups in images.items():
        yield Question("software", image, lambda image=image, groups=groups: _image(situation, image, groups))
    if environment.orchestrator.kind in KUBERNETES:
        for name, version in wanted_addons(situation).items():
            yield Question(
                "software", f"add-on {name}",
                lambda name=name, version=version: _addon(situation, name, version),
            )  # fmt: skip


def wanted_addons(situation: Situation) -> dict[str, str]:
    """The EKS add-ons of an environment and the version of each."""
    orchestrator = situation.environment.orchestrator
    release = str(getattr(orchestrator, "kubernetes_version", ""))
    try:
        found = {name: addon_version(name, release) for name in addons()}
    except KeyError:  # a release that the catalogue lacks: rules say so
        found = {}
    if orchestrator.kind == "hyperpod-eks":
        parts = {
            "amazon-sagemaker-hyperpod-taskgovernance": orchestrator.task_governance,
            "amazon-sagemaker-hyperpod-training-operator": orchestrator.training_operator,
            "amazon-sagemaker-hyperpod-observability": orchestrator.observability,
            "amazon-sagemaker-hyperpod-inference": orchestrator.inference,
        }
        given: Mapping[str, str] = {
            str(name): version for name, version in orchestrator.addon_versions.items()
        }
        for name, wanted in parts.items():
            if wanted:
                found[name] = given.get(name) or hyperpod_addon_version(name)
    return found


def _image(situation: Situation, image: str, groups: list[tuple[str, NodeGroup]]) -> Iterator[Row]:
    environment = situation.environment
    if image.startswith("/"):
        value = situation.client("ssm").get_parameter(Name=image)["Parameter"]["Value"]
        yield Row(f"{image} parameter", "green", f"is {value} now")
        image = value
    answer = situation.client("ec2").describe_images(ImageIds=[image])
    if not answer["Images"]:
        yield Row(
            image, "red", f"is not in {environment.region}, or not shared with this account", "name another"
        )
        return
    found = answer["Images"][0]
    state = found.get("State", "")
    if state != "available":
        level = "yellow" if state in ("pending", "transient") else "red"
        yield Row(image, level, f"is {state}", "wait for it, or name another one")
    else:
        yield Row(image, "green", str(found.get("Name", "")))
    owner = situation.account.identity().account
    if environment.orchestrator.kind in HYPERPOD and found.get("OwnerId", owner) != owner:
        yield Row(
            f"{image} owner", "red", f"belongs to {found['OwnerId']}",
            "HyperPod takes images of the same account: copy it",
        )  # fmt: skip
    device = getattr(environment.orchestrator, "root_device", None)
    if device and found.get("RootDeviceName") and found["RootDeviceName"] != device:
        yield Row(
            f"{image} root device", "red", f"is {found['RootDeviceName']}",
            f"write `root_device: {found['RootDeviceName']}`",
        )  # fmt: skip
    for name, group in groups:
        yield from _fits(situation, image, found, name, group)


def _fits(
    situation: Situation, image: str, found: Mapping[str, Any], name: str, group: NodeGroup
) -> Iterator[Row]:
    known = instance_type_of(situation.environment, group)
    architecture = found.get("Architecture", "")
    if known and known.architecture and architecture != known.architecture:
        yield Row(
            f"{image} architecture", "red",
            f"is {architecture}, {group.instance_type} of {name} is {known.architecture}",
            f"name an image for {known.architecture}",
        )  # fmt: skip
    size = max(
        (
            mapping.get("Ebs", {}).get("VolumeSize", 0)
            for mapping in found.get("BlockDeviceMappings", [])
            if mapping.get("DeviceName") == found.get("RootDeviceName")
        ),
        default=0,
    )
    if situation.environment.orchestrator.kind not in HYPERPOD and size > group.root_volume_gib:
        yield Row(
            f"{image} size", "red", f"needs {size} GiB, {name} has {group.root_volume_gib}",
            f"write `root_volume_gib: {size}`",
        )  # fmt: skip


def _addon(situation: Situation, name: str, version: str) -> Iterator[Row]:
    release = str(getattr(situation.environment.orchestrator, "kubernetes_version", ""))
    pages = (
        situation.client("eks")
        .get_paginator("describe_addon_versions")
        .paginate(addonName=name, kubernetesVersion=release)
    )
    versions = [
        row["addonVersion"]
        for page in pages
        for addon in page["addons"]
        for row in addon.get("addonVersions", [])
        if "addonVersion" in row
    ]
    what = f"add-on {name}"
    if version in versions:
        yield Row(what, "green", f"{version} for Kubernetes {release}")
    else:
        newest = ", ".join(versions[:3])
        yield Row(
            what, "red", f"this Region has no {version} for Kubernetes {release}",
            f"it has {newest}" if newest else "it has none at all: is the release right?",
        )  # fmt: skip
