"""Teams as accounts of Slurm: shares, limits, members, and QOS by the names of the priorities.

A quota becomes the account's fair share among its siblings, a limit its GrpTRES, a limit of each user the
GrpTRES of his association with the account, a parent the parent account, priorities QOS of the same names
(sacctmgr manual, Slurm 22.05 to 26.05).
"""

from __future__ import annotations

from typing import Any

from ultracluster.model.cluster import Cluster
from ultracluster.model.people import team_users
from ultracluster.model.team_shares import (
    DEFAULT_PRIORITY,
    PRIORITIES,
    parents_first,
    quotas,
    total_amount,
)

PREEMPTED = "low"
"""Jobs of this priority give way to all others: they are put back into the queue. Between the others nobody
loses a job, as who may ask for `high` is not limited."""
GRACE_SECONDS = 120
"""For a checkpoint, after the signal that tells a job that it gives way."""


def slurm_teams(cluster: Cluster) -> dict[str, Any]:
    """What lifecycle_scripts/files/slurm_accounts.py brings accounting to; no QOS and accounts without teams.

    Raises:
        ValueError: there are not as many accelerators as quotas name.
    """
    environment = cluster.environment
    teams = environment.teams if cluster.keeps_accounts else {}
    members = {name: team_users(environment, name) for name in teams}
    shares = quotas(cluster) if teams else {}
    users = dict.fromkeys(user for names in members.values() for user in names)
    return {
        "organization": environment.name,
        "default_qos": DEFAULT_PRIORITY,
        "qos": [_qos(name, priority) for name, priority in PRIORITIES.items() if teams],
        "accounts": [
            {
                "name": name,
                "shares": sum(shares[name].values()),
                "limits": {} if team.limit is None else {"gres/gpu": total_amount(team.limit)},
                "users": list(members[name]),
                # only where they are written, so that documents of others stay as they are
                **({"parent": team.parent} if team.parent else {}),
                **({"user_limits": {"gres/gpu": team.most_per_user}} if team.most_per_user else {}),
            }
            for name, team in ((name, teams[name]) for name in parents_first(teams))
        ],
        "users": [{"name": user, "default_account": _default(cluster, user, members)} for user in users],
    }


def _qos(name: str, priority: int) -> dict[str, Any]:
    gives_way = name == PREEMPTED
    return {
        "name": name,
        "priority": priority,
        "preempts": [] if gives_way else [PREEMPTED],
        "preempt_mode": "requeue" if gives_way else "",
        "grace_seconds": GRACE_SECONDS if gives_way else 0,
    }


def _default(cluster: Cluster, user: str, members: dict[str, tuple[str, ...]]) -> str:
    """The team that the user names, or the first one that names him."""
    known = cluster.environment.users.get(user)
    if known and known.team in members:
        return known.team
    return next(name for name, users in members.items() if user in users)


__all__ = ["GRACE_SECONDS", "PREEMPTED", "slurm_teams"]
