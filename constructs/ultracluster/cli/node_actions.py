"""What the commands of `ultracluster nodes` share: judge, ask the person, ask AWS, wait, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ultracluster.account.aws import AccountError
from ultracluster.account.nodes import ec2_wait, hyperpod_wait
from ultracluster.account.nodes.ec2_wait import counts
from ultracluster.account.nodes.fleet import Fleet
from ultracluster.account.nodes.hyperpod_wait import SETTLE
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import confirm, load_environment, refuse
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import bars, working
from ultracluster.cli.report import text_table
from ultracluster.cli.terminal import remark
from ultracluster.config.plain_text import one_line
from ultracluster.jobs import on_nodes as jobs
from ultracluster.model import resolve
from ultracluster.project.ledger import Intent, exclusive
from ultracluster.project.place import ProjectError

if TYPE_CHECKING:
    from ultracluster.account.nodes.hyperpod_wait import Seen
    from ultracluster.account.nodes.node import Action, Node, Outcome
    from ultracluster.config import Environment
    from ultracluster.jobs.on_nodes import Cordoned, Running
    from ultracluster.project.ledger import Ledger


def open_fleet(environment: Any, profile: str | None) -> Fleet:
    """The nodes of an environment file; otherwise what is wrong, and exit code 2."""
    return fleet_of(load_environment(environment), profile)


def fleet_of(config: Environment, profile: str | None) -> Fleet:
    """The nodes of an environment; otherwise one line, and exit code 2."""
    account = open_account(config, profile)
    try:
        with working("asking AWS for the nodes"):
            return Fleet(account, resolve(config))
    except AccountError as error:
        refuse(str(error))


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person has chosen for one action."""

    yes: bool = False
    despite_jobs: bool = False
    """Whether nodes are taken although jobs run there, or may run there, without a question."""
    at_most: int | None = None
    """Nodes of one call; otherwise `ceiling`."""
    dry_run: bool = False
    wait: bool = True
    timeout: int = 90
    """Minutes."""
    as_json: bool = False


def act(
    fleet: Fleet, action: Action, names: Sequence[str], choice: Choice, checks: Sequence[str] = ()
) -> None:
    """Judge, look at jobs, ask the person, close the nodes to jobs, ask AWS, wait, report."""
    if action not in RECORDED or choice.dry_run:
        _act(_Request(fleet, action, choice, checks), names, None)
    try:
        with exclusive(fleet.wanted.environment.file, f"nodes {action}") as ledger:
            if ledger.intent:
                refuse(
                    f"Nothing changed: {one_line(str(ledger.intent))} ended without an answer. Find out what "
                    f"became of it first: {ledger.intent.settle}"
                )
            _act(_Request(fleet, action, choice, checks), names, ledger)
    except ProjectError as error:
        refuse(str(error))


@dataclass(frozen=True, slots=True)
class _Request:
    """One action on nodes."""

    fleet: Fleet
    action: Action
    choice: Choice
    checks: Sequence[str]


def _act(request: _Request, names: Sequence[str], ledger: Ledger | None) -> NoReturn:
    fleet, action, choice = request.fleet, request.action, request.choice
    found, missing = fleet.find(names)
    outcomes = [fleet.absent(name) for name in missing]
    judged = fleet.judge(action, found, request.checks)
    outcomes += [one for one in judged if one.result != "would"]
    willing = {one.node for one in judged if one.result == "would"}
    nodes = [node for node in found if node.name in willing]
    if not nodes:
        finish(outcomes, choice.as_json)
    _within(nodes, fleet.nodes, choice.at_most)
    with working("asking which jobs run there"):
        running = jobs.jobs_on(fleet, nodes)
    if choice.dry_run:
        tell_jobs(running)
        finish(outcomes + [one for one in judged if one.result == "would"], choice.as_json, running=running)
    for line in fleet.before(action, nodes):
        typer.echo(one_line(line), err=True)
    for one in outcomes:
        typer.echo(one_line(f"left out: {one.node} {one.why}"), err=True)
    tell_jobs(running)
    _ask(f"{_VERBS[action]} {_many(len(nodes), 'node')} ({_listed(nodes)})", running, choice)
    with _closed_to_jobs(fleet, action, nodes, running, choice) as closed:
        done = _ask_aws(request, nodes, ledger)
    outcomes += done
    accepted = [node for node in nodes if node.name in {one.node for one in done if one.result == "accepted"}]
    late = _await(fleet, action, accepted, choice) if choice.wait and accepted else 0
    unknown = {one.node for one in done if one.result == "unknown"}
    _open(request, accepted, closed.without(unknown), waited=choice.wait and late == 0)
    if unknown:
        settle = ledger and ledger.intent and ledger.intent.settle
        typer.echo(
            f"No answer came for every node. Find out: {settle or 'ultracluster nodes list'}", err=True
        )
    finish(outcomes, choice.as_json, late, running)


