"""What the commands of `ultracluster nodes` share: judge, ask the person, ask AWS, wait, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ultracluster.cli.environments import confirm, load_environment, open_account, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.report import bars, text_table

if TYPE_CHECKING:
    from ultracluster.account.nodes.fleet import Fleet
    from ultracluster.account.nodes.node import Action, Outcome
    from ultracluster.config import Environment


def open_fleet(environment: Any, profile: str | None) -> Fleet:
    """The nodes of an environment file; otherwise what is wrong, and exit code 2."""
    return fleet_of(load_environment(environment), profile)


def fleet_of(config: Environment, profile: str | None) -> Fleet:
    """The nodes of an environment; otherwise one line, and exit code 2."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.nodes.fleet import Fleet
    from ultracluster.model import resolve

    account = open_account(config, profile)
    try:
        return Fleet(account, resolve(config))
    except AccountError as error:
        refuse(str(error))


def act(
    fleet: Fleet,
    action: Action,
    names: Sequence[str],
    yes: bool,
    dry_run: bool,
    wait: bool,
    timeout: int,
    as_json: bool,
    checks: Sequence[str] = (),
) -> None:
    """Judge, ask the person, ask AWS, wait, report: the same for every action."""
    found, missing = fleet.find(names)
    outcomes = [fleet.absent(name) for name in missing]
    judged = fleet.judge(action, found)
    outcomes += [one for one in judged if one.result != "would"]
    willing = {one.node for one in judged if one.result == "would"}
    nodes = [node for node in found if node.name in willing]
    if not nodes or dry_run:
        finish(outcomes + [one for one in judged if one.result == "would"], as_json)
    for line in fleet.before(action, nodes):
        typer.echo(line, err=True)
    for one in outcomes:
        typer.echo(f"left out: {one.node} {one.why}", err=True)
    listed = ", ".join(node.name for node in nodes[:5]) + (f" and {len(nodes) - 5} more" if nodes[5:] else "")
    confirm(f"{_VERBS[action]} {len(nodes)} node{'s' * (len(nodes) != 1)} ({listed})?", yes)
    done = fleet.act(action, nodes, checks)
    outcomes += done
    accepted = {one.node for one in done if one.result == "accepted"}
    late = False
    if wait and accepted and fleet.cluster:
        groups = {node.group for node in nodes if node.name in accepted}
        leaving = accepted if action != "reboot" else set[str]()
        settle = 180 if action == "reboot" else 0
        late = wait_for(fleet, groups, leaving, settle, timeout)
    for line in fleet.after(action, [node for node in nodes if node.name in accepted]) if accepted else []:
        typer.echo(line, err=True)
    finish(outcomes, as_json, late)


_VERBS = {
    "reboot": "Reboot",
    "replace": "Replace, and lose the disks of,",
    "delete": "Delete",
    "health-check": "Take out of service for about two hours and check",
}


def wait_for(fleet: Fleet, groups: set[str], leaving: set[str], settle: float, timeout: int) -> bool:
    """Whether it is not done in time, or a node has failed on the way."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.nodes.hyperpod_wait import Seen, wait

    assert fleet.cluster
    try:
        with bars(before="nodes") as bar:
            task = bar.add_task("", total=None)

            def follow(seen: Seen) -> None:
                text = f"{seen.ready}/{seen.wanted} {'; '.join(seen.busy[:2])}"
                bar.update(task, completed=seen.ready, total=seen.wanted, description=text)

            seen = wait(
                fleet.account,
                fleet.cluster.name,
                groups=groups,
                leaving=leaving,
                settle=settle,
                timeout=timeout * 60,
                report=follow,
            )
    except AccountError as error:
        typer.echo(f"Stopped waiting, the request is still running in AWS: {error}", err=True)
        return True
    except KeyboardInterrupt:
        typer.echo("Stopped waiting; the request is still running in AWS.", err=True)
        return True
    for line in seen.busy:
        typer.echo(f"still under way: {line}", err=True)
    for node in seen.failed:
        typer.echo(f"{node} has failed, and HyperPod does not retry by itself: replace it again", err=True)
    return bool(seen.busy or seen.failed)


def finish(outcomes: Sequence[Outcome], as_json: bool, late: bool = False) -> NoReturn:
    """Print what came of it, and end with the exit code that says so."""
    report(outcomes, as_json)
    raise typer.Exit(1 if any(one.bad for one in outcomes) else 3 if late else 0)


def report(outcomes: Sequence[Outcome], as_json: bool) -> None:
    """Print what came of it, one line or object for each node."""
    from ultracluster.account.nodes import node as model

    sys.stderr.flush()
    if as_json:
        write_json("outcomes", {"outcomes": [model.as_json(one) for one in outcomes]})
        return
    if outcomes:
        rows = [(one.node, one.group, one.result, one.why) for one in outcomes]
        typer.echo(text_table(("node", "group", "result", ""), rows))


def answer_lines(value: Any, indent: int = 0) -> list[str]:
    """A nested answer as indented `name: value` lines."""
    pad = "  " * indent
    lines: list[str] = []
    pairs: list[tuple[str, Any]] = (
        list(value.items()) if isinstance(value, dict) else [("-", one) for one in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    )
    for key, entry in pairs:
        if isinstance(entry, dict | list) and entry:
            lines += [f"{pad}{key}:", *answer_lines(entry, indent + 1)]
        elif entry not in ({}, []):
            lines.append(f"{pad}{key}: {iso(entry)}")
    return lines


def iso(value: Any) -> str:
    """A date as ISO 8601, all else as text."""
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
