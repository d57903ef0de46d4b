"""`ultracluster apply teams`, and parts of `ultracluster export`: what teams are outside of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.cli.environments import load_accepted, open_account, refuse
from ultracluster.cli.json_output import write_json

if TYPE_CHECKING:
    from ultracluster.account.team_differences import TeamDifference
    from ultracluster.model import Cluster

PROGRAM = "/opt/ultracluster/state.d/40_teams"
DOCUMENT = "/var/lib/ultracluster/state/teams.json"


def apply(environment: Path, *, dry_run: bool, remove: bool, profile: str | None, as_json: bool) -> None:
    """Give the teams of the file to Slurm's accounting; shows how the file differs from what nodes have."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.state_store import store, stored
    from ultracluster.account.team_differences import team_differences
    from ultracluster.model.state_documents import TEAMS, teams_document

    cluster = _with_accounts(environment)
    account = open_account(cluster.environment, profile)
    new = teams_document(cluster, remove=remove)
    try:
        before = stored(account, cluster, TEAMS)
    except AccountError as error:
        refuse(str(error))
    found = team_differences(before.content, new)
    same = before.content == new
    if not (dry_run or same):
        try:
            store(account, before, new)
        except AccountError as error:
            refuse(str(error))
    notes = _notes(cluster, found, before.uri, dry_run=dry_run, same=same, remove=remove)
    if as_json:
        write_json(
            "teams",
            {
                "environment": cluster.name,
                "changes": found,
                "document": before.uri,
                "uploaded": not (dry_run or same),
                "notes": notes,
            },
        )
        return
    for one in found:
        if one.kind != "same":
            typer.echo(f"{one.what} {one.name}: {'; '.join((one.kind, *one.details))}")
    for note in notes:
        typer.echo(note)


def _with_accounts(environment: Path) -> Cluster:
    from ultracluster.model import resolve

    cluster = resolve(load_accepted(environment))
    if not cluster.traits.slurm:
        refuse(f"{environment}: {cluster.traits.kind} has no Slurm: a deploy creates the teams")
    if not cluster.runs_scripts:
        refuse(
            f"{environment}: orchestrator.lifecycle is `none`, so nothing of ours runs on the nodes: "
            "`ultracluster export slurm-accounts` prints a script to run on the controller"
        )
    if not cluster.keeps_accounts:
        refuse(f"{environment}: orchestrator.accounting.mode is `none`: there is nowhere to keep accounts")
    return cluster


def _notes(
    cluster: Cluster, found: Sequence[TeamDifference], uri: str, *, dry_run: bool, same: bool, remove: bool
) -> list[str]:
    where = "a login node" if "controller" not in cluster.traits.roles else "the controller"
    gone = [one.name for one in found if one.what == "account" and one.kind == "removed"]
    notes: list[str] = []
    if gone:
        what = "are deleted" if remove else "are closed, not deleted (--remove does)"
        notes.append(f"accounts of {', '.join(gone)} {what}; what was used stays in accounting")
    if same:
        notes.append(f"nothing to do: {uri} says the same")
    elif dry_run:
        notes.append("dry run: nothing written")
    else:
        notes.append(f"wrote {uri}; {where} has it within two minutes")
    notes.append(
        f"on {where}, `ultracluster-state status teams` says what was done, and "
        f"`sudo {PROGRAM} --dry-run {DOCUMENT}` how accounting differs from it"
    )
    return notes


def slurm_accounts(environment: Path) -> None:
    """Print a script that makes the teams' accounts in Slurm with sacctmgr.

    Exit code 2 if there can be none.
    """
    from ultracluster.model import resolve
    from ultracluster.model.team_shares import scheduler_of
    from ultracluster.slurm.accounts import slurm_accounts as script

    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "slurm":
        refuse(f"{environment}: {config.orchestrator.kind} has no Slurm: a deploy creates the teams")
    try:
        text = script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo(text, nl=False)


def task_governance(environment: Path) -> None:
    """Print a script that makes what no deploy can of HyperPod's task governance, with the AWS CLI.

    A deploy makes policy and quotas where CloudFormation has their types. Exit code 2 if nothing is left.
    """
    from ultracluster.kubernetes.task_governance import governance_script
    from ultracluster.model import resolve
    from ultracluster.model.team_shares import scheduler_of

    config = load_accepted(environment)
    if scheduler_of(resolve(config)) != "task-governance":
        refuse(f"{environment}: task governance requires HyperPod on EKS with `task_governance: true`")
    if not config.teams:
        refuse(f"{environment}: the environment has no `teams`: there are no quotas to make")
    try:
        text = governance_script(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    if not text:
        refuse(f"{environment}: a deploy makes policy and quotas in {config.region}: no script is needed")
    typer.echo(text, nl=False)


def team_namespaces(environment: Path) -> None:
    """Print what keeps the teams' Kubernetes namespaces apart, for `kubectl apply -f -`.

    A deploy makes it itself, but not in namespaces of task governance, which HyperPod makes later. Exit code
    2 if there are none.
    """
    from ultracluster.kubernetes.team_admission import team_objects
    from ultracluster.kubernetes.yaml_text import yaml_text
    from ultracluster.model import resolve

    config = load_accepted(environment)
    try:
        objects = team_objects(resolve(config))
    except ValueError as error:
        refuse(f"{environment}: {error}")
    typer.echo("---\n".join(yaml_text(one) for one in objects), nl=False)
