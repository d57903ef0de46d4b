"""The stack of what everything else is encrypted with. It waits for nothing."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.guard import already_judged
from ultracluster.model import Cluster
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.stacks.parts import crossing, removal


class FoundationStack(Stack):
    """The key, and the log group of a Kubernetes control plane.

    EKS still writes logs while a control plane is deleted, and creates the group again when it is gone:
    in the stack of the control plane that group would block the next attempt.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: Cluster, env: cdk.Environment
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=cluster.environment.protect,
            description=f"Ultracluster {cluster.name}: key",
        )  # fmt: skip
        already_judged(self)
        existing = cluster.environment.storage.key
        if existing:
            key = kms.Key.from_key_arn(self, "Key", existing.arn)
        else:
            alias = f"ultracluster/{cluster.name}"
            key = ClusterKey(self, "Key", alias=alias, launched_by=cluster.launched_by).key
        self.key_arn = crossing(self, "KeyArn", key.key_arn)
        if cluster.kubernetes:
            from ultracluster.clusters.eks.logs import control_plane_logs

            named = cluster.environment.storage.keys.logs
            control_plane_logs(
                self,
                "ControlPlaneLogs",
                cluster_name=cluster.environment.cluster_name,
                key=kms.Key.from_key_arn(self, "LogsKey", named.arn) if named else key,
                days=cluster.kubernetes.log_retention_days,
                removal_policy=removal(cluster.environment),
            )
