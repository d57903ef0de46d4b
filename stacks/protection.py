"""The stack that switches deletion protection on, once what it protects is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting this stack switches it off.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.security.deletion_protection import Database, DeletionProtection, EksCluster


class ProtectionStack(Stack):
    """Deletion protection of control plane and accounting database; it holds nothing itself."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        env: cdk.Environment,
        key_arn: str,
        database_id: str | None,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env,
            description=f"Ultracluster {cluster.name}: deletion protection",
        )  # fmt: skip
        already_judged(self)
        DeletionProtection(
            self,
            "Protection",
            key=kms.Key.from_key_arn(self, "Key", key_arn),
            cluster=self._control_plane(cluster) if cluster.kubernetes else None,
            database=self._database(database_id) if database_id else None,
        )

    def _control_plane(self, cluster: Cluster) -> EksCluster:
        # loaded when it is needed: it brings CDK modules that the others do not need
        from aws_cdk import aws_eks_v2 as eks

        return eks.Cluster.from_cluster_attributes(
            self, "ControlPlane", cluster_name=cluster.environment.cluster_name
        )

    def _database(self, name: str) -> Database:
        return rds.DatabaseInstance.from_database_instance_attributes(
            self,
            "Database",
            instance_identifier=name,
            instance_endpoint_address="",
            port=3306,
            security_groups=[],
        )
