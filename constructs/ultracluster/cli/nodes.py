"""`ultracluster nodes`: what the nodes of a deployed environment are, and what is done with a bad one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    confirm,
    load_environment,
    open_account,
    refuse,
)
from ultracluster.cli.report import bars, text_table

if TYPE_CHECKING:
    from ultracluster.account.nodes.fleet import Fleet
    from ultracluster.account.nodes.states import Action, Outcome
    from ultracluster.config import Environment

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List and mend the nodes of a deployed environment. Exit code 0 = done or nothing to do, "
    "1 = refused or failed for a node, 2 = could not be asked or was not confirmed, 3 = still under way.",
)

NodeArguments = Annotated[
    list[str],
    typer.Argument(help="Instance id, logical id, host name (`ip-10-1-0-5`) or address.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be asked of AWS.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is done.")]
Timeout = Annotated[int, typer.Option(min=1, help="Minutes to wait at most.")]


@app.command("list")
def list_(
    environment: EnvironmentArgument,
    group: Annotated[str | None, typer.Option(help="Only this group.", show_default=False)] = None,
    status: Annotated[
        str | None, typer.Option(help="Only this status, e.g. `Failure`.", show_default=False)
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every node, also those that HyperPod still waits for. Changes nothing."""
    from ultracluster.account.nodes import states as model

    fleet = _open(environment, profile)
    nodes = [
        node
        for node in fleet.nodes
        if group in (None, node.group) and (status is None or status.lower() == node.status.lower())
    ]
    if as_json:
        typer.echo(json.dumps([model.as_json(node) for node in nodes], indent=2))
        return
    rows = [
        (
            node.group,
            node.name,
            node.status,
            node.instance_type,
            node.dns.split(".")[0],
            " ".join(part for part in (node.image, node.image_status) if part),
            node.message,
        )
        for node in nodes
    ]
    if rows:
        typer.echo(text_table(("group", "node", "status", "type", "host", "image", ""), rows))
    if fleet.cluster:
        for one in fleet.cluster.groups:
            if one.current != one.target:
                typer.echo(f"{one.name}: {one.current} of {one.target} nodes, {one.status}")
    typer.echo(f"{len(nodes)} node{'s' * (len(nodes) != 1)}")


