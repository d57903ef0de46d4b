"""Whose users get a role for S3: those of the nodes that jobs run on, and that people log in to."""

from __future__ import annotations

from ultracluster.config.nodes import Role
from ultracluster.model.cluster import Cluster


def job_access_roles(cluster: Cluster) -> tuple[Role, ...]:
    """Roles of nodes that hand credentials of the jobs' role to their users; none where no bucket asks.

    People log in to login nodes, and to the controller only where there are none.
    """
    asked = cluster.environment.storage.job_buckets and cluster.traits.slurm and cluster.runs_scripts
    if not asked:
        return ()
    entrance: Role = "login" if cluster.with_role("login") else "controller"
    return tuple(role for role in ("compute", entrance) if cluster.with_role(role))


__all__ = ["job_access_roles"]