def _ask_aws(request: _Request, nodes: Sequence[Node], ledger: Ledger | None) -> list[Outcome]:
    """Record the intent, make the call, and record what AWS accepted."""
    action, fleet = request.action, request.fleet
    if ledger:
        ledger.begin(_intent(request, nodes))
    with working(f"asking AWS to {action.replace('-', ' ')} {_many(len(nodes), 'node')}"):
        done = fleet.act(action, nodes, request.checks)
    if ledger and not any(one.result == "unknown" for one in done):
        record(ledger, [one.node for one in done if one.result == "accepted"])
    return done


def record(ledger: Ledger, taken: Sequence[str]) -> None:
    """Write the nodes that were taken to the ledger, and close its intent."""
    if not taken:
        ledger.withdraw()
        return
    try:
        ledger.complete(", ".join(taken))
    except OSError as error:
        typer.echo(f"the ledger {ledger.file} cannot be written: {error.strerror}", err=True)


def _intent(request: _Request, nodes: Sequence[Node]) -> Intent:
    account, environment = request.fleet.account, request.fleet.wanted.environment
    return Intent(
        action=f"nodes {request.action}",
        subject=", ".join(node.name for node in nodes),
        settle=f"ultracluster nodes list {environment.asked_as} --settle",
        account=account.identity().account,
        region=account.region,
        details={"nodes": [node.name for node in nodes]},
    )


def _await(fleet: Fleet, action: Action, accepted: Sequence[Node], choice: Choice) -> int:
    """Wait until the cluster has its nodes again: 0, 3 or 130."""
    groups = {node.group for node in accepted}
    leaving = {node.name for node in accepted} if action != "reboot" else set[str]()
    if fleet.cluster:
        return wait_for(fleet, groups, leaving, SETTLE if action == "reboot" else 0, choice.timeout)
    if not leaving:
        return 0
    before = {group: count for group, count in counts(fleet.nodes).items() if group in groups}
    return wait_for_instances(fleet, before, leaving, choice.timeout)


@contextmanager
def _closed_to_jobs(
    fleet: Fleet, action: Action, nodes: Sequence[Node], running: Running, choice: Choice
) -> Generator[Cordoned]:
    """Close nodes to new jobs and look again; open them where nothing is asked of AWS after all."""
    with working("closing the nodes to new jobs"):
        closed = jobs.close_to_jobs(fleet, nodes, action)
    try:
        if closed.unknown and not running.unknown and not choice.despite_jobs:
            refuse(
                one_line(
                    f"Nothing changed: the nodes cannot be closed to new jobs: {closed.unknown}. Drain them "
                    "first, or pass --despite-jobs."
                )
            )
        if not choice.despite_jobs:
            _look_again(fleet, nodes, running)
        yield closed
    except BaseException:
        if why := jobs.open_to_jobs(fleet, closed):
            typer.echo(one_line(f"still closed to new jobs: {_names(closed)}: {why}"), err=True)
        raise