@app.command()
def describe(
    environment: EnvironmentArgument,
    node: Annotated[str, typer.Argument(help="As in `nodes list`.", show_default=False)],
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that AWS tells of one node. Changes nothing."""
    from ultracluster.account.aws import AccountError

    fleet = _open(environment, profile)
    found, missing = fleet.find([node])
    if missing:
        refuse(fleet.absent(missing[0]).why)
    try:
        described = fleet.describe(found[0])
    except AccountError as error:
        refuse(str(error))
    if as_json:
        typer.echo(json.dumps(described, indent=2, default=_iso))
    else:
        typer.echo("\n".join(_lines(described)))


@app.command()
def reboot(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 30,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reboot nodes; disks stay as they are, lifecycle scripts do not run again."""
    _act(_open(environment, profile), "reboot", nodes, yes, dry_run, wait, timeout, as_json)


@app.command()
def replace(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 90,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace nodes by new instances; everything on their own disks is lost."""
    _act(_open(environment, profile), "replace", nodes, yes, dry_run, wait, timeout, as_json)


@app.command()
def delete(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 60,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete nodes and lower their group's target; the next deploy goes by the file's `count` again."""
    _act(_open(environment, profile), "delete", nodes, yes, dry_run, wait, timeout, as_json)


@app.command("health-check")
def health_check(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    stress: Annotated[bool, typer.Option(help="Test the accelerators.")] = True,
    connectivity: Annotated[
        bool, typer.Option(help="Test the fabric between nodes; takes two nodes of a group or more.")
    ] = False,
    training: Annotated[bool, typer.Option(help="Train over the nodes.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start HyperPod's deep health checks: about two hours in which the nodes take no jobs."""
    wanted = {"InstanceStress": stress, "InstanceConnectivity": connectivity}
    wanted["MultiNodeTrainingValidation"] = training
    checks = [name for name, chosen in wanted.items() if chosen]
    if not checks:
        refuse("choose at least one check")
    fleet = _open(environment, profile)
    _act(fleet, "health-check", nodes, yes, dry_run, False, 1, as_json, checks)


@app.command()
def add(
    environment: EnvironmentArgument,
    group: Annotated[str, typer.Option(help="The group that grows.", show_default=False)],
    count: Annotated[int | None, typer.Option(min=1, help="Nodes to add.", show_default=False)] = None,
    to: Annotated[
        int | None,
        typer.Option(min=1, help="Add what is missing up to so many; safe to repeat.", show_default=False),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 90,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add nodes to a group with continuous provisioning."""
    from ultracluster.account.nodes import ec2 as ec2_nodes
    from ultracluster.account.nodes import hyperpod as hyperpod_nodes
    from ultracluster.account.nodes import hyperpod_requests
    from ultracluster.account.nodes.states import Outcome

    if (count is None) == (to is None):
        refuse("say either --count or --to")
    fleet = _open(environment, profile)
    if fleet.cluster is None:
        refuse(ec2_nodes.elsewhere(fleet.kind, "add"))
    known = fleet.cluster.group(group)
    more = count if count is not None else (to or 0) - (known.target if known else 0)
    if known and more <= 0:
        _report([Outcome(group, "already", f"has a target of {known.target}", group)], as_json)
        return
    refused = hyperpod_nodes.judge_add(fleet.cluster, group, more)
    if refused:
        _finish([refused], as_json)
    target = known.target + more if known else more
    question = f"Add {more} node{'s' * (more != 1)} to {group}, {target} in all?"
    typer.echo(f"The next deploy goes by the file again: set `count: {target}` of {group} there.", err=True)
    if dry_run:
        _finish([Outcome(f"{more} more", "would", f"target {target}", group)], as_json)
    confirm(question, yes)
    outcomes = hyperpod_requests.add(fleet.account, fleet.cluster, group, more)
    late = (
        wait
        and any(one.result == "accepted" for one in outcomes)
        and _wait(fleet, {group}, set(), 30, timeout)
    )
    _finish(outcomes, as_json, late)


@app.command()
def restore(
    environment: EnvironmentArgument,
    group: Annotated[str, typer.Argument(help="The group that comes back.", show_default=False)],
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 180,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a group that HyperPod has set to 0 nodes back to the counts of the environment file.

    HyperPod does that to a new group which has not reached `min_count` within three hours. Find out why with
    `ultracluster doctor` first: nodes whose scripts fail are charged.
    """
    from ultracluster.account.nodes import ec2 as ec2_nodes
    from ultracluster.account.nodes import hyperpod_restore
    from ultracluster.rules.hyperpod.groups import hyperpod_groups

    config = load_environment(environment)
    fleet = _fleet(config, profile)
    if fleet.cluster is None:
        refuse(ec2_nodes.elsewhere(fleet.kind, "add"))
    groups = hyperpod_groups(config)
    judged = hyperpod_restore.judge_restore(fleet.cluster, groups, group)
    if judged.result != "would" or dry_run:
        _finish([judged], as_json)
    confirm(f"Bring {group} back, {judged.why}?", yes)
    outcome = hyperpod_restore.restore(fleet.account, fleet.cluster, group, groups[group])
    late = wait and outcome.result == "accepted" and _wait(fleet, {group}, set(), 30, timeout)
    _finish([outcome], as_json, late)


def _open(environment: Any, profile: str | None) -> Fleet:
    return _fleet(load_environment(environment), profile)


def _fleet(config: Environment, profile: str | None) -> Fleet:
    from ultracluster.account.aws import AccountError
    from ultracluster.account.nodes.fleet import Fleet

    account = open_account(config, profile)
    try:
        return Fleet(account, config)
    except AccountError as error:
        refuse(str(error))


def _act(
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
        _finish(outcomes + [one for one in judged if one.result == "would"], as_json)
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
        late = _wait(fleet, groups, leaving, settle, timeout)
    for line in fleet.after(action, [node for node in nodes if node.name in accepted]) if accepted else []:
        typer.echo(line, err=True)
    _finish(outcomes, as_json, late)


_VERBS = {
    "reboot": "Reboot",
    "replace": "Replace, and lose the disks of,",
    "delete": "Delete",
    "health-check": "Take out of service for about two hours and check",
}


def _wait(fleet: Fleet, groups: set[str], leaving: set[str], settle: float, timeout: int) -> bool:
    """Whether it is not done in time, or a node has failed on the way."""
    from ultracluster.account.aws import AccountError
    from ultracluster.account.nodes.following import Seen, wait

    assert fleet.cluster
    try:
        with bars(before="nodes") as bar:
            task = bar.add_task("", total=None)

            def report(seen: Seen) -> None:
                text = f"{seen.ready}/{seen.wanted} {'; '.join(seen.busy[:2])}"
                bar.update(task, completed=seen.ready, total=seen.wanted, description=text)

            seen = wait(
                fleet.account,
                fleet.cluster.name,
                groups=groups,
                leaving=leaving,
                settle=settle,
                timeout=timeout * 60,
                report=report,
            )
    except AccountError as error:
        typer.echo(f"cannot watch any longer, the request goes on: {error}", err=True)
        return True
    except KeyboardInterrupt:
        typer.echo("no longer watched; the request goes on: see `ultracluster nodes list`", err=True)
        return True
    for line in seen.busy:
        typer.echo(f"still under way: {line}", err=True)
    for node in seen.failed:
        typer.echo(
            f"{node} has failed, and HyperPod does not try again by itself: replace it once more", err=True
        )
    return bool(seen.busy or seen.failed)


def _finish(outcomes: Sequence[Outcome], as_json: bool, late: bool = False) -> NoReturn:
    _report(outcomes, as_json)
    raise typer.Exit(1 if any(one.bad for one in outcomes) else 3 if late else 0)


def _report(outcomes: Sequence[Outcome], as_json: bool) -> None:
    from ultracluster.account.nodes import states as model

    sys.stderr.flush()
    if as_json:
        typer.echo(json.dumps([model.as_json(one) for one in outcomes], indent=2))
        return
    if outcomes:
        rows = [(one.node, one.group, one.result, one.why) for one in outcomes]
        typer.echo(text_table(("node", "group", "result", ""), rows))


def _lines(value: Any, indent: int = 0) -> list[str]:
    """A nested answer as indented `name: value` lines."""
    pad = "  " * indent
    lines: list[str] = []
    pairs: list[tuple[str, Any]] = (
        list(value.items()) if isinstance(value, dict) else [("-", one) for one in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    )
    for key, entry in pairs:
        if isinstance(entry, dict | list) and entry:
            lines += [f"{pad}{key}:", *_lines(entry, indent + 1)]
        elif entry not in ({}, []):
            lines.append(f"{pad}{key}: {_iso(entry)}")
    return lines


def _iso(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
