"""What everything else is encrypted with. It waits for nothing."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import removal
from ultracluster.clusters.eks.logs import control_plane_logs
from ultracluster.model import Cluster
from ultracluster.model.observability import key_uses
from ultracluster.security.cluster_key import ClusterKey, allow_use


def add_foundation(scope: Construct, cluster: Cluster, *, logs: bool = True) -> kms.IKey:
    """Add the key, where it does not exist, and the log group of a Kubernetes control plane; gives the key.

    EKS still writes logs while a control plane is deleted, and creates the group again when it is gone:
    in the stack of the control plane that group would block the next attempt.

    Args:
        logs: with the log group; False where the control plane makes its own.
    """
    existing = cluster.environment.storage.key
    if existing:
        key = kms.Key.from_key_arn(scope, "Key", existing.arn)
    else:
        alias = f"ultracluster/{cluster.name}"
        key = ClusterKey(scope, "Key", alias=alias, launched_by=cluster.launched_by).key
        allow_use(scope, key, *key_uses(cluster))
    if logs:
        _add_control_plane_logs(scope, cluster, key)
    return key


def _add_control_plane_logs(scope: Construct, cluster: Cluster, key: kms.IKey) -> None:
    if cluster.kubernetes is None:
        return
    control_plane_logs(
        scope,
        "ControlPlaneLogs",
        cluster_name=cluster.cluster_name,
        key=key_for(scope, cluster.environment, "logs", key),
        days=cluster.kubernetes.log_retention_days,
        removal_policy=removal(cluster.environment),
    )
