"""Parts of SageMaker HyperPod on EKS that may be switched on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import OR_TOKEN, Arn, BucketName, Many, Model


class KarpenterAutoscaling(Model):
    """HyperPod's own Karpenter starts nodes for pods that wait, and ends idle ones, in the compute groups
    whose `count` is 0."""

    max_nodes: Annotated[int, Field(ge=1, le=6758)]
    """Nodes at the most in each of those groups."""
    idle_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    """Minutes that a node is empty before it is ended."""


class RestrictedLustre(Model):
    """A Lustre file system that HyperPod makes for restricted groups, and AWS bills to this account."""

    capacity_gib: Annotated[int, Field(ge=1200, le=100_800)]
    """Size in GiB."""
    throughput_mbps_per_tib: Literal[125, 250, 500, 1000]
    """Throughput in MB/s for each TiB."""


class SharedRestrictedLustre(RestrictedLustre):
    """One Lustre file system for all restricted groups of the cluster."""

    keep: bool = True
    """It stays when the last restricted group is gone; else HyperPod deletes it then, with its data."""


class RestrictedGroup(Model):
    """What makes a group restricted: its nodes only run AWS's images that customise Amazon Nova models, in a
    network of AWS's without internet. Nobody logs in to them, and none of our scripts run there."""

    lustre: RestrictedLustre | None = None
    """A Lustre file system of the group's own; by default `orchestrator.restricted_lustre`."""
    reads: Many[BucketName] = ()
    """S3 buckets with training data, which its jobs read."""
    writes: Many[BucketName] = ()
    """S3 buckets that its jobs write results to."""


class HyperPodObservability(Model):
    """HyperPod's observability add-on: metrics of nodes, accelerators and jobs in Amazon Managed Service for
    Prometheus."""

    workspace_arn: Annotated[
        str, Field(pattern=r"^arn:aws[a-z-]*:aps:[a-z0-9-]+:[0-9]{12}:workspace/ws-[0-9a-f-]+$"), OR_TOKEN
    ]
    """ARN of the Prometheus workspace that metrics are written to."""


class HyperPodInference(Model):
    """HyperPod's inference operator, which serves models from Kubernetes objects. Its roles are made
    elsewhere: they name the models and buckets that it may use."""

    execution_role_arn: Arn
    """IAM role of the operator's pods."""
    load_balancer_role_arn: Arn
    """IAM role of the load balancer controller that it brings."""
    autoscaler_role_arn: Arn
    """IAM role of KEDA, which it brings."""
    certificate_bucket: BucketName
    """S3 bucket for the TLS certificates of endpoints."""


__all__ = [
    "HyperPodInference",
    "HyperPodObservability",
    "KarpenterAutoscaling",
    "RestrictedGroup",
    "RestrictedLustre",
    "SharedRestrictedLustre",
]
