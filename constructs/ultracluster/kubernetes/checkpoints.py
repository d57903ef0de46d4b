"""Tiered checkpoints in a job's pods: where they go, and by which account.

SageMaker Developer Guide, "Set up managed tiered checkpointing"; amzn-sagemaker-checkpointing 1.1.3 on PyPI.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ultracluster.catalog.hyperpod_eks import tiered_checkpoints
from ultracluster.config.hyperpod_eks import CheckpointTier
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.model import Cluster

Manifest = dict[str, Any]
Place = Literal["memory", "s3"]

ACCOUNT = "tiered-checkpoints"
"""The service account whose pods reach the bucket, in each namespace of jobs."""
TIER_VARIABLE = "ULTRACLUSTER_CHECKPOINT_TIER"
"""What the program gives as `s3_tier_base_path`."""
NAME_VARIABLE = "TRAINING_JOB_NAME"
"""As in the library's own examples: what the program gives as `namespace`, which no other job may have."""
_LOGS = "checkpoint-logs"


def tier_of(cluster: Cluster) -> CheckpointTier | None:
    """The bucket of tiered checkpoints; None without one."""
    settings = cluster.kubernetes
    return settings.checkpoint_tier if isinstance(settings, HyperPodEks) else None


def has_tiered_checkpoints(cluster: Cluster) -> bool:
    settings = cluster.kubernetes
    return isinstance(settings, HyperPodEks) and bool(settings.tiered_checkpoints_percent)


def folder_of(tier: CheckpointTier, namespace: str) -> str:
    """The one folder that pods of a namespace reach."""
    return f"s3://{tier.bucket}/{tier.prefix.rstrip('/')}/{namespace}"


def check_checkpoints(cluster: Cluster, place: Place) -> None:
    """Refuse what the cluster does not have.

    Raises:
        ValueError: it says what, and what to write.
    """
    if not has_tiered_checkpoints(cluster):
        raise ValueError(
            "--checkpoints-to is for tiered checkpoints, which this cluster has not: HyperPod on EKS with "
            "orchestrator.tiered_checkpoints_percent"
        )
    if place == "s3" and tier_of(cluster) is None:
        raise ValueError("--checkpoints-to s3 needs orchestrator.checkpoint_tier, with a bucket")


def with_checkpoints(
    cluster: Cluster, spec: Manifest, *, name: str, namespace: str, place: Place | None
) -> Manifest:
    """A pod that saves tiered checkpoints, as it was where it saves none.

    Args:
        spec: of the pod, with one container.
        name: of the job.
        namespace: of Kubernetes.
        place: where its last tier is.
    """
    if place is None:
        return spec
    variables = {NAME_VARIABLE: name}
    tier = tier_of(cluster) if place == "s3" else None
    if tier:
        variables[TIER_VARIABLE] = folder_of(tier, namespace)
        spec = {**spec, "serviceAccountName": ACCOUNT}
    (container,) = spec["containers"]
    env = [{"name": key, "value": value} for key, value in variables.items()]
    # the library's log; the guide's folder of the host is what no level of the Pod Security Standards allows
    mount = {"name": _LOGS, "mountPath": tiered_checkpoints()["log_folder"]}
    container = {
        **container,
        "env": [*container.get("env", []), *env],
        "volumeMounts": [*container["volumeMounts"], mount],
    }
    return {
        **spec,
        "containers": [container],
        "volumes": [*spec["volumes"], {"name": _LOGS, "emptyDir": {}}],
    }


def checkpoint_accounts(cluster: Cluster, namespaces: Iterable[str]) -> tuple[Manifest, ...]:
    """The service account of these namespaces; nothing where no bucket is named."""
    if tier_of(cluster) is None:
        return ()
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": namespace},
            "automountServiceAccountToken": False,
        }
        for namespace in namespaces
    )
