"""`ultracluster apply users` and `users --token`: what asks the account about people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import remark
from ultracluster.config.pcs import Pcs
from ultracluster.model.people import People, people
from ultracluster.model.state_documents import USERS, users_document

if TYPE_CHECKING:
    from ultracluster.account.people.differences import Difference

from ultracluster.account.aws import AccountError
from ultracluster.account.people.differences import differences, groups_changed, impossible, is_most
from ultracluster.account.rest_key import rest_key
from ultracluster.account.state_store import store, stored
from ultracluster.cli.user_rows import cluster_of, user_row, write_users
from ultracluster.slurm.rest_token import claims, signed

STATUS = "ultracluster-state status users"
"""What a node says of it; everybody may ask."""


def apply(
    environment: Path, *, dry_run: bool, remove: bool, remove_all: bool, profile: str | None, as_json: bool
) -> None:
    """Give the accounts of the file to the nodes; nothing is written where ids would change hands."""
    cluster = cluster_of(environment)
    account = open_account(cluster.environment, profile)
    try:
        before = stored(account, cluster, USERS)
    except AccountError as error:
        refuse(str(error))
    new = users_document(cluster, removals="any" if remove_all else "few")
    found = differences(before.content, new)
    known, notes = people(cluster), groups_changed(before.content, new)
    if not as_json:
        _tell(found, notes)
    if faults := impossible(before.content, new):
        refuse("; ".join(faults))
    gone = [one.name for one in found if one.kind == "removed"]
    if gone and not (remove or remove_all or dry_run):
        refuse(f"{', '.join(gone)} would lose their accounts: say so with --remove (their files stay)")
    if gone and is_most(found) and not (remove_all or dry_run):
        refuse(f"{', '.join(gone)} are more than half of the users: say so with --remove-all")
    same = before.content == new
    if not (dry_run or same):
        try:
            store(account, before, new)
        except AccountError as error:
            refuse(str(error))
    notes += _notes(known, found, dry_run=dry_run, same=same, uri=before.uri)
    if as_json:
        rows = [user_row(known, one.name, one.user, one) for one in found]
        write_users(cluster, rows, place=before.uri, uploaded=not (dry_run or same), notes=notes)
        return
    for note in notes:
        typer.echo(note)


def print_token(environment: Path, user: str, minutes: int, profile: str | None, *, as_json: bool) -> None:
    cluster = cluster_of(environment)
    if not (isinstance(cluster.settings, Pcs) and cluster.settings.rest):
        refuse(f"{environment}: only AWS PCS with `orchestrator.rest: true` has a REST API that takes tokens")
    known = people(cluster)
    person = next((one for one in known.accounts if one.name == user), None)
    if person is None:
        names = ", ".join(one.name for one in known.accounts) or "none"
        refuse(f"{environment} has no user {user}: {names}")
    try:
        found = rest_key(open_account(cluster.environment, profile), cluster)
    except AccountError as error:
        refuse(str(error))
    said = claims(person, known, now=int(time.time()), seconds=minutes * 60)
    text = signed(said, found.key)
    if as_json:
        write_json(
            "user-token",
            {"environment": cluster.name, "user": user, "token": text, "url": found.url, "ends": said["exp"]},
        )
        return
    typer.echo(text)
    remark(f"Authorization: Bearer <token>, to {found.url} from within the VPC")


def _tell(found: Sequence[Difference], notes: Sequence[str]) -> None:
    for one in found:
        if one.kind == "same":
            continue
        uid = one.user.get("uid")
        what = {
            "new": f"new, {uid}",
            "removed": f"removed; files of {uid} stay, as {one.user.get('home')}",
        }.get(one.kind, "; ".join(one.details))
        typer.echo(f"{one.name}: {what}")
    for note in notes:
        typer.echo(note)


def _notes(known: People, found: Sequence[Difference], *, dry_run: bool, same: bool, uri: str) -> list[str]:
    if same:
        return [f"nothing to do: {uri} says the same"]
    if dry_run:
        return ["dry run: nothing written"]
    notes = [
        f"wrote {uri}; nodes have it within two minutes",
        f"on a login node, `srun --nodes=N --ntasks-per-node=1 {STATUS}` says which do, and who was refused",
    ]
    new = {one.name for one in found if one.kind == "new"}
    if waiting := [one.name for one in known.accounts if one.name in new and one.principals]:
        notes.append(f"session documents of {', '.join(waiting)} come with the next `ultracluster deploy`")
    return notes
