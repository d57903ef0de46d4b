"""Rules on: what a company's rules for its accounts ask for."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import Region
from ultracluster.config import Environment
from ultracluster.config.governance import Governance
from ultracluster.config.orchestrator import OrchestratorKind
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.remedy import anywhere, ask, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import GOV

_PARALLELCLUSTER: frozenset[OrchestratorKind] = frozenset({"parallelcluster"})
_THEIRS = "/parallelcluster/"
"""What ParallelCluster's own policies may make roles in."""
_TEMPLATES = (
    "aws/aws-parallelcluster: cloudformation/custom_resource/cluster.yaml, "
    "cloudformation/policies/parallelcluster-policies.yaml"
)


@GOV.rule(
    1,
    "error",
    "The permissions boundary is a policy of the environment's partition and account, or one of AWS's",
    source="IAM User Guide: Permissions boundaries for IAM entities; Amazon Resource Names (ARNs)",
    date="2026-11-22",
)
def boundary_usable(governance: Governance, home: Region, environment: Environment) -> Iterator[Breach]:
    if not governance.permissions_boundary:
        return
    _, partition, _, _, owner, _ = governance.permissions_boundary.split(":", 5)
    wanted = f"an ARN that begins with arn:{home.partition}:iam::{environment.account or '<account>'}:policy/"
    if partition != home.partition:
        yield Breach(
            ("permissions_boundary",),
            f"the policy is of the partition `{partition}`, and {home.name} belongs to `{home.partition}`: "
            "IAM would refuse every role.",
            ask("fact", wanted),
        )
    elif environment.account and owner not in (environment.account, "aws"):
        yield Breach(
            ("permissions_boundary",),
            f"the policy is of account {owner}, and the roles are made in {environment.account}: IAM takes a "
            "boundary of the role's own account only.",
            ask("fact", wanted),
        )


@GOV.rule(
    2,
    "error",
    "PCS knows the role of its nodes by path or name",
    source="AWS PCS User Guide: Create an instance profile for AWS PCS (path /aws-pcs/, or a name that "
    "starts with AWSPCS)",
    date="2026-11-22",
    kinds=frozenset({"pcs"}),
)
def known_to_pcs(governance: Governance) -> Iterator[Breach]:
    path, prefix = governance.role_path, governance.role_prefix or ""
    # without a path, that of the nodes' role stays /aws-pcs/
    if path and "/aws-pcs/" not in path and not prefix.startswith("AWSPCS"):
        yield Breach(
            ("role_path",),
            f"with the path {path} and names that begin with `{prefix}` PCS refuses the nodes' instance "
            "profile: the role is to be below /aws-pcs/, or its name to begin with AWSPCS.",
            write(f"/aws-pcs{path}") | anywhere({("governance", "role_prefix"): f"AWSPCS-{prefix}"[:30]}),
        )


@GOV.rule(
    3,
    "error",
    "ParallelCluster may make roles in the path",
    source=_TEMPLATES,
    date="2026-11-22",
    kinds=_PARALLELCLUSTER,
)
def within_parallelcluster(governance: Governance, settings: ParallelCluster) -> Iterator[Breach]:
    path = governance.role_path
    if settings.deploy_with == "cloudformation" and path and not path.startswith(_THEIRS):
        yield Breach(
            ("role_path",),
            f"ParallelCluster's custom resource may make roles below {_THEIRS} only: AWS's template gives "
            "it no other right.",
            write(f"{_THEIRS.rstrip('/')}{path}") | anywhere({("orchestrator", "deploy_with"): "pcluster"}),
        )


@GOV.rule(
    4,
    "warning",
    "Roles of AWS's own templates carry boundary and prefix",
    source=_TEMPLATES,
    date="2026-11-22",
    kinds=_PARALLELCLUSTER,
)
def provider_unbounded(governance: Governance, settings: ParallelCluster) -> Iterator[Breach]:
    asked = {
        "permissions_boundary": governance.permissions_boundary,
        "role_prefix": governance.role_prefix,
    }
    given = [key for key, value in asked.items() if value]
    if settings.deploy_with == "cloudformation" and given:
        yield Breach(
            (given[0],),
            f"{' and '.join(given)} reach ParallelCluster's cluster and our roles, but not the roles of the "
            "custom resource that makes the cluster: AWS's template has no parameter for them. An account "
            "that refuses roles without it refuses the stack.",
            anywhere({("orchestrator", "deploy_with"): "pcluster"}).noting(
                "or acknowledge, where the account lets these two be"
            ),
        )


@GOV.rule(
    5,
    "warning",
    "ParallelCluster's own stack is called like the others",
    source="ParallelCluster User Guide: pcluster create-cluster (the stack has the cluster's name)",
    date="2026-11-22",
    kinds=_PARALLELCLUSTER,
)
def cluster_stack_named(governance: Governance, cluster: Cluster) -> Iterator[Breach]:
    prefix, name = governance.stack_prefix, cluster.cluster_name
    if prefix and not name.startswith(prefix):
        yield Breach(
            ("stack_prefix",),
            f"ParallelCluster makes a stack of its own, which is called as the cluster, `{name}`: it does "
            f"not begin with `{prefix}`.",
            anywhere({("orchestrator", "cluster_name"): f"{prefix}{name}"[:60]}).noting(
                "which makes another cluster of one that is deployed"
            ),
        )
