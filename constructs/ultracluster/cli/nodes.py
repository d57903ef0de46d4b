"""`ultracluster nodes`: what the nodes of a deployed environment are, and what is done with a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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
from ultracluster.cli.report import text_table
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line

if TYPE_CHECKING:
    from ultracluster.config import Environment

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, reboot, replace or delete nodes of a deployed cluster. Exit code 0 = done or nothing to do, "
    "1 = refused or failed for a node, 2 = AWS cannot be asked or not confirmed, 3 = still under way.",
)

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

    fleet = open_fleet(environment, profile)
    nodes = [
        node
        for node in fleet.nodes
        if group in (None, node.group) and (status is None or status.lower() == node.status.lower())
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


@app.command()
def describe(
    environment: EnvironmentArgument,
    node: Annotated[str, typer.Argument(help="As in `nodes list`.", show_default=False)],
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that AWS tells of one node. Changes nothing."""
    from ultracluster.account.aws import AccountError

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


@app.command()
def why(
    environment: EnvironmentArgument,
    reason: Annotated[
        str,
        typer.Argument(
            help="As `sinfo -R` or `kubectl describe node` prints it, in quotes.", show_default=False
        ),
    ],
) -> None:
    """Say what the reason of a node in Slurm, or of its condition on Kubernetes, means and what happens.

    Asks nobody.

    Exit code 0 = known, 1 = a person's, or unknown.
    """
    from ultracluster.account.nodes.slurm_reason import explain

    known = explain(reason, load_environment(environment).health)
    if known is None:
        typer.echo(
            "not one that we know: `scontrol show node` (on Kubernetes `kubectl describe node`) names who "
            "set it, and when; ask them, or read slurmctld's log"
        )
        raise typer.Exit(1)
    typer.echo(f"{known.meaning}\nwritten by: {known.by}\nnext: {known.next}")
    if known.source:
        typer.echo(f"source: {known.source}")


@app.command()
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


@app.command()
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


@app.command()
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


@app.command()
def settle(environment: EnvironmentArgument, profile: ProfileOption = None) -> None:
    """Find out what became of a `replace` or `delete` whose answer never came. Changes no node.

    Exit code 0 = every node was taken, 1 = some or none were, 2 = there is nothing to settle, 3 = not known
    yet.
    """
    from ultracluster.cli.node_settle import settled

    settled(load_environment(environment), profile)


@app.command("health-check")
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
    from ultracluster.account.nodes.ec2 import elsewhere
    from ultracluster.model import resolve

    cluster = resolve(config)
    return "" if cluster.traits.hyperpod else elsewhere(cluster, "health-check")


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
    from ultracluster.account.nodes.node import Outcome

    if (count is None) == (to is None):
        refuse("Pass exactly one of --count or --to.")
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

    config = load_environment(environment)
    fleet = fleet_of(config, profile)
    if fleet.cluster is None:
        refuse(ec2_nodes.elsewhere(fleet.wanted, "add"))
    groups = {name: one.settings for name, one in fleet.wanted.in_service.items()}
    judged = hyperpod_restore.judge_restore(fleet.cluster, groups, group)
    if judged.result != "would" or dry_run:
        finish([judged], as_json)
    confirm(f"Bring {group} back, {judged.why}?", yes)
    outcome = hyperpod_restore.restore(fleet.account, fleet.cluster, group, groups[group])
    accepted = outcome.result == "accepted"
    finish([outcome], as_json, wait_for(fleet, {group}, set(), 30, timeout) if wait and accepted else 0)
