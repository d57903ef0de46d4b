"""The stack that switches deletion protection and stack policies on, once what they protect is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting this stack switches both off.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.protection import add_protection
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack


class ProtectionStack(PartStack):
    """Deletion protection of control plane and accounting database, policies of the stacks that hold data; it
    holds nothing itself."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        key_arn: str,
        database_id: str | None,
        guarded: Sequence[str],
    ) -> None:
        """Make the stack.

        Args:
            guarded: names of the stacks that hold data.
        """
        super().__init__(scope, cluster, "protection", env=env, holds="deletion protection", protect=False)
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        add_protection(self, cluster, key=key, database_id=database_id, stacks=guarded)
