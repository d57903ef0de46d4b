"""HyperPod's inference operator: what it is named, in which version it comes, and what it comes with."""

from __future__ import annotations

import hashlib

from ultracluster.catalog.eks import addon_version as eks_addon_version
from ultracluster.catalog.hyperpod_eks import (
    addon_order,
    hyperpod_addon_version,
    inference_needs,
    inference_role_prefix,
    inference_since,
)
from ultracluster.config.hyperpod_eks import HyperPodInference
from ultracluster.config.kubernetes import HyperPodAddon, HyperPodEks
from ultracluster.model.cluster import Cluster

ADDON: HyperPodAddon = "amazon-sagemaker-hyperpod-inference"
NAMESPACE = "hyperpod-inference-system"
"""Of the operator, its load balancer controller, KEDA and the gateway."""
S3_DRIVER: HyperPodAddon = "aws-mountpoint-s3-csi-driver"
"""It mounts models for the operator, and the volumes of `mountpoint_s3`."""
S3_DRIVER_FLOOR = "v2.0.0-eksbuild.1"
"""The first that takes a role by Pod Identity, as the volumes of `mountpoint_s3` have it."""
BEFORE: tuple[HyperPodAddon, ...] = (S3_DRIVER, "metrics-server", "cert-manager")
"""Add-ons that it requires and that nothing else here brings; the driver for FSx comes with a file system."""
_MOST_OF_A_NAME = 64
_HASH = 8


def inference_of(cluster: Cluster) -> HyperPodInference | None:
    """Its settings; None where there is none."""
    settings = cluster.settings
    return settings.inference if isinstance(settings, HyperPodEks) else None


def serves(cluster: Cluster) -> bool:
    """Whether pods serve models: of the operator, or plain ones."""
    settings = cluster.kubernetes
    return bool(settings and settings.serving) or inference_of(cluster) is not None


def addon_version(settings: HyperPodEks, name: HyperPodAddon) -> str:
    """The version of one of HyperPod's add-ons: the written one, else ours, which is never below what the
    inference operator requires where there is one."""
    if name in settings.addon_versions:
        return settings.addon_versions[name]
    if name == S3_DRIVER and settings.mountpoint_s3:
        return eks_addon_version(name, settings.kubernetes_version)
    ours = hyperpod_addon_version(name)
    least = inference_needs().get(name) if settings.inference else None
    return max(ours, least, key=addon_order) if least else ours


def inference_has(settings: HyperPodEks, feature: str) -> bool:
    """Whether the operator's version has a feature of `catalog/hyperpod_eks.json`."""
    return addon_order(addon_version(settings, ADDON)) >= addon_order(inference_since(feature))


def operator_role_name(cluster_name: str, region: str) -> str:
    """The operator's role that is made where none is named; names of roles are unique in an account."""
    start = inference_role_prefix()
    room = _MOST_OF_A_NAME - len(start) - _HASH - 2
    digest = hashlib.sha256(f"{cluster_name}/{region}".encode()).hexdigest()[:_HASH]
    return f"{start}-{cluster_name[:room].rstrip('-')}-{digest}"


__all__ = [
    "ADDON",
    "BEFORE",
    "NAMESPACE",
    "S3_DRIVER",
    "S3_DRIVER_FLOOR",
    "addon_version",
    "inference_has",
    "inference_of",
    "operator_role_name",
    "serves",
]
