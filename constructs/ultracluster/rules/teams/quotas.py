"""Rules on: quotas and limits of teams, which fit into the cluster and each other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from ultracluster.config.findings import YamlPath
from ultracluster.config.remedy import Remedy, ask, drop, rename, write
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.team_shares import Pool, pools, teams_of, total_amount
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.fields import DATE, KUEUE, VOLCANO


@TEA.error(1, "this configuration: node_groups", DATE)
def quota_groups(team: Team, cluster: Cluster) -> Breaches:
    """Groups named in quotas and limits are compute groups with accelerators."""
    if _types_unknown(cluster):
        return
    there = [pool.group for pool in pools(cluster)]
    for path, amounts in amounts_of(team):
        given: Mapping[str, int] = amounts if isinstance(amounts, Mapping) else {}
        for group in given:
            if group not in there:
                near = difflib.get_close_matches(group, [name for name in there if name not in given], n=1)
                what = "has no accelerators" if group in cluster.groups else "does not exist"
                yield at(*path, group).breach(
                    f"`{group}` {what}: there are no accelerators to share.",
                    rename(near[0]) if near else drop(),
                )


@TEA.error(2, "this configuration: node_groups", DATE)
def quotas_fit_cluster(cluster: Cluster) -> Breaches:
    """All quotas together fit in the cluster."""
    teams = teams_of(cluster.environment.teams, None)  # what the others have is part of it
    if not teams or _types_unknown(cluster):
        return
    over = False
    for pool in pools(cluster):
        guaranteed = {
            name: team.quota.get(pool.group, 0)
            for name, team in teams.items()
            if not isinstance(team.quota, int)
        }
        if (sum_ := sum(guaranteed.values())) > pool.total:
            over = True
            largest = max(guaranteed, key=lambda name: guaranteed[name])
            yield at("teams", largest, "quota", pool.group).breach(
                f"the teams' quotas of {pool.group} add up to {sum_} accelerators ({_listed(guaranteed)}), "
                f"and it has {_counted(pool)}: the quotas could not be guaranteed.",
                _fit(guaranteed[largest], sum_ - pool.total),
            )
    everything = {name: total_amount(team.quota) for name, team in teams.items()}
    sum_, total = sum(everything.values()), sum(pool.total for pool in pools(cluster))
    if sum_ > total and not over:
        largest = max(everything, key=lambda name: everything[name])
        yield at("teams", largest, "quota").breach(
            f"the teams' quotas add up to {sum_} accelerators ({_listed(everything)}), and the cluster has "
            f"{total}: the quotas could not be guaranteed.",
            _fit(everything[largest], sum_ - total),
        )


@TEA.error(3, f"{KUEUE} (borrowingLimit is not negative); {VOLCANO} (deserved <= capability)", DATE)
def limit_below_quota(team: Team) -> Breaches:
    """A limit is not below the quota."""
    if team.limit is None:
        return
    if isinstance(team.limit, Mapping) and isinstance(team.quota, Mapping):
        for group, amount in team.limit.items():
            if amount < (quota := team.quota.get(group, 0)):
                yield at("limit", group).breach(
                    f"the limit of {amount} accelerators of {group} is below the quota of {quota}.",
                    write(quota),
                )
    elif (limit := total_amount(team.limit)) < (quota := total_amount(team.quota)):
        yield at("limit").breach(
            f"the limit of {limit} accelerators is below the quota of {quota}.", write(quota)
        )


@TEA.error(4, "this configuration: node_groups", DATE)
def limit_above_cluster(team: Team, cluster: Cluster) -> Breaches:
    """A limit does not exceed the accelerators of the cluster."""
    if _types_unknown(cluster):
        return
    there = {pool.group: pool.total for pool in pools(cluster)}
    amounts = team.limit if isinstance(team.limit, Mapping) else {"": team.limit or 0}
    for group, amount in amounts.items():
        most = there.get(group, 0) if group else sum(there.values())
        if amount > most and (not group or group in there):
            yield at("limit", *([group] if group else [])).breach(
                f"the limit is {amount} accelerators and there are only {most}: it has no effect.",
                write(most) if group else drop(),
            )


def amounts_of(team: Team) -> Iterator[tuple[YamlPath, int | Mapping[str, int]]]:
    """The quota and the limit if they are written, with their paths in the team."""
    for key, amount in (("quota", team.quota), ("limit", team.limit)):
        if amount is not None and key in team.model_fields_set:
            yield (key,), amount


def _types_unknown(cluster: Cluster) -> bool:
    """Whether a compute group may have uncountable accelerators; its type has a finding already."""
    return any(None in group.types for group in cluster.with_role("compute").values())


def _counted(pool: Pool) -> str:
    return f"{pool.total} ({pool.nodes} nodes of {pool.per_node})"


def _listed(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount)


def _fit(largest: int, over: int) -> Remedy:
    """What the largest quota may be, or that a lower one is not enough."""
    return (
        write(largest - over) if largest >= over else ask("decision", f"reduce the quotas by {over} in total")
    )
