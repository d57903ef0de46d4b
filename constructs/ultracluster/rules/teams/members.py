"""Rules on: teams. That there is a scheduler for them, and that their names and members are free."""

from __future__ import annotations

from collections import Counter

from ultracluster.catalog.eks import charts
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.remedy import Remedy, anywhere, drop, rename, write
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.team_shares import namespace_of, pools, scheduler_of
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import KUBERNETES, TEA
from ultracluster.rules.teams.fields import DATE

_RESERVED_TEAMS = frozenset({"default", "default-parent-queue", "default-queue", "everyone", "root", "teams"})
"""Queues that Volcano, KAI and we have ourselves; Slurm has an account `root`."""
_RESERVED_NAMESPACES = frozenset({"default", "aws-hyperpod"})


@TEA.error(10, "Kubernetes documentation, kube-scheduler (no gangs, no borrowing)", DATE, kinds=KUBERNETES)
def teams_need_scheduler(cluster: Cluster) -> Breaches:
    """Teams have a scheduler that enforces quotas."""
    if cluster.environment.teams and scheduler_of(cluster) == "none":
        yield at("teams").breach(
            "orchestrator.scheduler is `none`: nothing would enforce the quotas.",
            anywhere({("orchestrator", "scheduler"): "kueue"}),
        )


@TEA.error(
    13, "Kubernetes documentation, Namespaces; Volcano and Slurm: queues and account of their own", DATE
)
def team_names_free(cluster: Cluster) -> Breaches:
    """Names of teams and namespaces are not in use by the cluster or another team."""
    kubernetes, teams = cluster.traits.kubernetes, cluster.environment.teams
    own = {row["namespace"] for row in charts().values()} | _RESERVED_NAMESPACES
    names = Counter(namespace_of(cluster, name) for name in teams)
    for name, team in teams.items():
        path: YamlPath = ("teams", name, *(["namespace"] if team.namespace else []))
        namespace = namespace_of(cluster, name)
        if name in _RESERVED_TEAMS:
            yield at("teams", name).breach(
                f"`{name}` is reserved: schedulers have one of their own.", rename(f"{name}-team")
            )
        elif kubernetes and (namespace in own or namespace.startswith("kube-")):
            yield at(*path).breach(
                f"the namespace `{namespace}` is reserved: it belongs to the cluster itself.",
                write(f"team-{namespace}") if team.namespace else rename(f"team-{name}"),
            )
        elif kubernetes and names[namespace] > 1:
            yield at(*path).breach(
                f"{names[namespace]} teams share the namespace `{namespace}`: each could use the "
                "other's quota.",
                _own_namespace(cluster, name),
            )


@TEA.error(14, "EKS API reference, CreateAccessEntry (one entry for each principal)", DATE, kinds=KUBERNETES)
def principal_has_one_role(team: Team, settings: Eks | HyperPodEks) -> Breaches:
    """A principal is either a team member or an admin, not both."""
    for index, member in enumerate(team.members):
        if member in settings.admins:
            yield at("members", index).breach(
                f"{member} is in orchestrator.admins already, which allows everything, and EKS allows one "
                "access entry for each principal.",
                drop(),
            )


@TEA.error(
    18,
    "Kubernetes documentation, Object Names and IDs; Kueue: a ResourceFlavor for each group",
    DATE,
    kinds=KUBERNETES,
)
def group_names_in_lower_case(cluster: Cluster) -> Breaches:
    """Names of node groups differ in more than case."""
    if scheduler_of(cluster) != "kueue":
        return
    names = Counter(pool.group.lower() for pool in pools(cluster))
    for pool in pools(cluster):
        if names[pool.group.lower()] > 1 and pool.group != pool.group.lower():
            yield at("node_groups", pool.group).breach(
                f"in Kubernetes its name is `{pool.group.lower()}`, which another group has, too: their "
                "accelerators could not be counted separately.",
                rename(f"{pool.group}-2"),
            )


def _own_namespace(cluster: Cluster, name: str) -> Remedy:
    teams = cluster.environment.teams
    taken = {namespace_of(cluster, other) for other in teams if other != name}
    return drop() if teams[name].namespace and name not in taken else _named(name)


def _named(name: str) -> Remedy:
    return anywhere({("teams", name, "namespace"): f"{name}-team"})
