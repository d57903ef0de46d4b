"""Which accelerators one training job can have: whole nodes of one group, within the limit of its team."""

from __future__ import annotations

import difflib

from ultracluster.model.cluster import Cluster
from ultracluster.model.team_shares import Pool, lineage, only_divides, pools, quotas


class JobError(ValueError):
    """There can be no such job; the message says why, and what there can be."""


def job_pool(cluster: Cluster, group: str | None) -> Pool:
    """The accelerators of a group; those of the first compute group with whole ones by default.

    Raises:
        JobError: the group has none, or pods share them.
    """
    every = {pool.group: pool for pool in pools(cluster)}
    whole = {name: pool for name, pool in every.items() if pool.whole}
    if group in every and group not in whole:
        raise JobError(f"pods share the GPUs of {group}: a training job requires whole ones")
    closed = [name for name in whole if cluster.groups[name].restricted]
    if group in closed or (closed and len(closed) == len(whole)):
        raise JobError(
            f"{group or closed[0]} is restricted: only AWS's own images run there, which Nova's recipes start"
        )
    whole = {name: pool for name, pool in whole.items() if name not in closed}
    if not whole:
        raise JobError("no compute group has whole accelerators")
    if group is None:
        return next(iter(whole.values()))
    if group not in whole:
        raise JobError(f"no group `{group}` with accelerators: one of {', '.join(whole)}")
    return whole[group]


def most_nodes_of_job(cluster: Cluster, pool: Pool, team: str | None) -> int:
    """Nodes of a pool that a job of a team can have at once; of a job without a team where it is None.

    A total limit counts over all groups; a limit by group never takes away what the team is guaranteed.
    Limits of the teams above it count, too, and that of each user.
    """
    if team is None:
        return pool.nodes
    teams, most = cluster.environment.teams, [pool.total]
    for name in lineage(teams, team):
        limit = teams[name].limit
        if limit is not None:
            own = quotas(cluster)[name].get(pool.group, 0)
            most.append(limit if isinstance(limit, int) else max(own, limit.get(pool.group, 0)))
    most += [teams[team].most_per_user or pool.total]
    return min(most) // pool.per_node if pool.per_node else pool.nodes


def check_job(cluster: Cluster, pool: Pool, nodes: int, team: str | None) -> None:
    """Refuse a job that can never start: a queue would keep it forever.

    Raises:
        JobError: the group, or the limit of the team, is too small for it.
    """
    if team is not None and only_divides(cluster, team):
        below = ", ".join(name for name, one in cluster.environment.teams.items() if one.parent == team)
        raise JobError(
            f"no job can be in {team}, which only divides its share among its teams: --team, one of {below}"
        )
    if nodes > pool.nodes:
        raise JobError(f"{pool.group} has {pool.nodes} nodes: a job on {nodes} can never start")
    most = most_nodes_of_job(cluster, pool, team)
    if nodes > most:
        raise JobError(
            f"the limit of {team} allows jobs on {most} nodes of {pool.group}, with {pool.per_node} "
            f"accelerators each: a job on {nodes} can never start. Use at most: --nodes {most}"
        )


def check_team(cluster: Cluster, team: str | None) -> None:
    """Refuse a team that is not one of the environment's, or none where one must be named.

    Raises:
        JobError: it says which there are.
    """
    teams = list(cluster.environment.teams)
    if team is None and teams:
        raise JobError(f"This environment has teams: pass --team ({', '.join(teams)}).")
    if team is None or team in teams:
        return
    near = difflib.get_close_matches(team, teams, n=1)
    instead = (
        f"--team {near[0]}" if near else f"one of {', '.join(teams)}" if teams else "the environment has none"
    )
    raise JobError(f"there is no team `{team}`: {instead}")
