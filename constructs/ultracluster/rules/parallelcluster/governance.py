"""Rules on: what ParallelCluster makes where a company bounds, places and names roles and stacks."""

from __future__ import annotations

from ultracluster.config.governance import Governance
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.remedy import anywhere, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import GOV, PCL

_THEIRS = "/parallelcluster/"
"""What ParallelCluster's own policies may make roles in."""
_TEMPLATES = (
    "aws/aws-parallelcluster: cloudformation/custom_resource/cluster.yaml, "
    "cloudformation/policies/parallelcluster-policies.yaml"
)


@GOV.error(3, _TEMPLATES, "2026-11-22", kinds=PCL.kinds)
def parallelcluster_role_path(governance: Governance, settings: ParallelCluster) -> Breaches:
    """ParallelCluster may make roles in the path."""
    path = governance.role_path
    if settings.deploy_with == "cloudformation" and path and not path.startswith(_THEIRS):
        yield at("role_path").breach(
            f"ParallelCluster's custom resource may make roles below {_THEIRS} only: AWS's template gives "
            "it no other right.",
            write(f"{_THEIRS.rstrip('/')}{path}") | anywhere({("orchestrator", "deploy_with"): "pcluster"}),
        )


@GOV.warning(4, _TEMPLATES, "2026-11-22", kinds=PCL.kinds)
def parallelcluster_boundary(governance: Governance, settings: ParallelCluster) -> Breaches:
    """Roles of AWS's own templates carry boundary and prefix."""
    asked = {
        "permissions_boundary": governance.permissions_boundary,
        "role_prefix": governance.role_prefix,
    }
    given = [key for key, value in asked.items() if value]
    if settings.deploy_with == "cloudformation" and given:
        yield at(given[0]).breach(
            f"{' and '.join(given)} reach ParallelCluster's cluster and our roles, but not the roles of the "
            "custom resource that makes the cluster: AWS's template has no parameter for them. An account "
            "that refuses roles without it refuses the stack.",
            anywhere({("orchestrator", "deploy_with"): "pcluster"}).noting(
                "or acknowledge, where the account lets these two be"
            ),
        )


@GOV.warning(
    5,
    "ParallelCluster User Guide: pcluster create-cluster (the stack has the cluster's name)",
    "2026-11-22",
    kinds=PCL.kinds,
)
def parallelcluster_stack_name(governance: Governance, cluster: Cluster) -> Breaches:
    """ParallelCluster's own stack is called like the others."""
    prefix, name = governance.stack_prefix, cluster.cluster_name
    if prefix and not name.startswith(prefix):
        yield at("stack_prefix").breach(
            f"ParallelCluster makes a stack of its own, which is called as the cluster, `{name}`: it does "
            f"not begin with `{prefix}`.",
            anywhere({("orchestrator", "cluster_name"): f"{prefix}{name}"[:60]}).noting(
                "which makes another cluster of one that is deployed"
            ),
        )
