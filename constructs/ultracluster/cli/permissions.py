"""`ultracluster permissions`: the IAM policy that the command itself needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ultracluster.cli.environments import JsonOption, refuse

FILE = Path(__file__).parents[1] / "account" / "permissions.json"


def permissions(
    group: Annotated[
        list[str] | None,
        typer.Argument(help="`read`, `act` or `mirror`; all by default.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print which IAM actions the commands need; with --json a policy ready for IAM. Asks nothing of AWS."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    groups = list(dict.fromkeys(group or document["policies"]))
    unknown = [name for name in groups if name not in document["policies"]]
    if unknown:
        refuse(f"there is no group `{unknown[0]}`; it is one of {', '.join(document['policies'])}")
    typer.echo(json.dumps(policy(document, groups), indent=2) if as_json else as_text(document, groups))


def policy(document: dict[str, Any], groups: list[str]) -> dict[str, Any]:
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
