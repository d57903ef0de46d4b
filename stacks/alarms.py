"""The stack of the alarms. It waits for the file systems, not for the cluster, and nothing waits for it.

What must be there before the cluster, so that its first deploy is told, is in the stack `observability`.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.alarms import add_cluster_alarms
from ultracluster.clusters.composition.parts import ObservabilityParts, StorageParts
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack


class AlarmStack(PartStack):
    """Alarms on Lustre, database, Prometheus workspace, and on what is counted in logs."""

    def __init__(
        self,
        scope: Construct,
        cluster: Cluster,
        *,
        env: cdk.Environment,
        storage: StorageParts,
        observability: ObservabilityParts,
        key_arn: str,
    ) -> None:
        super().__init__(scope, cluster, "alarms", env=env, holds="alarms", protect=False)
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        add_cluster_alarms(self, cluster, storage=storage, observability=observability, key=key)
