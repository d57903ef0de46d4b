"""EKS releases, add-ons, node images and charts; the JSON files next to it hold them with source and date."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from ultracluster.catalog.eks_calendar import kubernetes_releases
from ultracluster.catalog.files import catalog_file
from ultracluster.catalog.instance_facts import InstanceType

_document = partial(catalog_file, "eks_addons")

__all__ = [
    "NEURON",
    "addon_tolerations",
    "addon_version",
    "addons",
    "ami_type",
    "charts",
    "kube_scheduler_tag",
    "kubectl_release",
    "kubernetes_releases",
    "mpi_operator_image",
    "node_group_limits",
    "node_image_date",
    "refused_zones",
]

AmiType = Literal[
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    "AL2023_x86_64_NEURON",
]


NEURON = "neuron-helm-chart"
"""Neuron's chart: its device plugin, and its scheduler extension."""


def kubectl_release() -> str:
    """The Kubernetes release of the kubectl that applies charts and manifests."""
    return _document()["kubectl"]["release"]


def refused_zones() -> tuple[str, ...]:
    """Zone ids in which EKS takes no subnet for a control plane."""
    return tuple(_document()["refused_zones"]["zones"])


def addons() -> dict[str, str | None]:
    """Names of the add-ons, in the order in which they are installed, each with the setting that asks for it;
    None where every cluster has it."""
    return {name: row.get("asked") for name, row in _document()["addons"].items()}


def addon_version(name: str, kubernetes: str) -> str:
    """The pinned version of an add-on for a Kubernetes release.

    Raises:
        KeyError: the add-on or the release is not in the table.
    """
    versions: dict[str, str] = _document()["addons"][name]["versions"]
    return versions["*"] if "*" in versions and kubernetes in kubernetes_releases() else versions[kubernetes]


def addon_tolerations(name: str) -> tuple[str, ...]:
    """Where the tolerations of an add-on's pods stand in its values: `controller.tolerations`.

    Empty where it tolerates every taint.
    """
    return tuple(_document()["addons"][name].get("tolerations", ()))


def node_image_date(kubernetes: str) -> str:
    """The date of the AL2023 images of EKS that are pinned for a Kubernetes release: `20261012`.

    Raises:
        KeyError: the release is not in the table.
    """
    return _document()["node_images"]["dates"][kubernetes]


def node_group_limits() -> tuple[int, int]:
    """By default quotas: managed node groups of a cluster, and nodes of a group."""
    limits = _document()["limits"]
    return limits["node_groups"], limits["nodes_per_group"]


def ami_type(instance_type: InstanceType) -> AmiType | None:
    """The kind of EKS image that fits a type; None where EKS has none (Neuron on Arm).

    It is always given, never left to EKS: without it accelerated types start from an image without a driver
    (aws/aws-cdk#31347, #26354).
    """
    arm = instance_type.architecture == "arm64"
    if instance_type.accelerator is None:
        return "AL2023_ARM_64_STANDARD" if arm else "AL2023_x86_64_STANDARD"
    if instance_type.accelerator.manufacturer == "NVIDIA":
        return "AL2023_ARM_64_NVIDIA" if arm else "AL2023_x86_64_NVIDIA"
    return None if arm else "AL2023_x86_64_NEURON"


def charts() -> Mapping[str, Mapping[str, Any]]:
    """The Helm charts of others by name: version, repository, namespace, source (`charts.json`)."""
    return catalog_file("charts")["charts"]


def kube_scheduler_tag(kubernetes: str) -> str | None:
    """The image tag of a second scheduler for a Kubernetes release; None where none is known."""
    return catalog_file("charts")["kube_scheduler"]["tags"].get(kubernetes)


def system_pods() -> Mapping[str, Mapping[str, Any]]:
    """Pods of add-ons and charts: `on_every_node` by what brings them, `once` with how many there are, too.

    Read-only.
    """
    return catalog_file("system_pods")


def mpi_operator_image() -> str:
    """The container image of the MPI operator's pinned release (`mpi_operator.json`)."""
    return catalog_file("mpi_operator")["image"]
