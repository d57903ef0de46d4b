"""Parts of SageMaker HyperPod on EKS that may be switched on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import OR_TOKEN, Arn, BucketName, Many, Model
from ultracluster.config.nodes import GroupName
from ultracluster.config.storage import ExistingKey

Resilience = Literal["checkpointless", "elastic"]
"""Kinds of training that need more than the training operator."""


class KarpenterAutoscaling(Model):
    """HyperPod's own Karpenter starts nodes for pods that wait, and ends idle ones, in the compute groups
    whose `count` is 0."""

    max_nodes: Annotated[int, Field(ge=1, le=6758)]
    """Nodes at the most in each of those groups."""
    idle_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    """Minutes that a node is empty before it is ended."""


class HyperPodObservability(Model):
    """HyperPod's observability add-on: metrics of nodes, accelerators and jobs in Amazon Managed Service for
    Prometheus."""

    workspace_arn: Annotated[
        str, Field(pattern=r"^arn:aws[a-z-]*:aps:[a-z0-9-]+:[0-9]{12}:workspace/ws-[0-9a-f-]+$"), OR_TOKEN
    ]
    """ARN of the Prometheus workspace that metrics are written to."""


class HyperPodInference(Model):
    """HyperPod's inference operator, which serves models from Kubernetes objects (`ultracluster serve
    --endpoint`), with what it requires: certificates, drivers for S3 and FSx, metrics of pods, roles."""

    execution_role_arn: Arn | None = None
    """IAM role of the operator's pods, whose name begins with `SageMakerHyperPodInference`; made here by
    default, with the rights that are written in docs/security.md and no others."""
    load_balancer_role_arn: Arn | None = None
    """IAM role of the load balancer controller that it brings; made here by default."""
    autoscaler_role_arn: Arn | None = None
    """IAM role of KEDA, which it brings; made here by default."""
    gateway_role_arn: Arn | None = None
    """IAM role of the gateway's controller; made here by default, where there is a gateway."""
    model_reader_role_arn: Arn | None = None
    """IAM role of the driver that mounts buckets into pods; made here by default, for `model_buckets`."""
    certificate_bucket: BucketName | None = None
    """S3 bucket for the TLS certificates of endpoints; made here by default."""
    model_buckets: Many[BucketName] = ()
    """S3 buckets that hold models: pods read them through the driver's role, and nothing else of S3."""
    load_balancer_controller: bool = True
    """With its own AWS Load Balancer Controller; off where the cluster runs one already."""
    autoscaler: bool = True
    """With its own KEDA; off where the cluster runs one already."""
    gateway: bool = False
    """With the gateway, which routes one address to several models by the name in the request and by the
    load of their GPUs. It has no log-in of its own unless an InferenceGatewayConfig sets one."""
    kv_cache: Literal["node", "tiered"] = "node"
    """How far the cache of keys and values of prompts reaches: the memory of a replica's own `node`, or
    HyperPod's tiered storage, which the nodes share. What is cached is neither encrypted nor kept apart
    between endpoints."""
    disaggregated_groups: Many[GroupName] = ()
    """Compute groups on which prefill and decode of one endpoint run on nodes of their own and hand caches
    over through NIXL and EFA (`serve --endpoint --disaggregate`)."""


class CheckpointTier(Model):
    """Where tiered checkpoints go that outlast the nodes' memory: a folder of a bucket, with one folder in it
    for each namespace. Who writes there can run code in jobs that load it: checkpoints are pickles."""

    bucket: BucketName
    """A bucket made elsewhere, in the Region of the cluster; its policy must not refuse the role."""
    prefix: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9_.=+@-][A-Za-z0-9_.=+@/-]*$", max_length=800, examples=["checkpoints"]),
    ] = "tiered-checkpoints"
    """Folder within the bucket, without a leading slash."""
    key: ExistingKey | None = None
    """KMS key of the bucket, where it has a customer-managed one. Its policy must let the account's IAM
    policies decide, or name the role."""
    metrics_namespace: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9_./#:-]{1,255}$", examples=["TieredCheckpoints"])] | None
    ) = None
    """Namespace of CloudWatch that jobs may write metrics of checkpoints to; none by default."""


__all__ = [
    "CheckpointTier",
    "HyperPodInference",
    "HyperPodObservability",
    "KarpenterAutoscaling",
    "Resilience",
]
