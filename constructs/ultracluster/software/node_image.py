"""Which image the nodes of a group boot: what the file names, else what the orchestrator takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

from ultracluster.catalog.eks import ami_type, kubernetes_releases, node_image_date
from ultracluster.catalog.images import Family, Image, newest, own_image
from ultracluster.config.environment import Environment
from ultracluster.config.instance_types import instance_type_of
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.orchestrator import (
    Eks,
    HyperPodEks,
    HyperPodSlurm,
    ParallelCluster,
    Pcs,
)
from ultracluster.software.locked_images import locked_image

_VARIANTS: dict[str, Family] = {
    "STANDARD": "eks-al2023-standard",
    "NVIDIA": "eks-al2023-nvidia",
    "NEURON": "eks-al2023-neuron",
}


_PARALLELCLUSTER_OS = {"alinux2023": "al2023", "ubuntu2204": "ubuntu22.04", "ubuntu2404": "ubuntu24.04"}
_EKS_FULL = re.compile(r"^(1\.\d\d)\.\d+-(\d{8})$")


@dataclass(frozen=True, slots=True)
class NodeImage:
    """The image that a group's nodes boot, as far as it is known before there is a node."""

    image: Image | None
    """None: of this one nothing is known."""
    text: str
    """In words, with what is not sure about it."""
    by: Literal["file", "lock", "pin", "newest"] = "newest"
    """Who says so: the environment file, its lock, this package, or none of them: the newest boots."""


def node_image(environment: Environment, name: str) -> NodeImage:
    """The image of the group `name`."""
    group = environment.node_groups[name]
    if group.image:
        return _named(group.image)
    orchestrator, release = environment.orchestrator, group.image_release
    arch = _arch(environment, group)
    match orchestrator:
        case HyperPodSlurm():
            return _newest("hyperpod-slurm", arch, release=release, words="HyperPod's image for Slurm")
        case HyperPodEks() if group.role != "system":
            kubernetes = orchestrator.kubernetes_version
            words = f"HyperPod's image for EKS {kubernetes}"
            return _newest("hyperpod-eks", arch, kubernetes=kubernetes, release=release, words=words)
        case Eks() | HyperPodEks():
            return _eks(environment, name, group, orchestrator.kubernetes_version)
        case ParallelCluster():
            os, version = orchestrator.os, orchestrator.version
            catalogue_os = _PARALLELCLUSTER_OS.get(os, os)
            image = newest(family="parallelcluster", arch=arch, os=catalogue_os, release=version)
            return NodeImage(image, _words(f"ParallelCluster {version} for {os} on {arch}", image), "file")
        case Pcs():
            return NodeImage(None, "none: a PCS group names its image")
        case _ as never:
            assert_never(never)


def _eks(environment: Environment, name: str, group: NodeGroup, kubernetes: str) -> NodeImage:
    instance_type = instance_type_of(environment, group)
    type_ = ami_type(instance_type) if instance_type else None
    if type_ is None:
        return NodeImage(None, "unknown: EKS has no image for this instance type")
    release, by = image_release(environment, name)
    arch = "arm64" if "ARM_64" in type_ else "x86_64"
    image = newest(
        family=_VARIANTS[type_.rpartition("_")[2]], arch=arch, kubernetes=kubernetes, release=release or None
    )
    words = f"EKS {type_} {kubernetes}, {release}"
    if not _EKS_FULL.match(release):
        # it cannot be asked for by its date only
        words += " as the newest"
    return NodeImage(image, _words(words, image), by)


def image_release(environment: Environment, group: str) -> tuple[str, Literal["file", "lock", "pin"]]:
    """Release of EKS's image for a group, `1.34.12-20261012` or only the date, and who says so; empty where
    nothing is known of the Kubernetes release.

    The environment's lock completes a date; a full release in the file stands above it.
    """
    plane = environment.kubernetes
    assert plane is not None
    in_file = plane.node_image_release
    if in_file and _EKS_FULL.match(in_file):
        return in_file, "file"
    kubernetes = plane.kubernetes_version
    locked = locked_image(environment, group)
    of = _EKS_FULL.match(locked) if locked else None
    # a lock from before the control plane moved up would start nodes of the old release
    if locked and of and of[1] == kubernetes and (not in_file or locked.endswith(in_file)):
        return locked, "lock"
    if in_file:
        return in_file, "file"
    return node_image_date(kubernetes) if kubernetes in kubernetes_releases() else "", "pin"


