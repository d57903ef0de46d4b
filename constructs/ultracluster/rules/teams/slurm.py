"""Rules on: teams as accounts in Slurm."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, ask
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.remedies import new_database
from ultracluster.rules.sets import SLURM, TEA
from ultracluster.rules.teams.fields import DATE, SACCTMGR


@TEA.rule(
    11,
    "error",
    "Teams in Slurm have Slurm accounting",
    source="Slurm documentation, Accounting and Resource Limits (accounts live in slurmdbd)",
    date=DATE,
    kinds=SLURM,
)
def no_accounting(cluster: Cluster, settings: ParallelCluster | Pcs) -> Iterator[Breach]:
    if not cluster.environment.teams:
        return
    match settings:
        case Pcs():
            if settings.accounting.mode == "none":
                yield Breach(
                    ("teams",),
                    "teams require Slurm accounts, and orchestrator.accounting.mode is `none`.",
                    anywhere({("orchestrator", "accounting"): {"mode": "standard"}}),
                )
        case ParallelCluster():
            if cluster.environment.storage.accounting_database is None:
                yield Breach(
                    ("teams",),
                    "teams require Slurm accounts, and without a database ParallelCluster runs no slurmdbd.",
                    new_database(cluster),
                )


@TEA.rule(
    12,
    "warning",
    "Slurm enforces the teams' limits and shares",
    source="slurm.conf manual (AccountingStorageEnforce, PriorityWeightFairshare)",
    date=DATE,
    kinds=SLURM,
)
def not_enforced(settings: ParallelCluster | Pcs, cluster: Cluster) -> Iterator[Breach]:
    # HyperPod writes its slurm.conf itself: docs/kubernetes.md, Slurm
    teams = cluster.environment.teams
    if not teams:
        return
    have = {key.lower() for key in settings.slurm_settings}
    enforced = any(team.limit is not None for team in teams.values())
    missing = [
        setting
        for setting, required in (
            (("AccountingStorageEnforce", "associations,limits,qos,safe"), enforced),
            (("PriorityWeightFairshare", 100000), True),
        )
        if required and setting[0].lower() not in have
    ]
    if missing:
        yield Breach(
            ("slurm_settings",) if settings.slurm_settings else (),
            "by default slurmctld ignores the shares and limits of accounts.",
            anywhere({("orchestrator", "slurm_settings", key): value for key, value in missing}),
        )


@TEA.rule(
    15,
    "warning",
    "A Slurm account has users",
    source=f"{SACCTMGR} (associations are of a user in an account)",
    date=DATE,
    kinds=SLURM,
)
def no_users(team: Team) -> Iterator[Breach]:
    if not team.users:
        yield Breach(
            (),
            "the account has no users: no one can submit a job for it.",
            ask("fact", "users: [...]; or acknowledge this, and add users with sacctmgr"),
        )
