"""Rules on: who on Slurm nodes reaches the instance metadata."""

from __future__ import annotations

from ultracluster.config import Environment
from ultracluster.config.environment import Access
from ultracluster.config.remedy import drop
from ultracluster.config.session_user import IMAGE_USERS
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import ENV

_DATE = "2026-11-22"
_PEOPLE = (*IMAGE_USERS, "ssm-user")
_SOURCE = "EC2 User Guide, Limit access to the Instance Metadata Service"


@ENV.warning(30, f"{_SOURCE}: by the user who opens the socket", _DATE)
def metadata_users_are_services(access: Access, environment: Environment) -> Breaches:
    """metadata_users are of services, not of people."""
    for number, user in enumerate(access.metadata_users):
        if user in (*_PEOPLE, environment.session_user):
            yield at("metadata_users", number).breach(
                f"people log in as {user}: they, and every job that they start, would have the credentials "
                "of the node's role. Jobs get to S3 by storage.job_buckets.",
                drop(),
            )


@ENV.warning(31, _SOURCE, _DATE)
def metadata_on_slurm(access: Access, cluster: Cluster) -> Breaches:
    """On Slurm nodes the instance metadata is for services."""
    if cluster.traits.slurm and access.node_metadata == "everyone":
        yield at("node_metadata").breach(
            "every user, and every job, has the credentials of the node's role: what it may, all may.", drop()
        )
