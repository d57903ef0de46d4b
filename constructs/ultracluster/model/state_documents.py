"""Documents that nodes pull: what of a cluster changes without a deploy of its nodes.

A deploy uploads them beside the lifecycle scripts, `ultracluster apply users` and `apply teams` the same
bytes. They are in no hash: another document replaces no node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from ultracluster.model.cluster import Cluster
from ultracluster.model.leases import SIGNAL_MINUTES, STOP_MINUTES, leases
from ultracluster.model.people import people
from ultracluster.model.slurm_teams import slurm_teams

FOLDER = "state"
"""Below the name of the cluster, in the bucket of the scripts."""
USERS = "users"
TEAMS = "teams"
LEASE = "lease"
Removals = Literal["few", "any"]
"""How many users a document may take from a node: less than half of those that the node has, or all."""


def state_key(cluster: Cluster, document: str) -> str:
    """Key of a document in the bucket of the scripts."""
    return f"{cluster.cluster_name}/{FOLDER}/{document}.json"


def state_documents(cluster: Cluster) -> dict[str, bytes]:
    """The documents of a cluster by file name; none on Kubernetes, and where nodes run no scripts."""
    if not (cluster.traits.slurm and cluster.runs_scripts):
        return {}
    documents = {
        USERS: users_document(cluster),
        TEAMS: teams_document(cluster),
        LEASE: lease_document(cluster),
    }
    return {f"{name}.json": document_text(document) for name, document in documents.items()}


def document_text(document: Mapping[str, Any]) -> bytes:
    """As it is uploaded: the same content gives the same bytes."""
    return json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"


def head(cluster: Cluster, document: str) -> dict[str, Any]:
    """What every document begins with; nodes take no other (lifecycle_scripts/files/state_pull.sh)."""
    return {"schema": 1, "document": document, "cluster": cluster.cluster_name}


def users_document(cluster: Cluster, *, removals: Removals = "few") -> dict[str, Any]:
    """The accounts that each node is to have."""
    found = people(cluster)
    homes = found.homes
    return head(cluster, USERS) | {
        "homes": {"root": homes.root, "mount": homes.mount, "by_controller": homes.by_controller},
        "groups": [{"name": name, "gid": gid} for name, gid in found.groups.items()],
        "users": [
            {
                "name": account.name,
                "uid": account.uid,
                "gid": account.gid,
                "groups": list(account.groups),
                "home": account.home,
                "keys": list(account.keys),
            }
            for account in found.accounts
        ],
        "removals": removals,
    }


def teams_document(cluster: Cluster, *, remove: bool = False) -> dict[str, Any]:
    """The accounts that Slurm is to have.

    Args:
        cluster: one with Slurm.
        remove: delete the accounts of teams that are gone; else they are closed.
    """
    return head(cluster, TEAMS) | slurm_teams(cluster) | {"remove": remove}


def lease_document(cluster: Cluster) -> dict[str, Any]:
    """The groups whose nodes go at a known time; when that is, nodes ask AWS."""
    return head(cluster, LEASE) | {
        "signal_minutes": SIGNAL_MINUTES,
        "stop_minutes": STOP_MINUTES,
        "leases": [
            {
                "group": lease.group,
                "partition": lease.partition,
                "kind": lease.kind,
                "id": lease.id,
                "reclaimed_minutes": lease.reclaimed_minutes,
                "nodes": {"pattern": lease.node_pattern}
                if lease.node_pattern
                else {"instance_group": lease.group},
            }
            for lease in leases(cluster)
        ],
    }


__all__ = [
    "FOLDER",
    "LEASE",
    "TEAMS",
    "USERS",
    "Removals",
    "document_text",
    "head",
    "lease_document",
    "state_documents",
    "state_key",
    "teams_document",
    "users_document",
]
