"""`ultracluster apply observability`: what a deploy cannot do, looked at first and done afterwards.

Looking needs a token of Grafana, and doing needs another: none lives while a person reads and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ultracluster.account import observability_extension as extension
from ultracluster.account.aws import Account, AccountError
from ultracluster.account.grafana.admins import Person, admit, missing_admins
from ultracluster.account.grafana.client import ChangedMeanwhileError, Client
from ultracluster.account.grafana.steps import Step, carry_out, compare
from ultracluster.account.grafana.token import LeftTokenError, short_token
from ultracluster.account.grafana.wanted import wanted
from ultracluster.account.grafana.workspace import Workspace, find_workspace, metrics_of
from ultracluster.account.nodes.hyperpod import LiveCluster
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import observability_of

State = Literal["planned", "done", "same", "kept", "failed", "not tried", "under way"]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing, and what came of it."""

    kind: str
    """`data source`, `folder`, `board`, `administrator` or `extension`."""
    name: str
    action: str
    state: State
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there is to do."""

    workspace: Workspace | None = None
    steps: tuple[Step, ...] = ()
    admins: tuple[Person, ...] = ()
    extension: tuple[LiveCluster, extension.Step] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> list[Row]:
        """As they are before anything is done."""
        return [
            *(_step_row(step) for step in self.steps),
            *map(_admin_row, self.admins),
            *_extension_rows(self),
        ]

    @property
    def changes(self) -> bool:
        return any(row.state == "planned" for row in self.rows)


def plan(account: Account, cluster: Cluster, *, overwrite: bool = False, runbooks: str = "") -> Plan:
    """Return what an environment's Grafana and HyperPod's extension need.

    Args:
        account: the environment's.
        cluster: what the environment comes to.
        overwrite: replace boards that a person has changed, too.
        runbooks: URL of the runbooks, for links to them.

    Raises:
        AccountError: something is not deployed, cannot be reached, or refuses.
    """
    settings = observability_of(cluster)
    notes: list[str] = []
    workspace: Workspace | None = None
    steps: list[Step] = []
    admins: list[Person] = []
    if settings and settings.grafana:
        workspace = find_workspace(account, cluster)
        all_of_it = wanted(cluster, workspace, metrics_of(account, cluster), runbooks=runbooks)
        if not all_of_it.boards:
            notes.append(
                f"no boards: they read the metrics of kind prometheus, and this is kind {settings.kind}"
            )
        if workspace.restricted:
            notes.append(workspace.restricted)
        try:
            with short_token(account, workspace.id) as token:
                steps = compare(Client(workspace, token), all_of_it, overwrite=overwrite)
        except LeftTokenError as error:
            notes.append(str(error))
        admins = missing_admins(account, cluster, workspace)
    found = None
    if isinstance(cluster.settings, HyperPodSlurm):
        found = _examined(account, cluster, notes)
    return Plan(
        workspace=workspace, steps=tuple(steps), admins=tuple(admins), extension=found, notes=tuple(notes)
    )


def perform(account: Account, made: Plan, *, environment: str, report: Report) -> list[Row]:
    """Do it; each thing is whole or not at all, and what failed can be repeated.

    Args:
        account: the environment's.
        made: of `plan`.
        environment: its name, for the tag of an extension.
        report: is told of each thing that is done, and of what is under way.
    """
    rows = [
        *_in_grafana(account, made),
        *(_admitted(account, made, admin) for admin in made.admins),
    ]
    for row in rows:
        if row.state not in ("same", "kept"):
            report(f"{row.state}: {row.kind} {row.name}")
    rows += [_extended(account, made, environment, report)] if made.extension else []
    return rows


def _in_grafana(account: Account, made: Plan) -> list[Row]:
    rows = [_step_row(step) for step in made.steps]
    if made.workspace is None or not any(step.changes for step in made.steps):
        return rows
    stopped = ""
    try:
        with short_token(account, made.workspace.id) as token:
            client = Client(made.workspace, token)
            for place, step in enumerate(made.steps):
                if not step.changes:
                    continue
                if stopped:
                    rows[place] = replace(rows[place], state="not tried")
                    continue
                try:
                    carry_out(client, step)
                    rows[place] = replace(rows[place], state="done")
                except AccountError as error:
                    rows[place] = replace(rows[place], state="failed", details=(str(error),))
                    # what one person saved meanwhile says nothing about the others
                    stopped = "" if isinstance(error, ChangedMeanwhileError) else str(error)
    except LeftTokenError as error:
        rows.append(
            Row(kind="token", name="of this command", action="delete", state="failed", details=(str(error),))
        )
    except AccountError as error:
        rows = [
            replace(row, state="not tried", details=(str(error),)) if row.state == "planned" else row
            for row in rows
        ]
    return rows


def _admitted(account: Account, made: Plan, person: Person) -> Row:
    assert made.workspace is not None
    row = _admin_row(person)
    try:
        admit(account, made.workspace, person)
    except AccountError as error:
        return replace(row, state="failed", details=(str(error),))
    return replace(row, state="done")


def _extended(account: Account, made: Plan, environment: str, report: Report) -> Row:
    assert made.extension is not None
    live, step = made.extension
    (row,) = _extension_rows(made)
    if step.action == "none":
        return row
    try:
        extension.carry_out(account, live.arn, step, tags={"ultracluster:environment": environment})
        found = extension.follow(
            account,
            live.arn,
            report=lambda one: report(f"{extension.NAME}: {one.status}, {one.active} of {one.nodes} nodes"),
        )
    except AccountError as error:
        return replace(row, state="failed", details=(str(error),))
    if found is None:
        return replace(row, state="done", details=("it is gone",))
    issues = tuple(f"{issue.code} on {issue.nodes} nodes: {issue.message}" for issue in found.issues)
    if found.status in extension.BUSY:
        return replace(row, state="under way", details=(f"still {found.status}", *issues))
    state: State = "failed" if found.status.endswith("Failed") else "done"
    return replace(row, state=state, details=(f"{found.status}, version {found.version}", *issues))


def _examined(
    account: Account, cluster: Cluster, notes: list[str]
) -> tuple[LiveCluster, extension.Step] | None:
    """One that is there and not asked for is found, too: nodes would collect twice."""
    try:
        examination = extension.examine(account, cluster.environment)
    except AccountError as error:
        if extension.wanted(cluster.environment):
            raise
        notes.append(f"whether the cluster has the extension {extension.NAME} is not known: {error}")
        return None
    if examination[1].action == "refuse":
        raise AccountError(f"extension {extension.NAME}: {examination[1].why}")
    return (
        None if examination[1].action == "none" and not extension.wanted(cluster.environment) else examination
    )


def _extension_rows(made: Plan) -> Iterator[Row]:
    if made.extension is None:
        return
    step = made.extension[1]
    details = (step.why, *(f"{issue.code} on {issue.nodes} nodes: {issue.message}" for issue in step.issues))
    state: State = "same" if step.action == "none" else "under way" if step.action == "wait" else "planned"
    yield Row(kind="extension", name=extension.NAME, action=step.action, state=state, details=details)


def _step_row(step: Step) -> Row:
    state: State = "planned" if step.changes else "kept" if step.action == "keep" else "same"
    return Row(kind=step.kind, name=step.name, action=step.action, state=state, details=step.details)


def _admin_row(person: Person) -> Row:
    kind = "user" if person[0] == "SSO_USER" else "group"
    return Row(kind="administrator", name=f"{kind} {person[1]}", action="create", state="planned")
