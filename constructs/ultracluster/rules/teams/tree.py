"""Rules on: teams in teams, and limits of each user."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from ultracluster.config.remedy import anywhere, ask, drop, write
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.team_shares import (
    lineage,
    only_divides,
    pools,
    quotas,
    scheduler_of,
    teams_of,
    total_amount,
)
from ultracluster.rules.engine import Breach, Breaches, at
from ultracluster.rules.sets import SLURM, TEA
from ultracluster.rules.teams.fields import KAI, KUEUE, SACCTMGR, TITLES, VOLCANO

DATE = "2026-11-28"
COHORTS = f"{KUEUE} (Cohort: a circle of parents disables all its queues)"
LEAVES = f"{KAI}, docs/queues; {VOLCANO}, docs/design/hierarchical-queue-on-capacity-plugin"


@TEA.error(34, COHORTS, DATE)
def parent_team_exists(cluster: Cluster) -> Breaches:
    """A team's parent is another team, and not below it."""
    teams = cluster.environment.teams
    for name, team in teams.items():
        path = ("teams", name, "parent")
        if team.parent is None:
            continue
        if team.parent not in teams:
            near = difflib.get_close_matches(team.parent, [other for other in teams if other != name], n=1)
            yield Breach(path, f"there is no team `{team.parent}`.", write(near[0]) if near else drop())
        elif teams[lineage(teams, name)[-1]].parent == name:
            circle = " of ".join((*lineage(teams, name), name))
            yield Breach(path, f"a team cannot be a part of itself: {circle}.", drop())


@TEA.error(
    35, f"{VOLCANO} (deserved of children); this configuration: a quota comes out of the parent's", DATE
)
def quotas_fit_parent(cluster: Cluster) -> Breaches:
    """The quotas of a team's teams fit in its own."""
    teams, broken = cluster.environment.teams, False
    for name, team in teams.items():
        below = teams_of(teams, name)
        for group, most, amounts in _compared(team, below):
            sum_ = sum(amounts.values())
            if sum_ <= most:
                continue
            broken = True
            largest = max(amounts, key=lambda one: amounts[one])
            of, key = (f" of {group}", (group,)) if group else ("", ())
            listed = ", ".join(f"{one} {amount}" for one, amount in amounts.items() if amount)
            less = write(amounts[largest] - sum_ + most) if amounts[largest] >= sum_ - most else drop()
            yield at("teams", largest, "quota", *key).breach(
                f"the quotas{of} of the teams in {name} add up to {sum_} ({listed}), and {name} has {most}: "
                "they come out of it.",
                less | anywhere({("teams", name, "quota", *key): sum_}),
            )
    if not broken:
        yield from _not_divided(cluster)


@TEA.error(
    36,
    f"{VOLCANO} (capability of children); {SACCTMGR} (GrpTRES holds for an account and all below it)",
    DATE,
)
def limits_fit_parent(cluster: Cluster) -> Breaches:
    """A limit does not exceed that of a team above."""
    teams = cluster.environment.teams
    for name, team in teams.items():
        for above in lineage(teams, name)[1:]:
            limit = teams[above].limit
            if team.limit is None or limit is None:
                continue
            if total_amount(team.limit) > (most := total_amount(limit)):
                yield at("teams", name, "limit").breach(
                    f"the limit is {total_amount(team.limit)}, and {above}, of which {name} is a part, is "
                    f"limited to {most}: it has no effect.",
                    write(most) if isinstance(team.limit, int) else drop(),
                )


@TEA.error(37, LEAVES, DATE)
def parent_team_without_members(cluster: Cluster) -> Breaches:
    """A team that only divides its share has no members."""
    for name, team in cluster.environment.teams.items():
        if team.members and only_divides(cluster, name):
            yield at("teams", name, "members").breach(
                f"{TITLES[scheduler_of(cluster)]} takes no jobs in a queue with queues below it, and "
                f"{', '.join(teams_of(cluster.environment.teams, name))} are below {name}.",
                drop().noting("make a team for them, with a `parent`")
                | anywhere({("orchestrator", "scheduler"): "kueue"}),
            )


@TEA.error(38, f"{SACCTMGR} (GrpTRES of a user's association)", DATE, kinds=SLURM)
def user_limit_below_team(cluster: Cluster) -> Breaches:
    """The limit of each user is below that of the team."""
    teams, there = cluster.environment.teams, pools(cluster)
    everything = sum(pool.total for pool in there)
    for name, team in teams.items():
        if team.most_per_user is None:
            continue
        path = ("teams", name, "most_per_user")
        limits = [
            total_amount(one) for above in lineage(teams, name) if (one := teams[above].limit) is not None
        ]
        others = [pool for pool in there if pool.resource != "nvidia.com/gpu"]
        if others:
            yield at(*path).breach(
                f"Slurm's accounting counts NVIDIA GPUs, and {others[0].group} has {others[0].resource}.",
                drop(),
            )
        elif there and team.most_per_user > (most := min([everything, *limits])):
            yield at(*path).breach(
                f"each user may have {team.most_per_user} GPUs, and all of {name} together {most}: the limit "
                "has no effect.",
                write(most) if most else drop(),
            )


def _compared(team: Team, below: Mapping[str, Team]) -> Iterator[tuple[str, int, dict[str, int]]]:
    """A group, or "" for all, the team's quota of it, and the quotas of the teams below it."""
    if isinstance(team.quota, Mapping):
        by_group = {name: one.quota for name, one in below.items() if isinstance(one.quota, Mapping)}
        for group in dict.fromkeys(group for quota in by_group.values() for group in quota):
            yield (
                group,
                team.quota.get(group, 0),
                {name: by[group] for name, by in by_group.items() if group in by},
            )
    if below:
        yield "", total_amount(team.quota), {name: total_amount(one.quota) for name, one in below.items()}


def _not_divided(cluster: Cluster) -> Breaches:
    """Quotas that fit in total, and not by group: a total is taken from the groups in their order."""
    teams = cluster.environment.teams
    trees = [name for name, team in teams.items() if team.parent]
    fits = total_amount({name: total_amount(team.quota) for name, team in teams_of(teams, None).items()})
    if not trees or fits > sum(pool.total for pool in pools(cluster)):
        return
    if any(teams[lineage(teams, name)[-1]].parent is not None for name in trees):
        return  # TEA034 has a word about it
    try:
        quotas(cluster)
    except ValueError as error:
        if any(isinstance(teams[name].quota, Mapping) for name in trees):
            yield at("teams", trees[0]).breach(
                f"{str(error).removeprefix('teams.')} in the quota of its parent.",
                ask("decision", "give the parent's quota by group, too"),
            )
