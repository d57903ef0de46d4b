"""HyperPod's add-ons on an EKS control plane, with or without a HyperPod cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence

from aws_cdk import aws_eks as eks
from constructs import Construct, IConstruct

from ultracluster.catalog.hyperpod_eks import hyperpod_addon_tolerations
from ultracluster.config.kubernetes import HyperPodAddon, HyperPodEks
from ultracluster.kubernetes.tolerations import Tolerations, with_tolerations
from ultracluster.model.inference import addon_version


def cert_manager(
    scope: Construct,
    *,
    config: HyperPodEks,
    cluster_name: str,
    after: Sequence[IConstruct] = (),
    tolerations: Tolerations | None = None,
) -> eks.CfnAddon:
    """What the training operator and inference get their certificates from; it needs no HyperPod cluster.

    Args:
        after: groups of CPU nodes for it.
        tolerations: of the taints of these groups.
    """
    addon = hyperpod_addon(scope, config, "cert-manager", cluster_name)
    values = with_tolerations({}, hyperpod_addon_tolerations("cert-manager") or (), tolerations or [])
    addon.configuration_values = json.dumps(values, sort_keys=True) if values else None
    for dependency in after:
        addon.node.add_dependency(dependency)
    return addon


def hyperpod_addon(
    scope: Construct, config: HyperPodEks, name: HyperPodAddon, cluster_name: str
) -> eks.CfnAddon:
    return eks.CfnAddon(
        scope,
        "".join(word.capitalize() for word in name.removeprefix("amazon-sagemaker-").split("-")),
        addon_name=name,
        addon_version=addon_version(config, name),
        cluster_name=cluster_name,
        resolve_conflicts="OVERWRITE",
    )
