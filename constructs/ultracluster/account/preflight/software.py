"""Images of nodes, and versions of add-ons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from ultracluster.account.preflight.rows import Question, Row, Situation
from ultracluster.catalog.eks import addon_version, addons
from ultracluster.config.kubernetes import HyperPodAddon
from ultracluster.config.orchestrator import Eks, HyperPodEks
from ultracluster.model import Cluster, Group
from ultracluster.model.inference import BEFORE, S3_DRIVER
from ultracluster.model.inference import addon_version as hyperpod_version
from ultracluster.model.observability import OBSERVABILITY_ADDON, uses_addon


def questions(situation: Situation) -> Iterator[Question]:
    cluster = situation.cluster
    images: dict[str, list[Group]] = defaultdict(list)
    for group in cluster.groups.values():
        if group.settings.image:
            images[group.settings.image].append(group)
    for image, groups in images.items():
        yield Question("software", image, lambda image=image, groups=groups: _image(situation, image, groups))
    if plane := cluster.kubernetes:
        for name, version in wanted_addons(cluster).items():
            yield Question(
                "software", f"add-on {name}",
                lambda name=name, version=version: _addon(situation, name, version, plane.kubernetes_version),
            )  # fmt: skip


def wanted_addons(cluster: Cluster) -> dict[str, str]:
    """The add-ons of a Kubernetes control plane and the version of each."""
    plane = cluster.kubernetes
    assert plane
    try:
        found = {
            name: addon_version(name, plane.kubernetes_version)
            for name, asked in addons().items()
            if asked is None or getattr(plane, asked)
        }
    except KeyError:  # a release that the catalogue lacks: rules say so
        found = {}
    match plane:
        case Eks():
            return found
        case HyperPodEks():
            return found | _hyperpod_addons(cluster, plane)
        case _ as never:
            assert_never(never)


def _hyperpod_addons(cluster: Cluster, plane: HyperPodEks) -> dict[str, str]:
    parts: dict[HyperPodAddon, object] = {
        "amazon-sagemaker-hyperpod-taskgovernance": plane.task_governance,
        "amazon-sagemaker-hyperpod-training-operator": plane.training_operator,
        OBSERVABILITY_ADDON: uses_addon(cluster),
        "amazon-sagemaker-hyperpod-inference": plane.inference,
        "amazon-sagemaker-spaces": plane.spaces,
    }
    if plane.mountpoint_s3:
        parts[S3_DRIVER] = True
    if plane.inference:
        parts |= dict.fromkeys(BEFORE, True)
    return {name: hyperpod_version(plane, name) for name, wanted in parts.items() if wanted}


def _image(situation: Situation, image: str, groups: list[Group]) -> Iterator[Row]:
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
    if situation.cluster.traits.hyperpod and found.get("OwnerId", owner) != owner:
        yield Row(
            f"{image} owner", "red", f"belongs to {found['OwnerId']}",
            "HyperPod takes images of the same account: copy it",
        )  # fmt: skip
    device = situation.cluster.root_device
    if device and found.get("RootDeviceName") and found["RootDeviceName"] != device:
        yield Row(
            f"{image} root device", "red", f"is {found['RootDeviceName']}",
            f"write `root_device: {found['RootDeviceName']}`",
        )  # fmt: skip
    for group in groups:
        yield from _fits(image, found, group)


def _fits(image: str, found: Mapping[str, Any], group: Group) -> Iterator[Row]:
    instance_type, settings = group.type, group.settings
    architecture = found.get("Architecture", "")
    if instance_type and instance_type.architecture and architecture != instance_type.architecture:
        yield Row(
            f"{image} architecture", "red",
            f"is {architecture}, {settings.instance_type} of {group.name} is {instance_type.architecture}",
            f"name an image for {instance_type.architecture}",
        )  # fmt: skip
    size = max(
        (
            mapping.get("Ebs", {}).get("VolumeSize", 0)
            for mapping in found.get("BlockDeviceMappings", [])
            if mapping.get("DeviceName") == found.get("RootDeviceName")
        ),
        default=0,
    )
    if not group.in_service and size > settings.root_volume_gib:
        yield Row(
            f"{image} size", "red", f"needs {size} GiB, {group.name} has {settings.root_volume_gib}",
            f"write `root_volume_gib: {size}`",
        )  # fmt: skip


def _addon(situation: Situation, name: str, version: str, release: str) -> Iterator[Row]:
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
