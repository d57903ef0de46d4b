"""What nodes must know of a directory of people, and of who may reach them by SSH."""

from __future__ import annotations

from ultracluster.config.directory import Directory
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.model.cluster import Cluster
from ultracluster.model.people import homes_of

_MEMBERSHIP = {"member": "rfc2307bis", "member-uid": "rfc2307"}
"""What SSSD calls it (sssd-ldap(5), ldap_schema)."""


def directory_of(cluster: Cluster) -> Directory | None:
    """The directory that our scripts set up on nodes; None where there is none, or others set it up."""
    by_others = isinstance(cluster.settings, ParallelCluster) or not cluster.traits.slurm
    return cluster.environment.directory if cluster.runs_scripts and not by_others else None


def directory_home(cluster: Cluster, directory: Directory) -> str:
    """Homes of its users, with `%u` for the name."""
    return directory.home or f"{homes_of(cluster).root}/%u"


def told_directory(cluster: Cluster) -> dict[str, object] | None:
    """The key `directory` of `cluster.json`: no secret is in it."""
    directory = directory_of(cluster)
    if directory is None:
        return None
    return {
        "kind": directory.kind,
        "uris": list(directory.uris),
        "start_tls": directory.start_tls,
        "ca": directory.ca_certificate or "",
        "search_base": directory.search_base,
        "bind_dn": directory.bind_dn,
        "secret": directory.password_secret_arn,
        "ids": directory.id_source,
        "id_range": list(directory.id_range),
        "schema": _MEMBERSHIP[directory.membership],
        "access_filter": directory.access_filter,
        "home": directory_home(cluster, directory),
        "shell": directory.shell,
    }


def people_have_accounts(cluster: Cluster) -> bool:
    """Whether nodes have accounts of people: those of the file, or of a directory."""
    settings = cluster.settings
    own = isinstance(settings, ParallelCluster) and settings.directory_service is not None
    return bool(cluster.environment.users) or cluster.environment.directory is not None or own


def ssh_is_for_jobs(cluster: Cluster) -> bool:
    """Whether users reach compute nodes by SSH only where a job of theirs runs."""
    asked = cluster.environment.access.node_ssh
    if not (cluster.traits.slurm and cluster.runs_scripts):
        return False
    return asked == "jobs" or (asked is None and people_have_accounts(cluster))


def told_ssh(cluster: Cluster) -> dict[str, object] | None:
    """The key `job_ssh` of `cluster.json`."""
    return {"admins": [cluster.environment.admin_user]} if ssh_is_for_jobs(cluster) else None


__all__ = [
    "directory_home",
    "directory_of",
    "people_have_accounts",
    "ssh_is_for_jobs",
    "told_directory",
    "told_ssh",
]
