"""Rules on: quotas and limits of teams, which fit into the cluster and each other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import Remedy, ask, drop, rename, write
from ultracluster.model import resolve
from ultracluster.model.team_shares import Pool, asked, pools
from ultracluster.model.types import every_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.schedulers import DATE, KUEUE, VOLCANO


@TEA.rule(
    1,
    "error",
    "A quota or limit by node group names compute groups with accelerators",
    source="this configuration: node_groups",
    date=DATE,
)
def unknown_group(environment: Environment) -> Iterator[Breach]:
    if _types_unknown(environment):
        return
    there = [pool.group for pool in pools(resolve(environment))]
    for path, amounts in amounts_of(environment):
        given: Mapping[str, int] = amounts if isinstance(amounts, Mapping) else {}
        for group in given:
            if group not in there:
                near = difflib.get_close_matches(group, [one for one in there if one not in given], n=1)
                what = "has no accelerators" if group in environment.node_groups else "does not exist"
                yield Breach(
                    (*path, group),
                    f"`{group}` {what}: there is nothing to share.",
                    rename(near[0]) if near else drop(),
                )


@TEA.rule(
    2, "error", "Quotas fit in the cluster, together", source="this configuration: node_groups", date=DATE
)
def too_much(environment: Environment) -> Iterator[Breach]:
    if not environment.teams or _types_unknown(environment):
        return
    there = {pool.group: pool.total for pool in pools(resolve(environment))}
    over = False
    for group, total in there.items():
        wanted = {
            name: team.quota.get(group, 0)
            for name, team in environment.teams.items()
            if not isinstance(team.quota, int)
        }
        if (sum_ := sum(wanted.values())) > total:
            over = True
            largest = max(wanted, key=lambda name: wanted[name])
            yield Breach(
                ("teams", largest, "quota", group),
                f"the teams' quotas of {group} add up to {sum_} accelerators ({_listed(wanted)}), and it has "
                f"{_counted(_pool(environment, group))}: what is guaranteed could not be kept.",
                _fit(wanted[largest], sum_ - total),
            )
    everything = {name: asked(team.quota) for name, team in environment.teams.items()}
    sum_, total = sum(everything.values()), sum(there.values())
    if sum_ > total and not over:
        largest = max(everything, key=lambda name: everything[name])
        yield Breach(
            ("teams", largest, "quota"),
            f"the teams' quotas add up to {sum_} accelerators ({_listed(everything)}), and the cluster has "
            f"{total}: what is guaranteed could not be kept.",
            _fit(everything[largest], sum_ - total),
        )


@TEA.rule(
    3,
    "error",
    "A limit is not below the quota",
    source=f"{KUEUE} (borrowingLimit is not negative); {VOLCANO} (deserved <= capability)",
    date=DATE,
)
def limit_below_quota(environment: Environment) -> Iterator[Breach]:
    for name, team in environment.teams.items():
        if team.limit is None:
            continue
        if isinstance(team.limit, Mapping) and isinstance(team.quota, Mapping):
            for group, amount in team.limit.items():
                if amount < (quota := team.quota.get(group, 0)):
                    yield Breach(
                        ("teams", name, "limit", group),
                        f"{amount} accelerators of {group} at the most, and {quota} guaranteed.",
                        write(quota),
                    )
        elif (limit := asked(team.limit)) < (quota := asked(team.quota)):
            yield Breach(
                ("teams", name, "limit"),
                f"{limit} accelerators at the most, and {quota} guaranteed.",
                write(quota),
            )


@TEA.rule(
    4,
    "error",
    "A limit is not above the cluster",
    source="this configuration: node_groups",
    date=DATE,
)
def limit_above_cluster(environment: Environment) -> Iterator[Breach]:
    if _types_unknown(environment):
        return
    there = {pool.group: pool.total for pool in pools(resolve(environment))}
    for name, team in environment.teams.items():
        amounts = team.limit if isinstance(team.limit, Mapping) else {"": team.limit or 0}
        for group, amount in amounts.items():
            most = there.get(group, 0) if group else sum(there.values())
            if amount > most and (not group or group in there):
                yield Breach(
                    ("teams", name, "limit", *([group] if group else [])),
                    f"{amount} accelerators at the most, and there are {most}: the limit limits nothing.",
                    write(most) if group else drop(),
                )


def amounts_of(environment: Environment) -> Iterator[tuple[Path, int | Mapping[str, int]]]:
    """Every quota and limit, and where it stands."""
    for name, team in environment.teams.items():
        for key in ("quota", "limit"):
            amount = getattr(team, key)
            if amount is not None and key in team.model_fields_set:
                yield ("teams", name, key), amount


def _types_unknown(environment: Environment) -> bool:
    """Whether a compute group may have accelerators that nobody can count; its type has a finding already."""
    return any(None in every_type_of(environment, group) for group in environment.groups("compute").values())


def _pool(environment: Environment, group: str) -> Pool:
    return next(pool for pool in pools(resolve(environment)) if pool.group == group)


def _counted(pool: Pool) -> str:
    return f"{pool.total} ({pool.nodes} nodes of {pool.per_node})"


def _listed(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount)


def _fit(largest: int, over: int) -> Remedy:
    """What the largest quota may be, or that it alone does not help."""
    return write(largest - over) if largest >= over else ask("decision", f"{over} fewer, over all teams")