def full_image_release(environment: Environment, group: str) -> str | None:
    """The release as EKS takes it (`1.34.12-20261012`); None where only its date is known."""
    release, _ = image_release(environment, group)
    return release if _EKS_FULL.match(release) else None


def image_date(environment: Environment, group: str) -> str | None:
    """The date of EKS's image for a group, `20261012`; None where nothing is known."""
    return image_release(environment, group)[0].rpartition("-")[2] or None


def _newest(
    family: Family, arch: str, *, words: str, kubernetes: str | None = None, release: str | None = None
) -> NodeImage:
    image = newest(family=family, arch=arch, kubernetes=kubernetes, release=release)
    if release:
        return NodeImage(image, _words(f"{words} of {release} on {arch}", image), "file")
    return NodeImage(image, _words(f"{words}, the newest on {arch}", image))


def _words(request: str, image: Image | None) -> str:
    return f"{request}: {image.id}" if image else f"{request}: not in the catalogue"


def _arch(environment: Environment, group: NodeGroup) -> str:
    instance_type = instance_type_of(environment, group)
    return instance_type.architecture if instance_type and instance_type.architecture else "x86_64"


_PARAMETERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Image | None]], ...] = (
    (
        re.compile(r"/aws/service/pcs/ami/dlami-base-ubuntu(\d\d)(\d\d)/(x86_64|arm64)/.+"),
        lambda m: newest(family="pcs-ready-dlami", os=f"ubuntu{m[1]}.{m[2]}", arch=m[3]),
    ),
    (
        re.compile(
            r"/aws/service/deeplearning/ami/(x86_64|arm64)/base-oss-nvidia-driver-gpu-(ubuntu|al|amazon-linux)-?([\d.]+)/.+"
        ),
        lambda m: newest(family="dlami-base", os=("ubuntu" if m[2] == "ubuntu" else "al") + m[3], arch=m[1]),
    ),
    (
        re.compile(r"/aws/service/sagemaker-hyperpod/ami/(x86_64|arm64)/slurm-ubuntu-([\d.]+)/latest/.+"),
        lambda m: newest(family="hyperpod-slurm", arch=m[1], os=f"ubuntu{m[2]}"),
    ),
    (
        re.compile(r"/aws/service/sagemaker-hyperpod/ami/(x86_64|arm64)/eks-(1\.\d+)-[^/]+/latest/.+"),
        lambda m: newest(family="hyperpod-eks", arch=m[1], kubernetes=m[2]),
    ),
    (
        re.compile(
            r"/aws/service/eks/optimized-ami/(1\.\d+)/amazon-linux-2023/(x86_64|arm64)/(standard|nvidia|neuron)/(.+)"
        ),
        lambda m: newest(
            family=_VARIANTS[m[3].upper()], kubernetes=m[1], arch=m[2], release=_day(m[4]) or None
        ),
    ),
)


def _day(name: str) -> str:
    """`20261012` of `amazon-eks-node-al2023-x86_64-nvidia-1.34-v20261012/image_id`; empty of the newest."""
    match = re.search(r"-v(20\d{6})/", name)
    return match[1] if match else ""


def _named(text: str) -> NodeImage:
    """A public parameter, whose newest known image counts; else what a record of one's own says of it."""
    for pattern, look_up in _PARAMETERS:
        # an older version of a parameter holds an image that is not known
        if ":" not in text and (match := pattern.fullmatch(text)):
            image = look_up(match)
            return NodeImage(image, _words(f"what {text} names, the newest", image), "newest")
    if own := own_image(text):
        return NodeImage(own, _words(text, own), "file")
    return NodeImage(None, f"{text}: what is on it is not known", "file")
