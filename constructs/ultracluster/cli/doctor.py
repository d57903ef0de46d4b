"""`ultracluster doctor`: what is wrong with a deployed environment, the most likely cause first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    open_account,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.account.doctor import Examination, Fact
    from ultracluster.cli.documents.cluster import Examined

SHOWN = 8
"""Lines of each log that text output shows; JSON has them all."""


def doctor(
    environment: EnvironmentArgument,
    hours: Annotated[int, typer.Option(min=1, max=2160, help="How far back events and logs are read.")] = 72,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask stacks, cluster, nodes, events, logs and metrics what is wrong, side by side. Changes nothing.

    A source that has not answered after 30 seconds is named, and the others still answer.

    Exit code 0 = nothing found, 1 = something is wrong, not deployed or could not be read, 2 = the account
    cannot be asked.
    """
    from ultracluster.account.doctor import examine
    from ultracluster.model import resolve

    config = load_environment(environment)
    account = open_account(config, profile)
    with working("asking") as say:
        found = examine(account, resolve(config), hours=hours, progress=lambda step: say(f"asking {step}"))
    if as_json:
        write_json("doctor", as_dict(found))
    else:
        typer.echo(as_text(found, config.name))
    raise typer.Exit(0 if found.healthy and found.deployed is not False else 1)


def as_dict(found: Examination) -> Examined:
    """The examination as JSON types."""
    labels = found.labels
    return {
        "healthy": found.healthy,
        "deployed": found.deployed,
        "causes": [
            {
                "id": one.failure.id,
                "cause": one.failure.cause,
                "do": one.failure.do,
                "page": one.failure.page,
                "sources": list(one.failure.sources),
                "evidence": [labels[number] for number in one.evidence],
            }
            for one in found.diagnoses
        ],
        "facts": [
            {
                "source": fact.source,
                "where": fact.where,
                "text": fact.text,
                "level": fact.level,
                "when": fact.when.isoformat() if fact.when else None,
            }
            for fact in found.facts
        ],
        "logs": found.logs,
        "sources": [{"name": one.name, "state": one.state, "why": one.why} for one in found.sources],
    }


def as_text(found: Examination, name: str) -> str:
    """The examination for a person: causes, what was seen, logs, what was asked."""
    lines: list[str] = []
    labels = found.labels
    for number, one in enumerate(found.diagnoses):
        lines += [
            f"{'likely cause' if number == 0 else 'or'}: {one.failure.cause}",
            f"  do: {one.failure.do}",
            f"  seen in: {_some([labels[place] for place in one.evidence])}",
            f"  more: docs/{one.failure.page}",
            f"  known from: {_some(list(one.failure.sources))}",
        ]
    seen = [fact for fact in found.facts if fact.level != "info"]
    if seen and not found.diagnoses:
        lines.append("no known failure fits; this is what was seen:")
    lines += ["", "seen:", *(f"  {_line(fact)}" for fact in seen)] if seen else []
    for stream, tail in found.logs.items():
        lines += ["", f"{stream} ends with:", *(f"  | {line}" for line in tail[-SHOWN:])]
    lines += ["", "asked:"]
    lines += [f"  {one.name}: {one.state}" + (f", {one.why}" if one.why else "") for one in found.sources]
    if found.deployed is False:
        lines.insert(0, f"{name}: not deployed, none of its stacks is there")
    elif found.healthy:
        lines.insert(0, f"{name}: nothing wrong found")
    return "\n".join(map(one_line, lines)).strip("\n")


def _line(fact: Fact) -> str:
    when = f"{fact.when:%Y-%m-%d %H:%M} " if fact.when else ""
    mark = "!" if fact.level == "error" else "-"
    text = fact.text if len(fact.text) <= 400 else fact.text[:397] + "..."
    return f"{mark} {when}{fact.source}: {fact.where}: {' '.join(text.split())}"


def _some(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:4]) + (f" and {len(unique) - 4} more" if unique[4:] else "")
