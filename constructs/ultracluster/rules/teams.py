"""Rules on: teams. Quotas, names, and what each scheduler can promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ultracluster.catalog.eks import charts
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.orchestrator import KUBERNETES, SLURM, HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.teams import Team
from ultracluster.rules.engine import Breach, RuleSet
from ultracluster.rules.team_shares import Pool, Scheduler, asked, namespace_of, pools, scheduler_of
from ultracluster.rules.types import every_type_of

RULES = RuleSet("TEA", "Teams")

DATE = "2026-11-21"
KUEUE = "Kueue 0.19.2, kueue.x-k8s.io/v1beta2"
VOLCANO = "Volcano 1.15.1, capacity plugin"
KAI = "KAI Scheduler 0.17.0, scheduling.run.ai/v2"
GOVERNANCE = "SageMaker API reference, CreateComputeQuota"
SACCTMGR = "sacctmgr manual (Slurm 22.05 to 25.11)"

_TITLES: Mapping[Scheduler, str] = {
    "kueue": "Kueue",
    "volcano": "Volcano",
    "kai": "KAI",
    "task-governance": "HyperPod's task governance",
    "slurm": "Slurm",
    "none": "no scheduler",
}
_RESERVED_TEAMS = frozenset({"default", "default-parent-queue", "default-queue", "everyone", "root", "teams"})
"""Queues that Volcano, KAI and we have ourselves; Slurm has an account `root`."""
_RESERVED_NAMESPACES = frozenset({"default", "aws-hyperpod"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """Which schedulers have a field of a team."""

    schedulers: frozenset[Scheduler]
    why: str
    instead: str = ""
    """By default: remove it."""


_OPTIONS: Mapping[str, _Option] = {
    "lend": _Option(
        schedulers=frozenset({"kueue", "volcano", "task-governance"}),
        why="what a team leaves idle is always lent there",
        instead="remove lend; a quota is taken back as soon as the team wants it",
    ),
    "weight": _Option(
        schedulers=frozenset({"kueue", "kai", "task-governance"}),
        why="idle accelerators are shared in proportion to the quotas there",
        instead="remove weight",
    ),
    "preempt_own": _Option(
        schedulers=frozenset({"kueue", "task-governance"}),
        why="whether jobs end others is decided for the whole cluster there",
        instead="remove preempt_own",
    ),
    "namespace": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai"}),
        why="HyperPod makes the namespace itself, `hyperpod-ns-<team>`, and Slurm has none",
        instead="remove namespace",
    ),
    "members": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai"}),
        why="the team's namespace is HyperPod's to make after the cluster, and Slurm knows Unix users",
        instead="users: [...] with Slurm; with task governance access entries of your own, once the quota "
        "exists",
    ),
    "users": _Option(
        schedulers=frozenset({"slurm"}),
        why="Kubernetes knows IAM principals, not Unix users",
        instead="members: [arn:aws:iam::<account>:role/<role>]",
    ),
}
_BY_GROUP: frozenset[Scheduler] = frozenset({"kueue", "task-governance"})
"""Schedulers that count accelerators by node group (or by instance type), and not only in total."""


@RULES.rule(
    1,
    "error",
    "A quota or limit by node group names compute groups with accelerators",
    source="this configuration: node_groups",
    date=DATE,
)
def unknown_group(environment: Environment) -> Iterator[Breach]:
    if _types_unknown(environment):
        return
    there = [pool.group for pool in pools(environment)]
    for path, amounts in _amounts(environment):
        for group in amounts if isinstance(amounts, Mapping) else ():
            if group not in there:
                what = "has no accelerators" if group in environment.node_groups else "does not exist"
                yield Breach(
                    (*path, group),
                    f"`{group}` {what}: there is nothing to share.",
                    f"one of {', '.join(there)}" if there else "remove it",
                )


@RULES.rule(
    2, "error", "Quotas fit in the cluster, together", source="this configuration: node_groups", date=DATE
)
def too_much(environment: Environment) -> Iterator[Breach]:
    if not environment.teams or _types_unknown(environment):
        return
    there = {pool.group: pool.total for pool in pools(environment)}
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


@RULES.rule(
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
                        str(quota),
                    )
        elif (limit := asked(team.limit)) < (quota := asked(team.quota)):
            yield Breach(
                ("teams", name, "limit"),
                f"{limit} accelerators at the most, and {quota} guaranteed.",
                str(quota),
            )


@RULES.rule(
    4,
    "error",
    "A limit is not above the cluster",
    source="this configuration: node_groups",
    date=DATE,
)
def limit_above_cluster(environment: Environment) -> Iterator[Breach]:
    if _types_unknown(environment):
        return
    there = {pool.group: pool.total for pool in pools(environment)}
    for name, team in environment.teams.items():
        amounts = team.limit if isinstance(team.limit, Mapping) else {"": team.limit or 0}
        for group, amount in amounts.items():
            most = there.get(group, 0) if group else sum(there.values())
            if amount > most and (not group or group in there):
                yield Breach(
                    ("teams", name, "limit", *([group] if group else [])),
                    f"{amount} accelerators at the most, and there are {most}: the limit limits nothing.",
                    "remove it" if not group else str(most),
                )


@RULES.rule(
    5,
    "error",
    "A total counts accelerators of one kind",
    source="Kubernetes documentation, Extended Resources (a resource of each kind)",
    date=DATE,
)
def total_of_several_kinds(environment: Environment) -> Iterator[Breach]:
    kinds = sorted({pool.resource for pool in pools(environment)})
    if len(kinds) < 2:
        return
    by_group = scheduler_of(environment) in _BY_GROUP
    for path, amounts in _amounts(environment):
        if isinstance(amounts, int) and amounts:
            yield Breach(
                path,
                f"{amounts} of what? The cluster has {' and '.join(kinds)}.",
                _by_group(environment) if by_group else "node groups with accelerators of one kind",
            )


@RULES.rule(
    6,
    "error",
    "Accelerators are counted by node group only where the scheduler can",
    source=f"{KUEUE} (ResourceFlavor); {VOLCANO} (deserved by resource); {KAI} (resources.gpu); {SACCTMGR} "
    "(GrpTRES)",
    date=DATE,
)
def by_group_not_there(environment: Environment) -> Iterator[Breach]:
    scheduler = scheduler_of(environment)
    if scheduler in _BY_GROUP or scheduler == "none" or len(pools(environment)) < 2:
        return
    for path, amounts in _amounts(environment):
        if isinstance(amounts, Mapping):
            yield Breach(
                path,
                f"{_TITLES[scheduler]} counts accelerators of the whole cluster, not by node group.",
                f"{sum(amounts.values())}, in total"
                + ("; or orchestrator.scheduler: kueue" if scheduler != "slurm" else ""),
            )


@RULES.rule(
    7,
    "error",
    "A limit over several node groups is given by group",
    source=f"{KUEUE} (borrowingLimit of a flavor); {GOVERNANCE} (AbsoluteBorrowLimits by instance type)",
    date=DATE,
)
def limit_in_total(environment: Environment) -> Iterator[Breach]:
    scheduler = scheduler_of(environment)
    if scheduler not in _BY_GROUP or len(pools(environment)) < 2:
        return
    for name, team in environment.teams.items():
        if isinstance(team.limit, int):
            yield Breach(
                ("teams", name, "limit"),
                f"{_TITLES[scheduler]} limits what is borrowed of each node group, not of all together.",
                _by_group(environment),
            )


@RULES.rule(
    8,
    "error",
    "A team's field is one that the scheduler has",
    source=f"{KUEUE}; {VOLCANO}; {KAI}; {GOVERNANCE}; {SACCTMGR}",
    date=DATE,
)
def option_of_another_scheduler(environment: Environment) -> Iterator[Breach]:
    scheduler = scheduler_of(environment)
    if scheduler in ("none", "slurm"):
        kinds: tuple[str, ...] = ("namespace", "members") if scheduler == "slurm" else ()
    else:
        kinds = tuple(_OPTIONS)
    for name, team in environment.teams.items():
        for key in kinds:
            option = _OPTIONS[key]
            if key in team.model_fields_set and scheduler not in option.schedulers and _says_more(team, key):
                yield Breach(
                    ("teams", name, key),
                    f"{_TITLES[scheduler]} has no `{key}`: {option.why}.",
                    option.instead,
                )


@RULES.rule(
    9,
    "warning",
    "A team's field says something to Slurm",
    source=f"{SACCTMGR} (fairshare)",
    date=DATE,
    kinds=SLURM,
)
def option_without_meaning(environment: Environment) -> Iterator[Breach]:
    for name, team in environment.teams.items():
        for key in ("lend", "weight", "preempt_own"):
            if key in team.model_fields_set and _says_more(team, key):
                yield Breach(
                    ("teams", name, key),
                    f"Slurm has no `{key}` of an account: a quota becomes the account's fair share, idle "
                    "nodes go to whoever is furthest below it, and preemption is one setting of the cluster.",
                    f"remove {key}",
                )


@RULES.rule(
    10,
    "error",
    "Teams have a scheduler that keeps them apart",
    source="Kubernetes documentation, kube-scheduler (no gangs, no borrowing)",
    date=DATE,
    kinds=KUBERNETES,
)
def no_scheduler(environment: Environment) -> Iterator[Breach]:
    if environment.teams and scheduler_of(environment) == "none":
        yield Breach(
            ("teams",),
            "orchestrator.scheduler is `none`: nothing would keep a quota.",
            "orchestrator.scheduler: kueue",
        )


@RULES.rule(
    11,
    "error",
    "Teams in Slurm have accounting",
    source="Slurm documentation, Accounting and Resource Limits (accounts live in slurmdbd)",
    date=DATE,
    kinds=SLURM,
)
def no_accounting(environment: Environment) -> Iterator[Breach]:
    orchestrator = environment.orchestrator
    if not environment.teams:
        return
    if isinstance(orchestrator, Pcs) and orchestrator.accounting.mode == "none":
        yield Breach(
            ("teams",),
            "orchestrator.accounting.mode is `none`: there is nowhere to keep accounts.",
            "accounting: {mode: standard}",
        )
    if isinstance(orchestrator, ParallelCluster) and environment.storage.accounting_database is None:
        yield Breach(
            ("teams",),
            "without a database ParallelCluster runs no slurmdbd: there is nowhere to keep accounts.",
            "storage.accounting_database: {kind: rds-mysql, ...}",
        )


@RULES.rule(
    12,
    "warning",
    "Slurm keeps to the teams' limits and shares",
    source="slurm.conf manual (AccountingStorageEnforce, PriorityWeightFairshare)",
    date=DATE,
    kinds=SLURM,
)
def not_enforced(environment: Environment) -> Iterator[Breach]:
    orchestrator = environment.orchestrator
    if not environment.teams or isinstance(orchestrator, HyperPodSlurm):
        return  # what HyperPod's slurm.conf says is not ours to say: docs/kubernetes.md, Slurm
    assert isinstance(orchestrator, Pcs | ParallelCluster)
    have = {key.lower() for key in orchestrator.slurm_settings}
    enforced = any(team.limit is not None for team in environment.teams.values())
    missing = [
        setting
        for setting, wanted in (
            ("AccountingStorageEnforce: associations,limits,qos,safe", enforced),
            ("PriorityWeightFairshare: 100000", True),
        )
        if wanted and setting.partition(":")[0].lower() not in have
    ]
    if missing:
        yield Breach(
            ("orchestrator", *(["slurm_settings"] if orchestrator.slurm_settings else [])),
            "shares and limits of accounts are written down, and slurmctld ignores them by default.",
            f"slurm_settings: {{{', '.join(missing)}}}",
        )


@RULES.rule(
    13,
    "error",
    "Names of teams and namespaces are free",
    source="Kubernetes documentation, Namespaces; Volcano and Slurm: queues and account of their own",
    date=DATE,
)
def taken_names(environment: Environment) -> Iterator[Breach]:
    kubernetes = environment.orchestrator.kind in KUBERNETES
    own = {row["namespace"] for row in charts().values()} | _RESERVED_NAMESPACES
    names = Counter(namespace_of(environment, name) for name in environment.teams)
    for name, team in environment.teams.items():
        path: Path = ("teams", name, *(["namespace"] if team.namespace else []))
        namespace = namespace_of(environment, name)
        if name in _RESERVED_TEAMS:
            yield Breach(
                ("teams", name), f"schedulers have a `{name}` of their own.", f"another name: {name}-team"
            )
        elif kubernetes and (namespace in own or namespace.startswith("kube-")):
            yield Breach(
                path, f"the namespace `{namespace}` belongs to the cluster itself.", f"team-{namespace}"
            )
        elif kubernetes and names[namespace] > 1:
            yield Breach(
                path,
                f"{names[namespace]} teams share the namespace `{namespace}`: each could use the "
                "other's quota.",
                "a namespace for each team",
            )


@RULES.rule(
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
                    "remove it here or there",
                )


@RULES.rule(
    15,
    "warning",
    "A Slurm account has users",
    source=f"{SACCTMGR} (associations are of a user in an account)",
    date=DATE,
    kinds=SLURM,
)
def nobody(environment: Environment) -> Iterator[Breach]:
    for name, team in environment.teams.items():
        if not team.users:
            yield Breach(
                ("teams", name),
                "the account has no users: nobody can submit a job for it.",
                "users: [...]; or acknowledge it, and add them with sacctmgr",
            )


@RULES.rule(
    16,
    "error",
    "KAI and Slurm's accounts count GPUs",
    source=f"{KAI} (resources.gpu); slurm.conf manual (AccountingStorageTRES=gres/gpu)",
    date=DATE,
)
def not_gpus(environment: Environment) -> Iterator[Breach]:
    scheduler = scheduler_of(environment)
    others = [pool for pool in pools(environment) if pool.resource != "nvidia.com/gpu"]
    if not others or scheduler not in ("kai", "slurm"):
        return
    for path, amounts in _amounts(environment):
        if scheduler == "kai" or path[-1] == "limit":
            yield Breach(
                path,
                f"{_TITLES[scheduler]} counts whole NVIDIA GPUs, and {others[0].group} has "
                f"{others[0].resource}: {asked(amounts)} of them cannot be counted.",
                "remove limit" if scheduler == "slurm" else "orchestrator.scheduler: kueue",
            )


@RULES.rule(
    17,
    "error",
    "Task governance lends and borrows, lends only, or does neither",
    source="SageMaker API reference, ResourceSharingConfig",
    date=DATE,
    kinds=frozenset({"hyperpod-eks"}),
)
def borrows_and_keeps(environment: Environment) -> Iterator[Breach]:
    if scheduler_of(environment) != "task-governance":
        return
    for name, team in environment.teams.items():
        if not team.lend and (team.limit is None or asked(team.limit) > asked(team.quota)):
            yield Breach(
                ("teams", name, "lend"),
                "the service has no team that borrows and does not lend.",
                f"limit: {asked(team.quota)}, so that it does not borrow either; or lend: true",
            )


@RULES.rule(
    18,
    "error",
    "Node groups have names that differ in lower case",
    source="Kubernetes documentation, Object Names and IDs; Kueue: a ResourceFlavor for each group",
    date=DATE,
    kinds=KUBERNETES,
)
def same_in_lower_case(environment: Environment) -> Iterator[Breach]:
    if scheduler_of(environment) != "kueue":
        return
    names = Counter(pool.group.lower() for pool in pools(environment))
    for pool in pools(environment):
        if names[pool.group.lower()] > 1 and pool.group != pool.group.lower():
            yield Breach(
                ("node_groups", pool.group),
                f"in Kubernetes it is `{pool.group.lower()}`, as another group is: their accelerators could "
                "not be told apart.",
                "another name",
            )


def _amounts(environment: Environment) -> Iterator[tuple[Path, int | Mapping[str, int]]]:
    """Every quota and limit, and where it stands."""
    for name, team in environment.teams.items():
        for key in ("quota", "limit"):
            amount = getattr(team, key)
            if amount is not None and key in team.model_fields_set:
                yield ("teams", name, key), amount


def _types_unknown(environment: Environment) -> bool:
    """Whether a compute group may have accelerators that nobody can count; its type has a finding already."""
    return any(None in every_type_of(environment, group) for group in environment.groups("compute").values())


def _says_more(team: Team, key: str) -> bool:
    """Whether a field that is there says other than its default."""
    return getattr(team, key) != type(team).model_fields[key].default


def _pool(environment: Environment, group: str) -> Pool:
    return next(pool for pool in pools(environment) if pool.group == group)


def _counted(pool: Pool) -> str:
    return f"{pool.total} ({pool.nodes} nodes of {pool.per_node})"


def _listed(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount)


def _fit(largest: int, over: int) -> str:
    """What the largest quota may be, or that it alone does not help."""
    return str(largest - over) if largest >= over else f"{over} fewer, over all teams"


def _by_group(environment: Environment) -> str:
    return "{" + ", ".join(f"{pool.group}: ..." for pool in pools(environment)) + "}"
