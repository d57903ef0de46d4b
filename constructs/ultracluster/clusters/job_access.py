"""The role of users' jobs, for the clusters whose nodes hand out its credentials."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.config.nodes import Role
from ultracluster.model import Cluster
from ultracluster.model.job_access import job_access_roles
from ultracluster.security.job_role import JobRole

JOB_ROLE = "job_role"
"""Its ARN in `cluster.json`, and with dashes among the arguments of PCS's entry."""


def job_role(scope: Construct, cluster: Cluster, roles: Mapping[Role, iam.IRole]) -> JobRole | None:
    """The role, and what lets the nodes' roles assume it; None where no bucket is for jobs.

    Args:
        roles: of the nodes, by role of node.
    """
    holders = list(dict.fromkeys(roles[name] for name in job_access_roles(cluster)))
    if not holders:
        return None
    role = _made(scope, cluster, [holder.role_arn for holder in holders])
    for holder in holders:
        role.grant_assume(holder)
    return role


def job_role_by_path(
    scope: Construct, cluster: Cluster, policies: Mapping[Role, iam.ManagedPolicy]
) -> JobRole | None:
    """The same where ParallelCluster makes the nodes' roles: below a path with the cluster's name (its
    cdk_builder_utils.py, `_cluster_scoped_iam_path`); that of the head node has a name of its own.

    Args:
        policies: that its roles get, by role of node.
    """
    asked = job_access_roles(cluster)
    if not asked:
        return None
    path = cluster.environment.governance.role_path or "/parallelcluster/"
    stack = Stack.of(scope)
    roles = f"arn:{stack.partition}:iam::{stack.account}:role{path}{cluster.cluster_name}/"
    never = [] if "controller" in asked else [f"{roles}*RoleHeadNode-*"]
    role = _made(scope, cluster, [f"{roles}*"], never)
    for name in asked:
        policies[name].add_statements(role.assume_statement())
    return role


def _made(scope: Construct, cluster: Cluster, nodes: list[str], never: list[str] | None = None) -> JobRole:
    return JobRole(
        scope,
        "JobRole",
        cluster_name=cluster.cluster_name,
        buckets=cluster.environment.storage.job_buckets,
        nodes=nodes,
        never=never or [],
    )


def deployed(role: JobRole | None) -> dict[str, str]:
    """What nodes are told of it when it is deployed, as a part of `cluster.json`."""
    return {JOB_ROLE: role.role.role_arn} if role else {}
