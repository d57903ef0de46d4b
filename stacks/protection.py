"""The stack that switches deletion protection on, once what it protects is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting this stack switches it off.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.security.deletion_protection import DeletionProtection


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
            eks_cluster_name=cluster.environment.cluster_name if cluster.kubernetes else None,
            database_id=database_id,
        )
