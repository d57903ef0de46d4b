"""`ultracluster doctor`: what is wrong with a deployed environment, or with what a log says, the most likely
cause first."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.account.doctor import Examination, Fact, examine
from ultracluster.account.doctor.log_files import LogError, read_logs
from ultracluster.account.nodes.slurm_reason import explain
from ultracluster.catalog.node_faults import generations_of
from ultracluster.cli.accounts import open_account
from ultracluster.cli.doctor_bundle import Wish, check_bundle, write_bundle
from ultracluster.cli.documents.cluster import Examined
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.json_rows import Cause, Harmless
from ultracluster.cli.progress import working
from ultracluster.config import Environment
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve

SHOWN = 8
"""Lines of each log that text output shows; JSON has them all."""


def doctor(
    environment: EnvironmentArgument,
    log: Annotated[
        list[str] | None,
        typer.Option(
            help="Read this file, folder or (`-`) standard input instead of the account; may be repeated.",
            show_default=False,
            metavar="FILE|-",
        ),
    ] = None,
    reason: Annotated[
        str,
        typer.Option(
            help="Explain the reason of a node, as `sinfo -R` or `kubectl describe node` prints it.",
            show_default=False,
        ),
    ] = "",
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Write what AWS Support asks for to this .tar.gz, without secrets and names of people.",
            show_default=False,
            metavar="FILE.tar.gz",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="--bundle: do not ask.")] = False,
    hours: Annotated[int, typer.Option(min=1, max=2160, help="How far back events and logs are read.")] = 72,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask stacks, cluster, nodes, events, logs and metrics what is wrong, side by side. Changes nothing.

    A source that has not answered after 30 seconds is named, and the others still answer. With --log no
    account is asked: `journalctl -k | ultracluster doctor prod --log -`. --bundle also asks nodes and
    their scheduler, shows the list of its files, and writes them once that is confirmed.

    Exit code 0 = nothing found, 1 = something is wrong, not deployed or could not be read, or the --reason is
    a person's or unknown, 2 = the account cannot be asked, a log is not there, or --bundle was not confirmed.
    With --bundle: 0 = written, 3 = written, and a source did not answer.
    """
    config = load_environment(environment)
    if bundle:
        check_bundle(bundle, reason)
        given = _read(log, config) if log else None
        write_bundle(Wish(bundle, config, given, hours, yes, as_json), profile)
        return
    if reason:
        _explain(reason, config)
        return
    if log:
        found = _read(log, config)
    else:
        account = open_account(config, profile)
        with working("asking") as say:
            found = examine(
                account, resolve(config), hours=hours, progress=lambda step: say(f"asking {step}")
            )
    if as_json:
        write_json("doctor", as_dict(found))
    else:
        typer.echo(as_text(found, config.name))
    raise typer.Exit(0 if found.healthy and found.deployed is not False else 1)


def _explain(reason: str, config: Environment) -> None:
    known = explain(reason, config.health)
    if known is None:
        typer.echo(
            "not one that we know: `scontrol show node` (on Kubernetes `kubectl describe node`) names who "
            "set it, and when; ask them, or read slurmctld's log"
        )
        raise typer.Exit(1)
    typer.echo(f"{known.meaning}\nwritten by: {known.by}\nnext: {known.next}")
    if known.source:
        typer.echo(f"source: {known.source}")


def _read(log: list[str], config: Environment) -> Examination:
    """The logs that were given; exit code 2 for one that cannot be read."""
    types = [group.type for group in resolve(config).in_service.values()]
    names = [one.accelerator.name for one in types if one and one.accelerator]
    try:
        return read_logs(log, sys.stdin.buffer, generations_of(names))
    except LogError as error:
        refuse(f"--log: {error}. Give a file, a folder, or `-` for standard input.")


def as_dict(found: Examination) -> Examined:
    """The document of an examination."""
    labels = found.labels
    return {
        "healthy": found.healthy,
        "deployed": found.deployed,
        "causes": [
            Cause(one.failure, [labels[number] for number in one.evidence]) for one in found.diagnoses
        ],
        "benign": [Harmless(fault, times) for fault, times in found.benign],
        "facts": found.facts,
        "logs": found.logs,
        "sources": found.sources,
    }


def as_text(found: Examination, name: str) -> str:
    """The examination for a person: causes, what was seen, logs, what was asked."""
    lines = _causes(found, name)
    if found.benign:
        lines += ["", "known, and nothing to do on the node:"]
        lines += [f"  {fault.meaning} ({fault.id}, {times} times)" for fault, times in found.benign]
    seen = [fact for fact in found.facts if fact.level != "info"]
    if seen and not found.diagnoses:
        lines.append("no known failure fits; this is what was seen:")
    lines += ["", "seen:", *(f"  {_line(fact)}" for fact in seen)] if seen else []
    for stream, tail in found.logs.items():
        lines += ["", f"{stream} ends with:", *(f"  | {line}" for line in tail[-SHOWN:])]
    if found.quotes and not found.diagnoses:
        lines.append("no known failure fits")
    lines += ["", "read:" if found.quotes else "asked:"]
    lines += [f"  {one.name}: {one.state}" + (f", {one.why}" if one.why else "") for one in found.sources]
    if found.deployed is False:
        lines.insert(0, f"{name}: not deployed, none of its stacks is there")
    elif found.healthy and not found.quotes:
        lines.insert(0, f"{name}: nothing wrong found")
    return "\n".join(map(one_line, lines)).strip("\n")


def _causes(found: Examination, name: str) -> list[str]:
    """Each cause; several of one text stand together, and what decides between them."""
    lines: list[str] = []
    labels, texts = found.labels, found.texts
    for number, one in enumerate(found.diagnoses):
        failure = one.failure
        word = "or" if number else "likely cause"
        if failure.text_of:
            word = "the same text" if failure.certain else "the same text, possibly"
        lines += [
            f"{word}: {failure.cause}",
            f"  compare: {failure.differs}",
            f"  do: {failure.do}",
            f"  run: {of_environment(failure.run, name)}",
            f"  seen in: {_some([labels[place] for place in one.evidence])}",
        ]
        if found.quotes:
            lines.append(f"  line: {_cut(texts[one.evidence[0]], 240)}")
        lines += [f"  more: docs/{failure.page}", f"  known from: {_some(list(failure.sources))}"]
    return lines


def of_environment(command: str, name: str) -> str:
    """A command of the table with the environment's name, which the table calls `prod`."""
    return re.sub(r"\b(?:prod|ENVIRONMENT)\b", lambda _: name, command)


def _cut(text: str, most: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 3] + "..."


def _line(fact: Fact) -> str:
    when = f"{fact.when:%Y-%m-%d %H:%M} " if fact.when else ""
    mark = "!" if fact.level == "error" else "-"
    return f"{mark} {when}{fact.source}: {fact.where}: {_cut(fact.text, 400)}"


def _some(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:4]) + (f" and {len(unique) - 4} more" if unique[4:] else "")
