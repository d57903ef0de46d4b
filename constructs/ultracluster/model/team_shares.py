"""Who schedules jobs, what accelerators there are, and which of them are whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ultracluster.catalog import InstanceType
from ultracluster.catalog.mig import mig_profiles
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.nodes import NodeGroup
from ultracluster.config.teams import Team
from ultracluster.model.cluster import Cluster
from ultracluster.model.mig import gpu_layouts, mig_resource, mig_resources

Scheduler = Literal["kueue", "volcano", "kai", "task-governance", "slurm", "none"]

PRIORITIES: Mapping[str, int] = {"low": 10, "normal": 50, "high": 90}
"""Of jobs, by name; the same in every scheduler. Below 100: KAI takes more than that for work that is never
interrupted and never borrows, and HyperPod takes no more."""
DEFAULT_PRIORITY = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The accelerators of one compute group."""

    group: str
    settings: NodeGroup
    instance_type: InstanceType
    """The first type of the group."""
    resource: str
    """As Kubernetes names it: `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`, `aws.amazon.com/neuron`, or
    `nvidia.com/gpu.shared` where GPUs take turns; of a mixed MIG layout the first."""
    per_node: int
    """Number in a node, of the group's type with the fewest; GPUs of a mixed layout."""
    mixed: Mapping[str, int] = field(default_factory=dict[str, int])
    """Resources of a node that a mixed MIG layout makes; empty without one."""
    nodes: int
    """At the most."""
    started_for_pods: bool = False
    """No node is there until a pod waits for one."""

    @property
    def total(self) -> int:
        return self.per_node * self.nodes

    @property
    def whole(self) -> bool:
        """Whether accelerators are not shared by several pods."""
        return not (self.settings.mig_key or self.settings.gpu_time_slices)

    @property
    def offered(self) -> Mapping[str, int]:
        """Resources of a node that the device plugin offers."""
        return self.mixed or {self.resource: self.per_node}

    def resources(self, amount: int) -> dict[str, int]:
        """Resources that this many of its accelerators are to pods: of a mixed layout each GPU's part of a
        node's instances, rounded down."""
        return {name: count * amount // self.per_node for name, count in self.mixed.items()} or {
            self.resource: amount
        }


def scheduler_of(cluster: Cluster) -> Scheduler:
    """What decides which job runs next."""
    if cluster.kubernetes is None:
        return "slurm"
    if isinstance(cluster.kubernetes, HyperPodEks) and cluster.kubernetes.task_governance:
        return "task-governance"
    return cluster.kubernetes.scheduler


def pools(cluster: Cluster) -> tuple[Pool, ...]:
    """The compute groups with accelerators; without those of unknown types."""
    found: list[Pool] = []
    for name, group in cluster.with_role("compute").items():
        settings = group.settings
        types = [one for one in (group.type, *group.further_types) if one]
        accelerators = [one.accelerator for one in types if one.accelerator and one.accelerator.count]
        if not accelerators or len(accelerators) < len(types):
            continue
        resource = "nvidia.com/gpu" if accelerators[0].manufacturer == "NVIDIA" else "aws.amazon.com/neuron"
        per_node = min(one.count for one in accelerators)
        mixed: dict[str, int] = {}
        if settings.mig_profile:
            resource = mig_resource(settings.mig_profile)
            per_node *= mig_profiles(types[0]).get(settings.mig_profile, 0)
        elif settings.mig_layout:
            mixed = mig_resources(gpu_layouts(settings, types[0]))
            resource = next(iter(mixed), resource)
        elif settings.gpu_time_slices:
            resource = "nvidia.com/gpu.shared"
            per_node *= settings.gpu_time_slices
        found.append(
            Pool(
                group=name,
                settings=settings,
                instance_type=types[0],
                resource=resource,
                per_node=per_node,
                mixed=mixed,
                nodes=group.most_nodes,
                started_for_pods=group.for_pods,
            )
        )
    return tuple(found)


def total_amount(amount: int | Mapping[str, int] | None) -> int:
    """A quota or limit over all groups."""
    if amount is None:
        return 0
    return amount if isinstance(amount, int) else sum(amount.values())


