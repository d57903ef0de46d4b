"""Rules on: teams. Quotas, names, and what each scheduler can promise.

That there is a scheduler, and that names and members are free, stands here; each further subject has a module
beside this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ultracluster.catalog.eks import charts
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.config.remedy import Remedy, anywhere, drop, rename, write
from ultracluster.model import resolve
from ultracluster.model.team_shares import namespace_of, pools, scheduler_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.schedulers import DATE

_RESERVED_TEAMS = frozenset({"default", "default-parent-queue", "default-queue", "everyone", "root", "teams"})
"""Queues that Volcano, KAI and we have ourselves; Slurm has an account `root`."""
_RESERVED_NAMESPACES = frozenset({"default", "aws-hyperpod"})


@TEA.rule(
    10,
    "error",
    "Teams have a scheduler that keeps them apart",
    source="Kubernetes documentation, kube-scheduler (no gangs, no borrowing)",
    date=DATE,
    kinds=KUBERNETES,
)
def no_scheduler(environment: Environment) -> Iterator[Breach]:
    if environment.teams and scheduler_of(resolve(environment)) == "none":
        yield Breach(
            ("teams",),
            "orchestrator.scheduler is `none`: nothing would keep a quota.",
            anywhere({("orchestrator", "scheduler"): "kueue"}),
        )


@TEA.rule(
    13,
    "error",
    "Names of teams and namespaces are free",
    source="Kubernetes documentation, Namespaces; Volcano and Slurm: queues and account of their own",
    date=DATE,
)
def taken_names(environment: Environment) -> Iterator[Breach]:
    kubernetes = environment.orchestrator.kind in KUBERNETES
    own = {row["namespace"] for row in charts().values()} | _RESERVED_NAMESPACES
    names = Counter(namespace_of(resolve(environment), name) for name in environment.teams)
    for name, team in environment.teams.items():
        path: Path = ("teams", name, *(["namespace"] if team.namespace else []))
        namespace = namespace_of(resolve(environment), name)
        if name in _RESERVED_TEAMS:
            yield Breach(("teams", name), f"schedulers have a `{name}` of their own.", rename(f"{name}-team"))
        elif kubernetes and (namespace in own or namespace.startswith("kube-")):
            yield Breach(
                path,
                f"the namespace `{namespace}` belongs to the cluster itself.",
                write(f"team-{namespace}") if team.namespace else rename(f"team-{name}"),
            )
        elif kubernetes and names[namespace] > 1:
            yield Breach(
                path,
                f"{names[namespace]} teams share the namespace `{namespace}`: each could use the "
                "other's quota.",
                _own_namespace(environment, name),
            )


@TEA.rule(
    14,
    "error",
    "Nobody is a team's member and an admin",
    source="EKS API reference, CreateAccessEntry (one entry for each principal)",
    date=DATE,
    kinds=KUBERNETES,
)
def member_and_admin(environment: Environment) -> Iterator[Breach]:
    orchestrator = environment.orchestrator
    assert isinstance(orchestrator, Eks | HyperPodEks)
    for name, team in environment.teams.items():
        for index, member in enumerate(team.members):
            if member in orchestrator.admins:
                yield Breach(
                    ("teams", name, "members", index),
                    f"{member} is in orchestrator.admins, may do everything, and cannot have a second entry.",
                    drop(),
                )


@TEA.rule(
    18,
    "error",
    "Node groups have names that differ in lower case",
    source="Kubernetes documentation, Object Names and IDs; Kueue: a ResourceFlavor for each group",
    date=DATE,
    kinds=KUBERNETES,
)
def same_in_lower_case(environment: Environment) -> Iterator[Breach]:
    if scheduler_of(resolve(environment)) != "kueue":
        return
    names = Counter(pool.group.lower() for pool in pools(resolve(environment)))
    for pool in pools(resolve(environment)):
        if names[pool.group.lower()] > 1 and pool.group != pool.group.lower():
            yield Breach(
                ("node_groups", pool.group),
                f"in Kubernetes it is `{pool.group.lower()}`, as another group is: their accelerators could "
                "not be told apart.",
                rename(f"{pool.group}-2"),
            )


def _own_namespace(environment: Environment, name: str) -> Remedy:
    taken = {namespace_of(resolve(environment), other) for other in environment.teams if other != name}
    return drop() if environment.teams[name].namespace and name not in taken else _named(name)


def _named(name: str) -> Remedy:
    return anywhere({("teams", name, "namespace"): f"{name}-team"})
