"""Deletion protection, switched on once what it protects is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting it switches it off.
"""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.model import Cluster
from ultracluster.security.deletion_protection import DeletionProtection


def add_protection(
    scope: Construct, cluster: Cluster, *, key: kms.IKey, database_id: str | None
) -> DeletionProtection:
    """Protect the control plane and the accounting database; it holds nothing itself."""
    return DeletionProtection(
        scope,
        "Protection",
        key=key_for(scope, cluster.environment, "logs", key),
        eks_cluster_name=cluster.cluster_name if cluster.kubernetes else None,
        database_id=database_id,
    )
