"""Users who get a role for S3: those of the nodes that jobs run on, and that people log in to; and where in
S3 people put the folders that they submit."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.config.nodes import Role
from ultracluster.config.storage import JobBucket
from ultracluster.model.cluster import Cluster

WORKDIRS = "ultracluster-workdirs"
"""Folder of the jobs' bucket in which archives of working folders are."""


def job_access_roles(cluster: Cluster) -> tuple[Role, ...]:
    """Roles of nodes that hand credentials of the jobs' role to their users; none where no bucket asks.

    People log in to login nodes, and to the controller only where there are none.
    """
    asked = cluster.environment.storage.job_buckets and cluster.traits.slurm and cluster.runs_scripts
    if not asked:
        return ()
    entrance: Role = "login" if cluster.with_role("login") else "controller"
    return tuple(role for role in ("compute", entrance) if cluster.with_role(role))


@dataclass(frozen=True, slots=True)
class WorkdirPlace:
    """Place of the folders that people submit."""

    bucket: JobBucket
    volume: str = ""
    """On Kubernetes: its name in `mountpoint_s3`, by which pods read it."""

    @property
    def folder(self) -> str:
        """Folder of the bucket, without a slash at its end."""
        prefix = (self.bucket.prefix or "").rstrip("/")
        return f"{prefix}/{WORKDIRS}" if prefix else WORKDIRS


def workdir_place(cluster: Cluster) -> WorkdirPlace | None:
    """The first bucket that jobs may write, so that none that is only read gets files; None without one."""
    if settings := cluster.kubernetes:
        volumes = settings.mountpoint_s3.items()
        return next((WorkdirPlace(one, name) for name, one in volumes if one.write), None)
    buckets = cluster.environment.storage.job_buckets if job_access_roles(cluster) else ()
    return next((WorkdirPlace(one) for one in buckets if one.write), None)


__all__ = ["WORKDIRS", "WorkdirPlace", "job_access_roles", "workdir_place"]
