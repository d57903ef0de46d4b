"""What clusters of all orchestrators are: something with a name, nodes in a network, and rights of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.guard.objects import HoldsSecurityGroup, plain_groups


@runtime_checkable
class ICluster(Protocol):
    """A cluster, made here or elsewhere. It is an `IConnectable` (its nodes' security groups) and an
    `IGrantable` (all roles of its nodes): `bucket.grant_read(cluster)` works."""

    @property
    def cluster_name(self) -> str:
        """As its service knows it."""
        ...

    @property
    def cluster_arn(self) -> str:
        """Its ARN."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Of its nodes."""
        ...

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """All roles of its nodes."""
        ...


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class ClusterConstruct(Construct):
    """A cluster as other constructs of the CDK take it.

    Attributes:
        cluster_name: name of the cluster.
        cluster_arn: its ARN.
        roles: IAM roles of its nodes, by role of node, as `system`; empty where they are not known here.
    """

    cluster_name: str
    cluster_arn: str
    roles: Mapping[Role, iam.IRole]
    _connections: ec2.Connections
    _principal: iam.IPrincipal

    @staticmethod
    def from_cluster_attributes(
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster_arn: str,
        security_groups: Sequence[ec2.ISecurityGroup | HoldsSecurityGroup] = (),
        role: iam.IRole | None = None,
    ) -> ICluster:
        """A cluster that was made elsewhere. To add nodes to one of EKS, import its `EksControlPlane`.

        Args:
            cluster_name: as its service knows it.
            cluster_arn: its ARN.
            security_groups: of its nodes; without them nothing can be opened to it; by default none.
            role: of its nodes; without it a grant is an error; by default none.
        """
        cluster = ClusterConstruct(scope, construct_id)
        cluster.cluster_name, cluster.cluster_arn, cluster.roles = cluster_name, cluster_arn, {}
        cluster._connections = ec2.Connections(security_groups=plain_groups(security_groups))
        # the CDK's class and interface differ in names of arguments
        cluster._principal = role or cast("iam.IPrincipal", iam.UnknownPrincipal(resource=cluster))
        return cluster

    @property
    def connections(self) -> ec2.Connections:
        """Of its nodes."""
        return self._connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """All roles of its nodes."""
        return self._principal
