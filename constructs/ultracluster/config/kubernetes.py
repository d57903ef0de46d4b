"""Kubernetes: SageMaker HyperPod on EKS, and EKS alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.config.base import Model

ClusterName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$")]


class _Kubernetes(Model):
    """What HyperPod on EKS and EKS alone have in common."""

    cluster_name: ClusterName | None = None
    """Name of the cluster; the environment's name by default. A new name is a new cluster."""
    kubernetes_version: Annotated[str, Field(pattern=r"^1\.\d\d$", examples=["1.34"])] = "1.34"
    """Kubernetes release of the control plane."""


class HyperPodEks(_Kubernetes):
    """SageMaker HyperPod on an EKS control plane."""

    kind: Literal["hyperpod-eks"]
    lifecycle: Literal["on-create", "none"] = "on-create"
    """When our scripts run: before a node joins the cluster, or not at all."""


class Eks(_Kubernetes):
    """Amazon EKS with managed node groups of our own launch templates."""

    kind: Literal["eks"]
    lifecycle: Literal["user-data", "none"] = "user-data"
    """When our scripts run: before a node joins the cluster, or not at all."""