def quotas(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Guaranteed accelerators by group, for each team; groups without any are left out. What a team's teams
    have is part of what it has.

    Quotas by group come first. Totals take what is left, from the groups in their order: the first team from
    the first group on.

    Raises:
        ValueError: there is no such group, not as many accelerators, or no such parent.
    """
    teams = cluster.environment.teams
    shares = _taken(teams_of(teams, None), {pool.group: pool.total for pool in pools(cluster)})
    for name in parents_first(teams):
        shares |= _taken(teams_of(teams, name), dict(shares[name]))
    if lost := [name for name in teams if name not in shares]:
        raise ValueError(f"teams.{lost[0]}: its parents are no teams, or parents of each other")
    return {name: shares[name] for name in teams}


def own_quotas(cluster: Cluster) -> dict[str, dict[str, int]]:
    """The part of `quotas` that none of a team's teams has.

    Raises:
        ValueError: as `quotas`.
    """
    given = quotas(cluster)
    own = {name: dict(quota) for name, quota in given.items()}
    for name, team in cluster.environment.teams.items():
        for group, amount in given[name].items() if team.parent else ():
            own[team.parent or ""][group] -= amount
    return own


def teams_of(teams: Mapping[str, Team], parent: str | None) -> dict[str, Team]:
    """Teams whose parent it is; those without one for None."""
    return {name: team for name, team in teams.items() if team.parent == parent}


def parents_first(teams: Mapping[str, Team], parent: str | None = None) -> tuple[str, ...]:
    """All teams below a parent, each after its own; without those in a circle, and below no team."""
    below = teams_of(teams, parent)
    return (*below, *(name for one in below for name in parents_first(teams, one)))


def lineage(teams: Mapping[str, Team], name: str) -> tuple[str, ...]:
    """A team, its parent, and so on; ends at a parent that is no team or is in the list already."""
    found: list[str] = []
    above: str | None = name
    while above is not None and above in teams and above not in found:
        found.append(above)
        above = teams[above].parent
    return tuple(found)


def only_divides(cluster: Cluster, name: str) -> bool:
    """Return whether no job can be in the team, because its teams share what it has.

    Queues of KAI and Volcano take jobs or have queues below them, not both.
    """
    return scheduler_of(cluster) in ("kai", "volcano") and bool(teams_of(cluster.environment.teams, name))


def _taken(teams: Mapping[str, Team], free: dict[str, int]) -> dict[str, dict[str, int]]:
    """The part of what is free that each of these teams gets; `free` gets less."""
    shares: dict[str, dict[str, int]] = {name: {} for name in teams}
    for name, team in teams.items():
        if not isinstance(team.quota, int):
            for group, amount in team.quota.items():
                if amount > free.get(group, 0):
                    left = free.get(group, 0)
                    raise ValueError(f"teams.{name}: {amount} accelerators of {group}, and {left} are free")
                free[group] -= amount
                if amount:
                    shares[name][group] = amount
    for name, team in teams.items():
        if isinstance(team.quota, int):
            missing = team.quota
            for group in free:
                if taken := min(missing, free[group]):
                    shares[name][group] = taken
                    free[group] -= taken
                    missing -= taken
            if missing:
                raise ValueError(f"teams.{name}: {missing} of {team.quota} accelerators are not there")
    return shares


def limits(cluster: Cluster, team: Team) -> dict[str, int] | None:
    """Accelerators at the most by group; None is no limit. A total can be told of one group only.

    Raises:
        ValueError: a total, and several groups.
    """
    if team.limit is None or not isinstance(team.limit, int):
        return None if team.limit is None else dict(team.limit)
    groups = [pool.group for pool in pools(cluster)]
    if len(groups) != 1:
        raise ValueError("a limit over several node groups: give it by group")
    return {groups[0]: team.limit}


def namespace_of(cluster: Cluster, name: str) -> str:
    """A team's Kubernetes namespace; with task governance the service's choice."""
    if scheduler_of(cluster) == "task-governance":
        return f"hyperpod-ns-{name}"
    return cluster.environment.teams[name].namespace or name


__all__ = [
    "DEFAULT_PRIORITY",
    "PRIORITIES",
    "Pool",
    "Scheduler",
    "limits",
    "lineage",
    "namespace_of",
    "only_divides",
    "own_quotas",
    "parents_first",
    "pools",
    "quotas",
    "scheduler_of",
    "teams_of",
    "total_amount",
]
