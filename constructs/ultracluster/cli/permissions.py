"""`ultracluster permissions`: the IAM policy that the command itself needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultracluster.cli.json_output import JsonOption, write_json
from ultracluster.cli.report import refuse

if TYPE_CHECKING:
    from ultracluster.cli.documents.software import Permissions, Policy

FILE = Path(__file__).parents[1] / "account" / "permissions.json"


def permissions(
    group: Annotated[
        list[str] | None,
        typer.Argument(help="`read`, `act` or `mirror`; all by default.", show_default=False),
    ] = None,
    as_policy: Annotated[
        bool, typer.Option("--policy", help="Print a policy as IAM takes it, and nothing else.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print which IAM actions the commands need, with --policy as a policy for IAM. Asks nothing of AWS."""
    if as_json and as_policy:
        refuse("--json and --policy exclude each other: the policy is in the JSON")
    document = json.loads(FILE.read_text(encoding="utf-8"))
    groups = list(dict.fromkeys(group or document["policies"]))
    unknown = [name for name in groups if name not in document["policies"]]
    if unknown:
        refuse(f"there is no group `{unknown[0]}`; it is one of {', '.join(document['policies'])}")
    if as_json:
        write_json("permissions", as_dict(document, groups))
    elif as_policy:
        typer.echo(json.dumps(policy(document, groups), indent=2))
    else:
        typer.echo(as_text(document, groups))


def as_dict(document: dict[str, Any], groups: list[str]) -> Permissions:
    """The groups and their policy as JSON types."""
    return {
        "groups": {name: document["groups"][name] for name in groups},
        "policy": policy(document, groups),
    }


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
