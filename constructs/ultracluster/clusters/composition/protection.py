"""Deletion protection, switched on once what it protects is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting it switches it off.
"""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.model import Cluster
from ultracluster.security.deletion_protection import Database, DeletionProtection, EksCluster


def add_protection(
    scope: Construct, cluster: Cluster, *, key: kms.IKey, database_id: str | None
) -> DeletionProtection:
    """Protect the control plane and the accounting database; it holds nothing itself."""
    return DeletionProtection(
        scope,
        "Protection",
        key=key_for(scope, cluster.environment, "logs", key),
        cluster=_control_plane(scope, cluster) if cluster.kubernetes else None,
        database=_database(scope, database_id) if database_id else None,
    )


def _control_plane(scope: Construct, cluster: Cluster) -> EksCluster:
    # loaded when it is needed: it brings CDK modules that the others do not need
    from aws_cdk import aws_eks_v2 as eks

    return eks.Cluster.from_cluster_attributes(scope, "ControlPlane", cluster_name=cluster.cluster_name)


def _database(scope: Construct, name: str) -> Database:
    return rds.DatabaseInstance.from_database_instance_attributes(
        scope,
        "Database",
        instance_identifier=name,
        instance_endpoint_address="",
        port=3306,
        security_groups=[],
    )