def _open(request: _Request, accepted: Sequence[Node], closed: Cordoned, *, waited: bool) -> None:
    """Open nodes that run again or were not taken; name the commands for those that are still under way."""
    if accepted and not waited:
        for line in request.fleet.after(request.action, accepted):
            remark(one_line(line))
    if request.action == "delete" or not (waited or request.action == "health-check"):
        closed = closed.without({node.name for node in accepted})
    if why := jobs.open_to_jobs(request.fleet, closed):
        typer.echo(one_line(f"still closed to new jobs: {_names(closed)}: {why}"), err=True)


def _names(closed: Cordoned) -> str:
    return ", ".join(closed.names.values())


def _listed(nodes: Sequence[Node]) -> str:
    return ", ".join(node.name for node in nodes[:5]) + (f" and {len(nodes) - 5} more" if nodes[5:] else "")


def _look_again(fleet: Fleet, nodes: Sequence[Node], agreed: Running) -> None:
    """Refuse where a job has started before the nodes were closed: a person may have thought for an hour."""
    with working("asking again which jobs run there"):
        now = jobs.jobs_on(fleet, nodes)
    started = [job for job in now.jobs if job.id not in {one.id for one in agreed.jobs}]
    if started:
        named = "; ".join(map(str, started[:5]))
        refuse(
            one_line(f"Nothing changed: started meanwhile: {named}. Wait until they end, or drain the nodes.")
        )
    if now.unknown and not agreed.unknown:
        refuse(one_line(f"Nothing changed: whether jobs run there is no longer known: {now.unknown}"))


RECORDED = ("replace", "delete")
"""Actions that cannot be undone: with an intent before and a ledger after the call."""
INTERRUPTED = 130
UNKNOWN = 3
AT_MOST = 10
"""Nodes that one call takes without being told of more."""
SHARE = 0.1
"""Or so much of the groups that they are of, where that is more."""


def ceiling(nodes: Sequence[Node], all_nodes: Sequence[Node]) -> int:
    """How many nodes one call may take: 10, or 10 % of the groups that they are of, whichever is more."""
    groups = {node.group for node in nodes}
    return max(AT_MOST, round(SHARE * sum(node.group in groups for node in all_nodes)))


def tell_jobs(running: Running) -> None:
    """Name the jobs that run on the nodes, or why that is not known."""
    for job in running.jobs:
        typer.echo(one_line(f"runs there: {job}"), err=True)
    if running.unknown:
        typer.echo(one_line(f"not known, whether jobs run there: {running.unknown}"), err=True)


def _within(nodes: Sequence[Node], all_nodes: Sequence[Node], at_most: int | None) -> None:
    """Refuse more nodes than one call may take."""
    most = ceiling(nodes, all_nodes) if at_most is None else at_most
    if len(nodes) > most:
        refuse(
            f"{len(nodes)} nodes are more than the {most} that one call takes: nothing changed. "
            f"Name fewer, or pass `--at-most {len(nodes)}`."
        )


def _ask(question: str, running: Running, choice: Choice) -> None:
    """Ask the person; `--yes` by itself does not answer for jobs."""
    if running.jobs:
        question += f", on which {_many(len(running.jobs), 'job')} run{'s' * (len(running.jobs) == 1)}"
    elif running.unknown:
        question += ", although it is not known whether jobs run there"
    if choice.yes and (running.jobs or running.unknown) and not choice.despite_jobs:
        named = "; ".join(str(job) for job in running.jobs[:5])
        more = f"; and {len(running.jobs) - 5} more" if running.jobs[5:] else ""
        why = f"these would end: {named}{more}"
        if not running.jobs:
            why = f"whether jobs run there is not known: {running.unknown}"
        refuse(one_line(f"{why}. Nothing changed. Empty the nodes first, or pass --despite-jobs."))
    confirm(one_line(f"{question}?"), choice.yes)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


_VERBS = {
    "reboot": "Reboot",
    "replace": "Replace, and lose the disks of,",
    "delete": "Delete",
    "health-check": "Take out of service for about two hours and check",
}


