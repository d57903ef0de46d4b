"""Rules on: teams as accounts in Slurm."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.orchestrator import SLURM, HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import anywhere, ask
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import new_database
from ultracluster.rules.sets import TEA
from ultracluster.rules.teams.schedulers import DATE, SACCTMGR


@TEA.rule(
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
            anywhere({("orchestrator", "accounting"): {"mode": "standard"}}),
        )
    if isinstance(orchestrator, ParallelCluster) and environment.storage.accounting_database is None:
        yield Breach(
            ("teams",),
            "without a database ParallelCluster runs no slurmdbd: there is nowhere to keep accounts.",
            new_database(environment),
        )


@TEA.rule(
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
            (("AccountingStorageEnforce", "associations,limits,qos,safe"), enforced),
            (("PriorityWeightFairshare", 100000), True),
        )
        if wanted and setting[0].lower() not in have
    ]
    if missing:
        yield Breach(
            ("orchestrator", *(["slurm_settings"] if orchestrator.slurm_settings else [])),
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
def nobody(environment: Environment) -> Iterator[Breach]:
    for name, team in environment.teams.items():
        if not team.users:
            yield Breach(
                ("teams", name),
                "the account has no users: nobody can submit a job for it.",
                ask("fact", "users: [...]; or acknowledge it, and add them with sacctmgr"),
            )
