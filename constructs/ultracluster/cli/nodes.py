"""`ultracluster nodes`: what the nodes of a deployed environment are, and what is done with a bad one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account.aws import AccountError
from ultracluster.account.nodes import ec2 as ec2_nodes
from ultracluster.account.nodes import hyperpod as hyperpod_nodes
from ultracluster.account.nodes import hyperpod_requests, hyperpod_restore
from ultracluster.account.nodes.node import Outcome
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    confirm,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.node_actions import (
    Choice,
    act,
    answer_lines,
    finish,
    fleet_of,
    open_fleet,
    report,
    wait_for,
)
from ultracluster.cli.node_pins import print_pins
from ultracluster.cli.node_settle import settled
from ultracluster.cli.report import text_table
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve

if TYPE_CHECKING:
    from ultracluster.config import Environment

NodeArguments = Annotated[
    list[str],
    typer.Argument(help="Instance id, logical id, host name (`ip-10-1-0-5`) or address.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DespiteJobs = Annotated[
    bool,
    typer.Option("--despite-jobs", help="With --yes: also where jobs run, or where that is not known."),
]
AtMost = Annotated[
    int | None,
    typer.Option(
        "--at-most",
        min=1,
        help="Nodes of this call; 10 by default, or 10 % of their groups where that is more.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the API calls without making them.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is done.")]
Timeout = Annotated[int, typer.Option(min=1, help="Minutes to wait at most.")]


def list_(
    environment: EnvironmentArgument,
    node: Annotated[
        str | None, typer.Argument(help="Show everything that AWS reports of this node.", show_default=False)
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="Only this group; may be repeated.", show_default=False)
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="Only this status, e.g. `Failure`.", show_default=False)
    ] = None,
    pins: Annotated[
        bool,
        typer.Option(
            "--pins", help="Which release of HyperPod's image each group runs, as lines of its file."
        ),
    ] = False,
    settle: Annotated[
        bool,
        typer.Option(
            "--settle", help="Find out what became of a `replace` or `delete` whose answer never came."
        ),
    ] = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every node, also those that HyperPod still waits for. Changes no node.

    Without `image_release`, which --pins prints, a new group starts with HyperPod's newest image. Exit code 0
    = asked, 1 = with --pins: of a group no release is known; with --settle: a node was not taken, 2 = could
    not be asked, or nothing is to be settled, 3 = with --settle: not known yet.
    """
    if (node is not None) + bool(group or status or pins) + settle > 1 or (status and pins):
        refuse("choose one: a node, groups with --status or --pins, or --settle")
    if settle:
        settled(load_environment(environment), profile)
    elif pins:
        print_pins(environment, group or [], profile, as_json=as_json)
    elif node is not None:
        _describe(environment, node, profile, as_json=as_json)
    else:
        _list(environment, group or [], status, profile, as_json=as_json)


def _list(
    environment: Path, groups: list[str], status: str | None, profile: str | None, *, as_json: bool
) -> None:
    fleet = open_fleet(environment, profile)
    nodes = [
        node
        for node in fleet.nodes
        if (not groups or node.group in groups) and (status is None or status.lower() == node.status.lower())
    ]
    if as_json:
        write_json("nodes", {"nodes": nodes})
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
        typer.echo(text_table(("group", "node", "status", "type", "host", "image", "message"), rows))
    if fleet.cluster:
        for one in fleet.cluster.groups:
            if one.current != one.target:
                typer.echo(one_line(f"{one.name}: {one.current} of {one.target} nodes, {one.status}"))
    typer.echo(f"{len(nodes)} node{'s' * (len(nodes) != 1)}")


def _describe(environment: Path, node: str, profile: str | None, *, as_json: bool) -> None:
    fleet = open_fleet(environment, profile)
    found, missing = fleet.find([node])
    if missing:
        refuse(fleet.absent(missing[0]).why)
    try:
        described = fleet.describe(found[0])
    except AccountError as error:
        refuse(str(error))
    if as_json:
        write_json("node", {"node": described})
    else:
        typer.echo("\n".join(answer_lines(described)))