def wait_for(fleet: Fleet, groups: set[str], leaving: set[str], settle: float, timeout: int) -> int:
    """0, or 3 where HyperPod is not done in time or a node has failed on the way; 130 if interrupted."""
    assert fleet.cluster
    name = fleet.cluster.name
    return _wait(
        lambda report: hyperpod_wait.wait(
            fleet.account, name, groups=groups, leaving=leaving, settle=settle, timeout=timeout * 60,
            report=report,
        )
    )  # fmt: skip


def wait_for_instances(fleet: Fleet, before: Mapping[str, int], leaving: set[str], timeout: int) -> int:
    """0, or 3 where the new instances of a replacement do not run in time; 130 if interrupted."""
    return _wait(
        lambda report: ec2_wait.wait(
            fleet.account, fleet.wanted, before=before, leaving=leaving, timeout=timeout * 60, report=report
        )
    )


def _wait(begin: Callable[[Callable[[Seen], None]], Seen]) -> int:
    """Follow a wait with a bar: 0, 3 where it is not done in time or a node failed, 130 if interrupted."""
    try:
        with bars(before="nodes") as bar:
            task = bar.add_task("", total=None)

            def follow(seen: Seen) -> None:
                text = f"{seen.ready}/{seen.wanted} {'; '.join(seen.busy[:2])}"
                bar.update(task, completed=seen.ready, total=seen.wanted, description=text)

            seen = begin(follow)
    except AccountError as error:
        typer.echo(f"Stopped waiting, the request is still running in AWS: {error}", err=True)
        return 3
    except KeyboardInterrupt:
        typer.echo("Stopped waiting; the request is still running in AWS.", err=True)
        return INTERRUPTED
    for line in seen.busy:
        typer.echo(one_line(f"still under way: {line}"), err=True)
    for node in seen.failed:
        typer.echo(f"{node} has failed, and HyperPod does not retry by itself: replace it again", err=True)
    return 3 if seen.busy or seen.failed else 0


def finish(
    outcomes: Sequence[Outcome], as_json: bool, late: int = 0, running: Running | None = None
) -> NoReturn:
    """Print what came of it, and end with the exit code that says so.

    Args:
        late: how a wait has ended: 0, 3 or 130.
    """
    report(outcomes, as_json, running)
    results = {one.result for one in outcomes}
    if late != INTERRUPTED and "unknown" in results:
        late = UNKNOWN
    elif late != INTERRUPTED and any(one.bad for one in outcomes):
        late = 1
    raise typer.Exit(late)


def report(outcomes: Sequence[Outcome], as_json: bool, running: Running | None = None) -> None:
    """Print what came of it, one line or object for each node.

    Args:
        running: the jobs that ran on the nodes; none where jobs were not in question.
    """

    sys.stderr.flush()
    if as_json:
        made: dict[str, Any] = {"outcomes": outcomes}
        if running:
            made["jobs"] = running.jobs
            made["jobs_unknown"] = running.unknown or None
        write_json("outcomes", made)
        return
    if outcomes:
        rows = [(one.node, one.group, one.result, one.why) for one in outcomes]
        typer.echo(text_table(("node", "group", "result", "why"), rows))


def answer_lines(value: Any, indent: int = 0) -> list[str]:
    """A nested answer as indented `name: value` lines."""
    pad = "  " * indent
    lines: list[str] = []
    pairs: list[tuple[str, Any]] = (
        list(value.items()) if isinstance(value, dict) else [("-", one) for one in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    )
    for key, entry in pairs:
        if isinstance(entry, dict | list) and entry:
            lines += [f"{pad}{one_line(str(key))}:", *answer_lines(entry, indent + 1)]
        elif entry not in ({}, []):
            lines.append(f"{pad}{one_line(f'{key}: {iso(entry)}')}")
    return lines


def iso(value: Any) -> str:
    """A date as ISO 8601, all else as text."""
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
