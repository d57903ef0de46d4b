"""An EKS control plane as node groups, add-ons and charts take it, made here or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from ultracluster.clusters.eks.kubectl import Kubectl
from ultracluster.guard.objects import plain_groups, take_objects
from ultracluster.security.cluster_key import ClusterKey


@runtime_checkable
class IEksControlPlane(Protocol):
    """A control plane that nodes can join and to which manifests can be applied."""

    kubectl: Kubectl
    """Applies charts and manifests."""

    @property
    def cluster_name(self) -> str:
        """Known at synth: it is a part of conditions in policies."""
        ...

    @property
    def cluster_arn(self) -> str:
        """Its ARN."""
        ...

    @property
    def cluster_endpoint(self) -> str:
        """Address of the Kubernetes API."""
        ...

    @property
    def cluster_certificate_authority_data(self) -> str:
        """What the API's certificate is signed with, base64."""
        ...

    @property
    def kubernetes_version(self) -> str:
        """Release, as `1.36`."""
        ...

    @property
    def service_cidr(self) -> str | None:
        """Of Kubernetes services, where it is known; nodes on images of one's own must know it."""
        ...

    @property
    def security_groups(self) -> Sequence[ec2.ISecurityGroup]:
        """Of nodes; the control plane is in the first, too."""
        ...

    @property
    def key(self) -> kms.IKey | None:
        """Encrypts its secrets; None where that is not known."""
        ...

    @property
    def before_nodes(self) -> Sequence[IConstruct]:
        """What must be there before the first node, in the same stack."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Of control plane and nodes."""
        ...


@jsii.implements(ec2.IConnectable)
class ImportedControlPlane(Construct):
    """A control plane that was made elsewhere; see `EksControlPlane.from_cluster_attributes`."""

    def __init__(self, scope: Construct, construct_id: str, given: Mapping[str, Any]) -> None:
        """Name it; `given` holds the arguments of `from_cluster_attributes` by name."""
        super().__init__(scope, construct_id)
        take_objects(self, given)
        self.cluster_name: str = given["cluster_name"]
        self.kubernetes_version: str = given["kubernetes_version"]
        self.cluster_arn: str = given["cluster_arn"] or arn_of(self, self.cluster_name)
        self.cluster_endpoint: str = given["cluster_endpoint"]
        self.cluster_certificate_authority_data: str = given["cluster_certificate_authority_data"]
        self.service_cidr: str | None = given["service_cidr"]
        self.key = ClusterKey.of(self, given["key"]) if given["key"] else None
        self.security_groups = plain_groups(given["security_groups"])
        self.before_nodes: list[IConstruct] = []
        self.issuer_url: str | None = given["issuer_url"]
        provider = eks.KubectlProvider.from_kubectl_provider_attributes(
            self, "Handler", service_token=given["kubectl_handler_arn"]
        )
        self.kubectl = Kubectl(
            self,
            eks.Cluster.from_cluster_attributes(
                self, "Cluster", cluster_name=self.cluster_name, kubectl_provider=provider, prune=False
            ),
        )
        self._connections = ec2.Connections(security_groups=self.security_groups)

    @property
    def connections(self) -> ec2.Connections:
        """Of control plane and nodes."""
        return self._connections


def arn_of(scope: Construct, cluster_name: str) -> str:
    """Known before the cluster is, for roles that the cluster needs first."""
    return Stack.of(scope).format_arn(service="eks", resource="cluster", resource_name=cluster_name)


def issuer_url_of(plane: IEksControlPlane) -> str | None:
    """Of the cluster's tokens, with `https://`; None where whoever gives the control plane does not say."""
    return cast("str | None", getattr(plane, "issuer_url", None))
