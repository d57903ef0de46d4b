"""`ultracluster permissions`: the IAM policy that the command itself needs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.environments import (
    JsonOption,
    ProfileOption,
    environment_path,
    load_environment,
    open_account,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.account.environment_policy import Deployed
    from ultracluster.cli.documents.software import Permissions, Policy
    from ultracluster.config import Environment

FILE = Path(__file__).parents[1] / "account" / "permissions.json"
PEOPLE = "people"
BY_NAME = ("buy", "bill")
"""Groups that spend money or read the account's bill: only who names the group gets it."""
PEOPLE_MAY = (
    "`connect`, for those who only use a cluster: a session as the ordinary user of its nodes, never as an "
    "administrator, and no Run Command."
)
LONGEST = 6144
"""Characters of a managed policy, blanks not counted (IAM User Guide, "IAM and AWS STS quotas")."""


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
    usual = [name for name in document["policies"] if name not in BY_NAME]
    groups = groups or [*usual, *([PEOPLE] if environment else [])]
    rights = _limited(document, groups, environment, deployed, profile, user) if environment else None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights on one environment."""

    environment: str
    policy: Policy
    notes: tuple[str, ...]


def _limited(
    document: dict[str, Any],
    groups: list[str],
    environment: Environment,
    ask: bool,
    profile: str | None,
    user: str,
) -> Rights:
    from ultracluster.account.environment_policy import Deployed, environment_policy
    from ultracluster.model import resolve

    cluster = resolve(environment)
    known = _ask(environment, profile) if ask else Deployed()
    actions = {name: actions_of(document, name) for name in groups}
    statements = environment_policy(cluster, actions, known, user=user)
    made: Policy = {"Version": "2012-10-17", "Statement": statements}
    notes: list[str] = []
    if not (environment.account or known.account):
        notes.append(
            "the file names no account, so every account passes: write `account:`, or use --deployed"
        )
    if cluster.traits.hyperpod and not known.cluster_arn:
        notes.append(
            "the id of a HyperPod cluster is known once it is there: until you use --deployed, sessions may "
            "be opened on the nodes of every HyperPod cluster of the Region"
        )
    if not made["Statement"]:
        notes.append(f"nothing of {', '.join(groups)} concerns this environment: IAM takes no empty policy")
    size = len("".join(json.dumps(made, separators=(",", ":")).split()))
    if size > LONGEST:
        notes.append(
            f"{size} characters: a managed policy takes {LONGEST}. Print one per group, e.g. `permissions "
            f"{environment.name} read --policy`"
        )
    return Rights(environment=environment.name, policy=made, notes=tuple(notes))


def _ask(environment: Environment, profile: str | None) -> Deployed:
    from ultracluster.account.aws import AccountError
    from ultracluster.account.environment_policy import Deployed
    from ultracluster.account.stack_outputs import stack_outputs

    account = open_account(environment, profile)
    try:
        outputs = stack_outputs(account, [environment.stack_name("cluster")])
    except AccountError as error:
        refuse(str(error))
    arn = next((one["ClusterArn"] for one in outputs.values() if "ClusterArn" in one), "")
    return Deployed(account=account.identity().account, cluster_arn=arn)


def actions_of(document: dict[str, Any], group: str) -> list[str]:
    """The IAM actions of a group, also those that only an environment can limit; none of `people`,
    whose statements the table of environments has."""
    statements = document["policies"].get(group, {"Statement": []})["Statement"]
    allowed = {action for statement in statements for action in statement["Action"]}
    return sorted(allowed | set(document["named"].get(group, [])))


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
