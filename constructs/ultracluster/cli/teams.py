"""`ultracluster apply teams`: teams in Slurm's accounting, without a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.account.aws import AccountError
from ultracluster.account.state_store import store, stored
from ultracluster.account.team_differences import team_differences
from ultracluster.cli.accepted import load_accepted
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import refuse
from ultracluster.cli.json_output import write_json
from ultracluster.model import resolve
from ultracluster.model.state_documents import TEAMS, teams_document

if TYPE_CHECKING:
    from ultracluster.account.team_differences import TeamDifference
    from ultracluster.model import Cluster

PROGRAM = "/opt/ultracluster/state.d/40_teams"
DOCUMENT = "/var/lib/ultracluster/state/teams.json"


def apply(environment: Path, *, dry_run: bool, remove: bool, profile: str | None, as_json: bool) -> None:
    """Give the teams of the file to Slurm's accounting; shows how the file differs from what nodes have."""
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
