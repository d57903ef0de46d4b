"""The stack that switches deletion protection on, once what it protects is there.

Set from the start, it would keep CloudFormation from taking back a creation that failed: EKS and RDS refuse
to delete what is protected, whoever asks. Deleting this stack switches it off.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config import Environment
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.security.deletion_protection import DeletionProtection


class ProtectionStack(Stack):
    """Deletion protection of control plane and accounting database; it holds nothing itself."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Environment,
        env: cdk.Environment,
        key_arn: str,
        database_id: str | None,
    ) -> None:
        super().__init__(
            scope, construct_id, env=env,
            description=f"Ultracluster {config.name}: deletion protection",
        )  # fmt: skip
        DeletionProtection(
            self,
            "Protection",
            key=kms.Key.from_key_arn(self, "Key", key_arn),
            eks_cluster_name=config.cluster_name if config.orchestrator.kind in KUBERNETES else None,
            database_id=database_id,
        )
