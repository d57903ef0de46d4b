"""Rules on: teams as accounts in Slurm."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config.orchestrator import SLURM
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, ask
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import new_database
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.fields import DATE, SACCTMGR


@TEA.rule(
    11,
    "error",
    "Teams in Slurm have accounting",
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
                    "orchestrator.accounting.mode is `none`: there is nowhere to keep accounts.",
                    anywhere({("orchestrator", "accounting"): {"mode": "standard"}}),
                )
        case ParallelCluster():
            if cluster.environment.storage.accounting_database is None:
                yield Breach(
                    ("teams",),
                    "without a database ParallelCluster runs no slurmdbd: there is nowhere to keep accounts.",
                    new_database(cluster.environment),
                )


@TEA.rule(
    12,
    "warning",
    "Slurm keeps to the teams' limits and shares",
    source="slurm.conf manual (AccountingStorageEnforce, PriorityWeightFairshare)",
    date=DATE,
    kinds=SLURM,
)
def not_enforced(settings: ParallelCluster | Pcs, cluster: Cluster) -> Iterator[Breach]:
    # what HyperPod's slurm.conf says is not ours to say: docs/kubernetes.md, Slurm
    teams = cluster.environment.teams
    if not teams:
        return
    have = {key.lower() for key in settings.slurm_settings}
    enforced = any(team.limit is not None for team in teams.values())
    missing = [
        setting
        for setting, wanted in (
            (("AccountingStorageEnforce", "associations,limits,qos,safe"), enforced),
            (("PriorityWeightFairshare", 100000), True),
        )
        if wanted and setting[0].lower() not in have
    ]
    if missing:
        yield Breach(
            ("slurm_settings",) if settings.slurm_settings else (),
            "shares and limits of accounts are written down, and slurmctld ignores them by default.",
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
def nobody(team: Team) -> Iterator[Breach]:
    if not team.users:
        yield Breach(
            (),
            "the account has no users: nobody can submit a job for it.",
            ask("fact", "users: [...]; or acknowledge it, and add them with sacctmgr"),
        )
