"""What lets jobs save tiered checkpoints to S3: a role, and who has it.

SageMaker Developer Guide, "Set up managed tiered checkpointing"; EKS User Guide, "Grant Pods access to AWS
resources based on tags" (session tags of Pod Identity).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.roles import pod_role
from ultracluster.clusters.job_scheduling import Applies
from ultracluster.config.hyperpod_eks import CheckpointTier
from ultracluster.kubernetes.checkpoints import ACCOUNT, checkpoint_accounts
from ultracluster.kubernetes.isolation import DEFAULT, job_namespace
from ultracluster.kubernetes.scheduling import scheduling
from ultracluster.model import Cluster
from ultracluster.security.acknowledgements import acknowledge, wildcard

OWN_NAMESPACE = "${aws:PrincipalTag/kubernetes-namespace}"
"""Pod Identity tags each session with the namespace of its pod: a folder of its own for each."""
_FILES = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]


class CheckpointTierAccess(Construct):
    """A role for one folder of a bucket, in which pods of each namespace reach a folder of their own, and the
    service account that has the role in each namespace of jobs.

    Attributes:
        role: the IAM role.
        accounts: the service accounts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: Cluster,
        tier: CheckpointTier,
        kubectl: Applies,
        cluster_name: str,
        eks_cluster_arn: str,
    ) -> None:
        """Make them.

        Args:
            cluster: whose teams' namespaces get an account, beside `default`. Those that HyperPod makes for
                task governance get theirs from `ultracluster export team-namespaces`.
            tier: the folder.
            kubectl: the way into the cluster.
            cluster_name: of the EKS cluster.
            eks_cluster_arn: its ARN: nobody else hands out the role.
        """
        super().__init__(scope, construct_id)
        self.role = pod_role(
            self, "Role", cluster_arn=eks_cluster_arn, description=f"Tiered checkpoints of {cluster_name}"
        )
        self._allow(tier)
        teams = list(cluster.environment.teams)
        spaces = dict.fromkeys([DEFAULT, *(job_namespace(cluster, name).name for name in teams)])
        for number, space in enumerate(spaces, start=1):
            eks.CfnPodIdentityAssociation(
                self,
                f"Identity{number}",
                cluster_name=cluster_name,
                namespace=space,
                service_account=ACCOUNT,
                role_arn=self.role.role_arn,
            )
        namespaces = list(spaces) if scheduling(cluster).namespaces else [DEFAULT]
        self.accounts: IConstruct = kubectl.add_manifest(
            "CheckpointAccounts", *checkpoint_accounts(cluster, namespaces)
        )

    def _allow(self, tier: CheckpointTier) -> None:
        stack = Stack.of(self)
        bucket = f"arn:{stack.partition}:s3:::{tier.bucket}"
        own = f"{tier.prefix.rstrip('/')}/{OWN_NAMESPACE}"
        files = f"{bucket}/{own}/*"
        within = {"StringLike": {"s3:prefix": [own, f"{own}/*"]}}
        self._statement("ListCheckpoints", ["s3:ListBucket"], [bucket], within)
        self._statement("FindCheckpoints", ["s3:GetBucketLocation"], [bucket])
        self._statement("Checkpoints", [*_FILES, "s3:AbortMultipartUpload"], [files])
        if tier.key:
            through = {"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}}
            self._statement("CheckpointKey", ["kms:Decrypt", "kms:GenerateDataKey"], [tier.key.arn], through)
        if tier.metrics_namespace:
            named = {"StringEquals": {"cloudwatch:namespace": tier.metrics_namespace}}
            self._statement("WriteMetrics", ["cloudwatch:PutMetricData"], ["*"], named)
        accepted = {wildcard(self, files): "Checkpoints that do not exist yet, of the pod's own namespace."}
        if tier.metrics_namespace:
            accepted["AwsSolutions-IAM5[Resource::*]"] = (
                "PutMetricData knows no resource; one namespace only."
            )
        acknowledge(self.role, accepted)

    def _statement(
        self, sid: str, actions: list[str], resources: list[str], conditions: Mapping[str, Any] | None = None
    ) -> None:
        self.role.add_to_policy(
            iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
        )