def reboot(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    despite_jobs: DespiteJobs = False,
    at_most: AtMost = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 30,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reboot nodes; disks stay as they are, lifecycle scripts do not run again.

    The jobs that run there are named first; --yes does not go over them without --despite-jobs.
    """
    choice = Choice(yes, despite_jobs, at_most, dry_run, wait, timeout, as_json)
    act(open_fleet(environment, profile), "reboot", nodes, choice)


def replace(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    despite_jobs: DespiteJobs = False,
    at_most: AtMost = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 90,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace nodes by new instances; everything on their own disks is lost.

    The jobs that run there are named first; --yes does not go over them without --despite-jobs.
    """
    choice = Choice(yes, despite_jobs, at_most, dry_run, wait, timeout, as_json)
    act(open_fleet(environment, profile), "replace", nodes, choice)


def delete(
    environment: EnvironmentArgument,
    nodes: NodeArguments,
    yes: Yes = False,
    despite_jobs: DespiteJobs = False,
    at_most: AtMost = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 60,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete nodes and lower their group's target; the next deploy goes by the file's `count` again.

    The jobs that run there are named first; --yes does not go over them without --despite-jobs.
    """
    choice = Choice(yes, despite_jobs, at_most, dry_run, wait, timeout, as_json)
    act(open_fleet(environment, profile), "delete", nodes, choice)


def health_check(
    environment: EnvironmentArgument,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(help="As in `nodes list`; none with --group.", show_default=False),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="All nodes of this group; may be repeated.", show_default=False),
    ] = None,
    stress: Annotated[bool, typer.Option(help="Test the accelerators.")] = True,
    connectivity: Annotated[
        bool, typer.Option(help="Test the fabric between nodes; takes two nodes of a group or more.")
    ] = False,
    training: Annotated[bool, typer.Option(help="Train over the nodes.")] = False,
    yes: Yes = False,
    despite_jobs: DespiteJobs = False,
    at_most: AtMost = None,
    dry_run: DryRun = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start HyperPod's deep health checks: about two hours in which the nodes take no jobs.

    HyperPod takes one such request at a time for a cluster: name all nodes, or groups, at once. Which nodes
    are being checked says `ultracluster nodes list --status DeepHealthCheckInProgress`.
    """
    wanted = {"InstanceStress": stress, "InstanceConnectivity": connectivity}
    wanted["MultiNodeTrainingValidation"] = training
    checks = [name for name, chosen in wanted.items() if chosen]
    if not checks:
        refuse("choose at least one check")
    if bool(nodes) == bool(group):
        refuse("name nodes, or groups with --group")
    config = load_environment(environment)
    if reason := _unchecked(config):
        refuse(reason)
    fleet = fleet_of(config, profile)
    names = list(nodes or ())
    for one in group or ():
        members = [node.name for node in fleet.nodes if node.group == one]
        if not members:
            there = ", ".join(sorted({node.group for node in fleet.nodes}))
            refuse(f"no nodes in group {one}; there are {there}")
        names += members
    # a group that is named is meant as a whole, however large it is
    most = max(1, len(names)) if group and at_most is None else at_most
    choice = Choice(yes, despite_jobs, most, dry_run, wait=False, as_json=as_json)
    act(fleet, "health-check", names, choice, checks)


def _unchecked(config: Environment) -> str:
    """Why no service checks these nodes on demand, which the file says; empty where one does."""
    cluster = resolve(config)
    return "" if cluster.traits.hyperpod else ec2_nodes.elsewhere(cluster, "health-check")


def add(
    environment: EnvironmentArgument,
    group: Annotated[str, typer.Option(help="The group that grows.", show_default=False)],
    count: Annotated[int | None, typer.Option(min=1, help="Nodes to add.", show_default=False)] = None,
    to: Annotated[
        int | None,
        typer.Option(min=1, help="Add what is missing up to so many; safe to repeat.", show_default=False),
    ] = None,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore",
            help="Restore a group that HyperPod scaled to 0 to the counts of the file.",
        ),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Annotated[
        int | None,
        typer.Option(min=1, help="Minutes to wait at most; 90, or 180 with --restore.", show_default=False),
    ] = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add nodes to a group with continuous provisioning, or restore a group.

    HyperPod scales a new group to 0 when it has not reached `min_count` within three hours. Find out why with
    `ultracluster doctor` before --restore: nodes whose scripts fail are charged.
    """
    timeout = timeout or (180 if restore else 90)
    if [count is None, to is None, not restore].count(False) != 1:
        refuse("Pass exactly one of --count, --to or --restore.")
    if restore:
        choice = Choice(yes, False, None, dry_run, wait, timeout, as_json)
        _restore(environment, group, profile, choice)
        return
    fleet = open_fleet(environment, profile)
    if fleet.cluster is None:
        refuse(ec2_nodes.elsewhere(fleet.wanted, "add"))
    known = fleet.cluster.group(group)
    more = count if count is not None else (to or 0) - (known.target if known else 0)
    if known and more <= 0:
        report([Outcome(group, "already", f"has a target of {known.target}", group)], as_json)
        return
    refused = hyperpod_nodes.judge_add(fleet.cluster, group, more)
    if refused:
        finish([refused], as_json)
    target = known.target + more if known else more
    question = f"Add {more} node{'s' * (more != 1)} to {group}, {target} in all?"
    remark(f"The next deploy goes by the file again: set `count: {target}` of {group} there.")
    if dry_run:
        finish([Outcome(f"{more} more", "would", f"target {target}", group)], as_json)
    confirm(question, yes)
    outcomes = hyperpod_requests.add(fleet.account, fleet.cluster, group, more)
    accepted = any(one.result == "accepted" for one in outcomes)
    finish(outcomes, as_json, wait_for(fleet, {group}, set(), 30, timeout) if wait and accepted else 0)


def _restore(environment: Path, group: str, profile: str | None, choice: Choice) -> None:
    config = load_environment(environment)
    fleet = fleet_of(config, profile)
    if fleet.cluster is None:
        refuse(ec2_nodes.elsewhere(fleet.wanted, "add"))
    groups = {name: one.settings for name, one in fleet.wanted.in_service.items()}
    judged = hyperpod_restore.judge_restore(fleet.cluster, groups, group)
    if judged.result != "would" or choice.dry_run:
        finish([judged], choice.as_json)
    confirm(f"Bring {group} back, {judged.why}?", choice.yes)
    outcome = hyperpod_restore.restore(fleet.account, fleet.cluster, group, groups[group])
    waits = choice.wait and outcome.result == "accepted"
    finish([outcome], choice.as_json, wait_for(fleet, {group}, set(), 30, choice.timeout) if waits else 0)
