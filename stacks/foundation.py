"""The stack of what everything else is encrypted with. It waits for nothing."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.parts import crossing, removal
from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.kubernetes.karpenter import karpenter_groups
from ultracluster.security.cluster_key import AUTO_SCALING, FLEET, PCS, SPOT, ClusterKey


class FoundationStack(Stack):
    """The key, and the log group of a Kubernetes control plane.

    EKS goes on writing logs while a control plane is deleted, and makes the group again when it is gone:
    in the stack of the control plane it would stand in the way of the next try.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Environment, env: cdk.Environment
    ) -> None:
        super().__init__(
            scope, construct_id, env=env, termination_protection=config.protect,
            description=f"Ultracluster {config.name}: key",
        )  # fmt: skip
        if config.storage.key:
            key = kms.Key.from_key_arn(self, "Key", config.storage.key.arn)
        else:
            key = ClusterKey(
                self, "Key", alias=f"ultracluster/{config.name}", launched_by=_launched_by(config)
            ).key
        self.key_arn = crossing(self, "KeyArn", key.key_arn)
        if isinstance(config.orchestrator, Eks | HyperPodEks):
            from ultracluster.clusters.eks.logs import control_plane_logs

            control_plane_logs(
                self,
                "ControlPlaneLogs",
                cluster_name=config.cluster_name,
                key=key,
                days=config.orchestrator.log_retention_days,
                removal_policy=removal(config),
            )


def _launched_by(config: Environment) -> tuple[str, ...]:
    """Service-linked roles that launch instances with encrypted volumes."""
    kind = config.orchestrator.kind
    if karpenter_groups(config):
        return (AUTO_SCALING, SPOT, FLEET)
    if kind in ("eks", "hyperpod-eks"):  # HyperPod's system nodes are a group of EKS
        return (AUTO_SCALING,)
    return (PCS,) if kind == "pcs" else ()
