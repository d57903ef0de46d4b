"""Rules on: teams as accounts in Slurm."""

from __future__ import annotations

from collections.abc import Mapping

from ultracluster.catalog.node_accounts import taken_names
from ultracluster.catalog.slurm import words
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.pcs import Pcs
from ultracluster.config.remedy import Remedy, anywhere, ask, drop, relative
from ultracluster.config.teams import Team
from ultracluster.model import Cluster
from ultracluster.model.people import team_users
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.remedies import new_database
from ultracluster.rules.sets import SLURM, TEA
from ultracluster.rules.teams.fields import DATE, SACCTMGR


@TEA.error(
    11, "Slurm documentation, Accounting and Resource Limits (accounts live in slurmdbd)", DATE, kinds=SLURM
)
def teams_need_accounting(cluster: Cluster, settings: ParallelCluster | Pcs) -> Breaches:
    """Teams in Slurm have Slurm accounting."""
    if not cluster.environment.teams:
        return
    match settings:
        case Pcs():
            if settings.accounting.mode == "none":
                yield at("teams").breach(
                    "teams require Slurm accounts, and orchestrator.accounting.mode is `none`.",
                    anywhere({("orchestrator", "accounting"): {"mode": "standard"}}),
                )
        case ParallelCluster():
            if cluster.environment.storage.accounting_database is None:
                yield at("teams").breach(
                    "teams require Slurm accounts, and without a database ParallelCluster runs no slurmdbd.",
                    new_database(cluster),
                )


@TEA.warning(
    12,
    "slurm.conf manual (AccountingStorageEnforce, PriorityType, PriorityWeightFairshare)",
    DATE,
    kinds=SLURM,
)
def accounting_enforced(settings: ParallelCluster | Pcs | HyperPodSlurm, cluster: Cluster) -> Breaches:
    # what they need is set by us; here it is replaced
    """Slurm enforces the teams' limits and shares."""
    teams = cluster.environment.teams
    if not teams:
        return
    limited = any(team.limit is not None or team.most_per_user for team in teams.values())
    for key, value in settings.slurm_settings.items():
        given = {word.lower() for word in words(str(value))}
        match key.lower():
            case "accountingstorageenforce" if limited and not given & {"limits", "safe", "all"}:
                why = "without `limits` slurmctld ignores the limits of accounts and users."
            case "prioritytype" if "priority/multifactor" not in given:
                why = f"{value} knows no shares: the teams' jobs start in the order of their arrival."
            case "priorityweightfairshare" if given == {"0"}:
                why = "a weight of 0 ignores the teams' shares."
            case _:
                continue
        yield at("slurm_settings", key).breach(why, drop().noting("what teams need is set already"))


@TEA.warning(15, f"{SACCTMGR} (associations are of a user in an account)", DATE, kinds=SLURM)
def account_has_users(cluster: Cluster) -> Breaches:
    """A Slurm account has users."""
    for name in cluster.environment.teams:
        if not team_users(cluster.environment, name):
            yield at("teams", name).breach(
                "the account has no users: no one can submit a job for it.",
                ask("fact", "users: [...]; or team: in an entry of users:, beside the uid"),
            )


@TEA.warning(
    33,
    "this configuration: without `users` and `directory` nodes have one user, `ultracluster`",
    "2026-11-27",
    kinds=SLURM,
)
def teams_have_users(cluster: Cluster) -> Breaches:
    """Teams on Slurm should have users of their own."""
    environment = cluster.environment
    if len(environment.teams) > 1 and not environment.users and environment.directory is None:
        yield at("teams").breach(
            "without `users` and `directory` all people share one Unix user: its jobs, files, SSH keys and "
            "credentials belong to every team.",
            _users_of_their_own(environment.teams),
        )


def _users_of_their_own(teams: Mapping[str, Team]) -> Remedy:
    """An entry of `users` for each user that a team names."""
    teams_of = {user: name for name, team in teams.items() for user in team.users}
    if not teams_of:
        return ask("fact", "users: {alice: {uid: 2001, team: ...}, ...}, or directory")
    users = {user: {"uid": uid, "team": name} for uid, (user, name) in enumerate(teams_of.items(), 2001)}
    return relative({("users",): users}, up=1)


@TEA.error(
    30,
    "lifecycle_scripts/files/slurm_accounts.py: users of the system become no members",
    "2026-11-22",
    kinds=SLURM,
)
def team_users_are_people(cluster: Cluster) -> Breaches:
    """A user of a team is a person."""
    for name, team in cluster.environment.teams.items():
        for number, user in enumerate(team.users):
            if user in taken_names() and user not in _SHARED:
                yield at("teams", name, "users", number).breach(
                    f"the name `{user}` is {taken_names()[user]}: nodes make it no member of an account.",
                    drop(),
                )


_SHARED = frozenset({"ubuntu", "ec2-user", "rocky", "centos", "ultracluster", "ssm-user"})
"""Accounts that people share where they have none of their own."""


@TEA.warning(31, "lifecycle_scripts/steps/slurm_admin.sh", "2026-11-22", kinds=SLURM)
def teams_applied(cluster: Cluster) -> Breaches:
    """Something applies the teams to Slurm's accounting."""
    if cluster.environment.teams and not cluster.runs_scripts:
        yield at("teams").breach(
            "orchestrator.lifecycle is `none`: no node of the cluster makes their accounts.",
            ask(
                "fact",
                "acknowledge this, and run the script of `ultracluster export slurm-accounts` by hand",
            ),
        )
