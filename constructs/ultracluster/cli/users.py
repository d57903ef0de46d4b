"""`ultracluster users` and `apply users`: the accounts of people, and how a change reaches the nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_accepted,
    open_account,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.report import text_table
from ultracluster.cli.terminal import remark
from ultracluster.config.pcs import Pcs
from ultracluster.model import Cluster, resolve
from ultracluster.model.people import People, people
from ultracluster.model.state_documents import USERS, users_document

if TYPE_CHECKING:
    from ultracluster.account.people.differences import Difference
    from ultracluster.cli.documents.people import UserRow

STATUS = "ultracluster-state status users"
"""What a node says of it; everybody may ask."""


def users(
    environment: EnvironmentArgument,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="USER",
            help="Print a token with which this user asks Slurm's REST API (AWS PCS with `rest: true`).",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=1440, help="How long the token is good for.")
    ] = 30,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the accounts of an environment file: ids, groups, homes. Asks nothing of AWS without --token.

    --token reads the cluster's signing key in Secrets Manager. Anyone who can read that key can act as any
    Slurm user. The token cannot be revoked before it expires.
    """
    if token is None:
        _list(environment, as_json=as_json)
    else:
        _token(environment, token, minutes, profile, as_json=as_json)


def _list(environment: Path, *, as_json: bool) -> None:
    cluster = _cluster(environment)
    known = people(cluster)
    if as_json:
        rows = [_row(known, one.name, _user(one.name, cluster)) for one in known.accounts]
        _write(cluster, rows)
        return
    if not known.accounts:
        typer.echo("no users")
        return
    table = [
        (one.name, str(one.uid), str(one.gid), str(one.home), one.team or "-", ", ".join(one.groups) or "-")
        for one in known.accounts
    ]
    typer.echo(text_table(("user", "uid", "gid", "home", "team", "groups"), table, numbers=("uid", "gid")))


def apply(
    environment: Path, *, dry_run: bool, remove: bool, remove_all: bool, profile: str | None, as_json: bool
) -> None:
    """Give the accounts of the file to the nodes; nothing is written where ids would change hands."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.people.differences import (
        differences,
        groups_changed,
        impossible,
        is_most,
    )
    from ultracluster.account.state_store import store, stored

    cluster = _cluster(environment)
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
        rows = [_row(known, one.name, one.user, one) for one in found]
        _write(cluster, rows, place=before.uri, uploaded=not (dry_run or same), notes=notes)
        return
    for note in notes:
        typer.echo(note)


def _token(environment: Path, user: str, minutes: int, profile: str | None, *, as_json: bool) -> None:
    from ultracluster.account.aws import AccountError
    from ultracluster.account.rest_key import rest_key
    from ultracluster.slurm.rest_token import claims, signed

    cluster = _cluster(environment)
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


def _cluster(environment: Any) -> Cluster:
    config = load_accepted(environment)
    cluster = resolve(config)
    if not cluster.traits.slurm:
        refuse(
            f"{environment}: {config.orchestrator.kind} has no accounts on nodes; there people are members "
            "of teams (docs/kubernetes.md)"
        )
    if not cluster.runs_scripts:
        refuse(f"{environment}: orchestrator.lifecycle is `none`: nothing on the nodes makes accounts")
    return cluster


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


def _user(name: str, cluster: Cluster) -> Mapping[str, Any]:
    rows: list[dict[str, Any]] = users_document(cluster)["users"]
    return next(row for row in rows if row["name"] == name)


def _row(known: People, name: str, user: Mapping[str, Any], difference: Difference | None = None) -> UserRow:
    account = next((one for one in known.accounts if one.name == name), None)
    return {
        "name": name,
        "uid": int(user["uid"]),
        "gid": int(user["gid"]),
        "groups": list(user.get("groups", [])),
        "home": str(user.get("home", "")),
        "keys": len(user.get("keys", [])),
        "principals": list(account.principals) if account else [],
        "team": account.team if account else None,
        "change": difference.kind if difference else None,
        "details": list(difference.details) if difference else [],
    }


def _write(
    cluster: Cluster,
    rows: list[UserRow],
    *,
    place: str | None = None,
    uploaded: bool = False,
    notes: Sequence[str] = (),
) -> None:
    write_json(
        "users",
        {
            "environment": cluster.name,
            "users": rows,
            "document": place,
            "uploaded": uploaded,
            "notes": list(notes),
        },
    )
