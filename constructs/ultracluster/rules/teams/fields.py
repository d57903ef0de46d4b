"""Rules on: fields of a team, which not every scheduler has. Names of schedulers, and what they count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ultracluster.config.remedy import beside, drop, write
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.team_shares import Scheduler, scheduler_of, total_amount
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import SLURM, TEA

DATE = "2026-11-21"
KUEUE = "Kueue 0.19.2, kueue.x-k8s.io/v1beta2"
VOLCANO = "Volcano 1.15.1, capacity plugin"
KAI = "KAI Scheduler 0.17.0, scheduling.run.ai/v2"
GOVERNANCE = "SageMaker API reference, CreateComputeQuota"
SACCTMGR = "sacctmgr manual (Slurm 22.05 to 25.11)"

TITLES: Mapping[Scheduler, str] = {
    "kueue": "Kueue",
    "volcano": "Volcano",
    "kai": "KAI",
    "task-governance": "HyperPod's task governance",
    "slurm": "Slurm",
    "none": "no scheduler",
}

BY_GROUP: frozenset[Scheduler] = frozenset({"kueue", "task-governance"})
"""Schedulers that count accelerators by node group (or by instance type), and not only in total."""

_MOST_WEIGHT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """Which schedulers have a field of a team."""

    schedulers: frozenset[Scheduler]
    why: str
    note: str = ""
    """Advice besides removing it."""


_OPTIONS: Mapping[str, _Option] = {
    "parent": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai", "slurm"}),
        why="a compute quota is a team's of the cluster, and none is a part of another",
        note="with orchestrator.task_governance: false teams may be in teams",
    ),
    "most_per_user": _Option(
        schedulers=frozenset({"slurm"}),
        why="it counts accelerators by queue, and does not know who submitted a job",
        note="give the person a team of their own, with a `parent` and a `limit`",
    ),
    "lend": _Option(
        schedulers=frozenset({"kueue", "volcano", "task-governance"}),
        why="there idle accelerators of a team are always lent",
        note="the team gets its quota back as soon as it needs it",
    ),
    "weight": _Option(
        schedulers=frozenset({"kueue", "kai", "task-governance"}),
        why="there idle accelerators are shared in proportion to the quotas",
    ),
    "preempt_own": _Option(
        schedulers=frozenset({"kueue", "task-governance"}),
        why="there preemption is one setting for the whole cluster",
    ),
    "namespace": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai"}),
        why="HyperPod creates the namespace `hyperpod-ns-<team>` itself, and Slurm has no namespaces",
    ),
    "members": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai"}),
        why="HyperPod creates the team's namespace only after the cluster, and Slurm uses Unix users",
        note="with Slurm use users: [...]; with task governance create access entries of your own once the "
        "quota exists",
    ),
    "pod_security": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai", "task-governance"}),
        why="Slurm has no pods",
    ),
    "uid": _Option(
        schedulers=frozenset({"kueue", "volcano", "kai", "task-governance"}),
        why="Slurm jobs run as the Unix user that submits them",
    ),
    "users": _Option(
        schedulers=frozenset({"slurm"}),
        why="Kubernetes uses IAM principals, not Unix users",
        note="use members: [arn:aws:iam::<account>:role/<role>]",
    ),
}


@TEA.error(8, f"{KUEUE}; {VOLCANO}; {KAI}; {GOVERNANCE}; {SACCTMGR}", DATE)
def team_field_supported(team: Team, cluster: Cluster) -> Breaches:
    """The scheduler supports every field of a team."""
    scheduler = scheduler_of(cluster)
    match scheduler:
        case "none":
            keys: tuple[str, ...] = ()
        case "slurm":
            keys = ("namespace", "members", "pod_security", "uid")  # TEA009 warns of the others
        case _:
            keys = tuple(_OPTIONS)
    for key in keys:
        option = _OPTIONS[key]
        if scheduler not in option.schedulers and key in _changed(team):
            yield at(key).breach(
                f"{TITLES[scheduler]} has no `{key}`: {option.why}.", drop().noting(option.note)
            )


@TEA.warning(9, f"{SACCTMGR} (fairshare)", DATE, kinds=SLURM)
def team_field_has_effect(team: Team) -> Breaches:
    """Every field of a team has an effect in Slurm."""
    for key in ("lend", "weight", "preempt_own"):
        if key in _changed(team):
            yield at(key).breach(
                f"Slurm accounts have no `{key}`: a quota becomes the account's fair share, idle nodes go to "
                "the account that is furthest below its share, and preemption is one setting of the cluster.",
                drop(),
            )


@TEA.error(17, "SageMaker API reference, ResourceSharingConfig", DATE, kinds=frozenset({"hyperpod-eks"}))
def borrowing_requires_lending(team: Team, cluster: Cluster) -> Breaches:
    """With task governance a team that borrows also lends."""
    if scheduler_of(cluster) != "task-governance":
        return
    if not team.lend and (team.limit is None or total_amount(team.limit) > total_amount(team.quota)):
        yield at("lend").breach(
            "task governance does not let a team borrow that does not lend.",
            write(True) | beside(limit=total_amount(team.quota)),
        )


@TEA.error(
    19,
    "SageMaker API reference, ComputeQuotaTarget (FairShareWeight: 0 to 100)",
    "2026-11-22",
    kinds=frozenset({"hyperpod-eks"}),
)
def weight_limit(team: Team, cluster: Cluster) -> Breaches:
    """A weight is at most 100 with task governance."""
    if scheduler_of(cluster) == "task-governance" and team.weight > _MOST_WEIGHT:
        largest = max(other.weight for other in cluster.environment.teams.values())
        yield at("weight").breach(
            f"{team.weight} is too high: task governance takes up to {_MOST_WEIGHT}. Weights are relative to "
            "each other.",
            write(max(1, team.weight * _MOST_WEIGHT // largest)),
        )


def _changed(team: Team) -> set[str]:
    """The fields that are written and differ from their defaults."""
    return {
        key for key, value in team if key in team.model_fields_set and value != Team.model_fields[key].default
    }
