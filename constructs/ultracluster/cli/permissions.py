"""`ultracluster permissions`: the IAM policy that the command itself needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.environments import (
    JsonOption,
    ProfileOption,
    environment_path,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import remark
from ultracluster.config.orchestrator import KUBERNETES
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.cli.documents.software import Permissions, Policy
    from ultracluster.cli.environment_rights import Rights
    from ultracluster.config import Environment

FILE = Path(__file__).parents[1] / "account" / "permissions.json"
PEOPLE = "people"
BY_NAME = ("buy", "bill")
"""Groups that spend money or read the account's bill: only who names the group gets it."""
PEOPLE_MAY = (
    "`connect`, for those who only use a cluster: a session as the ordinary user of its nodes, never as an "
    "administrator, and no Run Command."
)


def permissions(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ENVIRONMENT] [GROUP]...",
            help="An environment, to which the rights are then limited by resource and tag; and which of "
            "`read`, `act`, `bill`, `buy`, `deploy`, `mirror`, with an environment, `people`; default: not "
            "`bill` and `buy`.",
            show_default=False,
        ),
    ] = None,
    as_policy: Annotated[
        bool, typer.Option("--policy", help="Print a policy as IAM takes it, and nothing else.")
    ] = False,
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Ask the account for what is known only there: the cluster's ARN."),
    ] = False,
    user: Annotated[
        str,
        typer.Option(
            "--user",
            metavar="NAME",
            help="Of `people`: sessions as this user of the environment, for this user's principals.",
            show_default=False,
        ),
    ] = "",
    ssh: Annotated[
        bool,
        typer.Option(
            "--ssh",
            help="Of `people`: sessions may carry SSH, too (`connect --ssh-config`). No log has its content.",
        ),
    ] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print which IAM actions the commands need, with --policy as a policy for IAM.

    Asks nothing of AWS without --deployed.
    """
    if as_json and as_policy:
        refuse("--json and --policy exclude each other: the policy is in the JSON")
    document = json.loads(FILE.read_text(encoding="utf-8"))
    names = {*document["policies"], PEOPLE}
    groups = [word for word in dict.fromkeys(words or []) if word in names]
    others = [word for word in words or [] if word not in names]
    if len(others) > 1 or (others and not groups and not environment_path(Path(others[0])).is_file()):
        name = one_line(others[-1])
        refuse(f"there is no group and no environment `{name}`; groups are {', '.join(sorted(names))}")
    environment = load_environment(Path(others[0])) if others else None
    if environment is None and (PEOPLE in groups or deployed):
        refuse(f"{'--deployed' if deployed else PEOPLE} is for one environment: name it first")
    if user:
        _check_user(environment, groups, user)
    if ssh:
        _check_ssh(environment, groups, user)
    usual = [name for name in document["policies"] if name not in BY_NAME]
    groups = groups or [*usual, *([PEOPLE] if environment else [])]
    rights: Rights | None = None
    if environment:
        from ultracluster.cli.environment_rights import limited_rights  # 0.3 s: the SDK

        rights = limited_rights(document, groups, environment, deployed, profile, user, ssh)
    if as_json:
        write_json("permissions", as_dict(document, groups, rights))
    elif as_policy:
        typer.echo(json.dumps(rights.policy if rights else policy(document, groups), indent=2))
    else:
        typer.echo(limited_text(rights) if rights else as_text(document, groups))
    for note in rights.notes if rights else ():
        remark(f"note: {note}")


def _check_user(environment: Environment | None, groups: list[str], user: str) -> None:
    if environment is None or groups != [PEOPLE]:
        refuse(f"--user is for `permissions ENVIRONMENT {PEOPLE}`")
    if user not in environment.users:
        refuse(f"there is no user `{user}`: {', '.join(environment.users) or 'the environment has none'}")
    if not environment.users[user].principals:
        refuse(f"`{user}` has no principals: nobody would have the policy")


def _check_ssh(environment: Environment | None, groups: list[str], user: str) -> None:
    if environment is None or PEOPLE not in groups:
        refuse(f"--ssh is for `permissions ENVIRONMENT {PEOPLE}`")
    if environment.orchestrator.kind in KUBERNETES:
        refuse("--ssh is for Slurm: users have no accounts on nodes of Kubernetes")
    if not any(one.keys for name, one in environment.users.items() if user in ("", name)):
        who = f"`{user}` has" if user else "users have"
        refuse(f"--ssh: {who} no keys to log in with: write users.{user or 'NAME'}.keys")


def as_dict(document: dict[str, Any], groups: list[str], rights: Rights | None) -> Permissions:
    """The groups and their policy as JSON types."""
    what = document["groups"] | {PEOPLE: PEOPLE_MAY}
    return {
        "groups": {name: what[name] for name in groups},
        "policy": rights.policy if rights else policy(document, groups),
        "environment": rights.environment if rights else None,
        "notes": list(rights.notes) if rights else [],
    }


def limited_text(rights: Rights) -> str:
    """The rights on one environment for a person."""
    lines = [f"rights on {rights.environment}", ""]
    for statement in rights.policy["Statement"]:
        lines.append(f"  on {', '.join(statement['Resource'])}")
        for test, keys in statement.get("Condition", {}).items():
            lines += [f"    if {test} {key} = {value}" for key, value in keys.items()]
        lines += [*(f"    {one}" for one in statement["Action"]), ""]
    return "\n".join(lines).rstrip()


def policy(document: dict[str, Any], groups: list[str]) -> Policy:
    """One policy for some groups."""
    statements = [row for name in groups for row in document["policies"][name]["Statement"]]
    return {"Version": "2012-10-17", "Statement": statements}


def as_text(document: dict[str, Any], groups: list[str]) -> str:
    """The actions of some groups for a person."""
    lines: list[str] = []
    for name in groups:
        lines += [name, f"  {document['groups'][name]}"]
        for statement in document["policies"][name]["Statement"]:
            lines += [
                f"  on {', '.join(statement['Resource'])}",
                *(f"    {one}" for one in statement["Action"]),
            ]
        lines.append("")
    return "\n".join(lines).rstrip()
