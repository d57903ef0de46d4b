"""Deletion protection and stack policies, switched on once what they protect is there.

Set from the start, it would stop CloudFormation from rolling back a failed creation: EKS and RDS refuse to
delete what is protected, whoever asks. Deleting the stack switches them off.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.model import Cluster
from ultracluster.security.deletion_protection import Database, DeletionProtection, EksCluster
from ultracluster.security.stack_policies import StackPolicies


def add_protection(
    scope: Construct, cluster: Cluster, *, key: kms.IKey, database_id: str | None, stacks: Sequence[str] = ()
) -> None:
    """Protect the control plane, the accounting database and what is in stacks that hold data.

    Args:
        stacks: names of these stacks; none of a stack that this is in, which would change its own policy.
    """
    logs = key_for(scope, cluster.environment, "logs", key)
    if cluster.kubernetes or database_id:
        DeletionProtection(
            scope,
            "Protection",
            key=logs,
            cluster=_control_plane(scope, cluster) if cluster.kubernetes else None,
            database=_database(scope, database_id) if database_id else None,
        )
    if stacks:
        StackPolicies(scope, "StackPolicies", key=logs, stacks=stacks)


def _control_plane(scope: Construct, cluster: Cluster) -> EksCluster:
    # loaded when it is needed: it brings CDK modules that the others do not need
    from aws_cdk import aws_eks_v2 as eks

    return eks.Cluster.from_cluster_attributes(scope, "ControlPlane", cluster_name=cluster.cluster_name)


def _database(scope: Construct, name: str) -> Database:
    return rds.DatabaseInstance.from_database_instance_attributes(
        scope,
        "Database",
        instance_identifier=name,
        instance_endpoint_address="",
        port=3306,
        security_groups=[],
    )
