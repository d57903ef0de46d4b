"""Rules on: quotas and limits of teams, which the scheduler can count."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.config.remedy import anywhere, ask, drop, write
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.team_shares import pools, scheduler_of, total_amount
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.fields import (
    BY_GROUP,
    DATE,
    GOVERNANCE,
    KAI,
    KUEUE,
    SACCTMGR,
    TITLES,
    VOLCANO,
)
from ultracluster.rules.teams.quotas import amounts_of


@TEA.error(5, "Kubernetes documentation, Extended Resources (a resource of each kind)", DATE)
def total_counts_one_kind(team: Team, cluster: Cluster) -> Breaches:
    """A total counts accelerators of one kind."""
    kinds = sorted({" with ".join(pool.offered) for pool in pools(cluster)})
    if len(kinds) < 2:
        return
    by_group = scheduler_of(cluster) in BY_GROUP
    for path, amounts in amounts_of(team):
        if isinstance(amounts, int) and amounts:
            yield at(*path).breach(
                f"a total of {amounts} does not say of which kind: the cluster has {' and '.join(kinds)}.",
                write(_by_group(cluster, amounts))
                if by_group
                else ask("decision", "use node groups with accelerators of one kind"),
            )


@TEA.error(
    6,
    f"{KUEUE} (ResourceFlavor); {VOLCANO} (deserved by resource); {KAI} (resources.gpu); {SACCTMGR} "
    "(GrpTRES)",
    DATE,
)
def quota_by_group_supported(team: Team, cluster: Cluster) -> Breaches:
    """Quotas are given by node group only where the scheduler counts by node group."""
    scheduler = scheduler_of(cluster)
    if scheduler in BY_GROUP or scheduler == "none" or len(pools(cluster)) < 2:
        return
    for path, amounts in amounts_of(team):
        if isinstance(amounts, Mapping):
            yield at(*path).breach(
                f"{TITLES[scheduler]} counts accelerators of the whole cluster, not by node group.",
                write(sum(amounts.values()))
                if scheduler == "slurm"
                else write(sum(amounts.values())) | anywhere({("orchestrator", "scheduler"): "kueue"}),
            )


@TEA.error(
    7, f"{KUEUE} (borrowingLimit of a flavor); {GOVERNANCE} (AbsoluteBorrowLimits by instance type)", DATE
)
def limit_by_group(team: Team, cluster: Cluster) -> Breaches:
    """A limit over several node groups is given by group."""
    scheduler = scheduler_of(cluster)
    if scheduler not in BY_GROUP or len(pools(cluster)) < 2:
        return
    if isinstance(team.limit, int):
        yield at("limit").breach(
            f"{TITLES[scheduler]} limits what a team borrows from each node group, not from all together.",
            write(_by_group(cluster, team.limit)),
        )


@TEA.error(16, f"{KAI} (resources.gpu); slurm.conf manual (AccountingStorageTRES=gres/gpu)", DATE)
def only_nvidia_gpus_counted(team: Team, cluster: Cluster) -> Breaches:
    """KAI and Slurm accounts count only NVIDIA GPUs."""
    scheduler = scheduler_of(cluster)
    others = [pool for pool in pools(cluster) if pool.resource != "nvidia.com/gpu"]
    if not others or scheduler not in ("kai", "slurm"):
        return
    for path, amounts in amounts_of(team):
        if scheduler == "kai" or path[-1] == "limit":
            yield at(*path).breach(
                f"{TITLES[scheduler]} counts only whole NVIDIA GPUs, and {others[0].group} has "
                f"{others[0].resource}, so that {total_amount(amounts)} cannot be counted.",
                drop() if scheduler == "slurm" else anywhere({("orchestrator", "scheduler"): "kueue"}),
            )


def _by_group(cluster: Cluster, amounts: int) -> dict[str, int]:
    """A total, taken from the groups in their order."""
    split: dict[str, int] = {}
    for pool in pools(cluster):
        if taken := min(amounts, pool.total):
            split[pool.group] = taken
            amounts -= taken
    return split
