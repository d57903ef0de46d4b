"""`ultracluster nodes list --settle`: what became of a request for nodes whose answer never came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from ultracluster.cli.node_actions import fleet_of, record
from ultracluster.cli.report import refuse
from ultracluster.config.plain_text import one_line
from ultracluster.project.ledger import exclusive
from ultracluster.project.place import ProjectError

if TYPE_CHECKING:
    from ultracluster.config import Environment
    from ultracluster.project.ledger import Intent, Ledger

VISIBLE = timedelta(minutes=10)
"""After a request; within it the service may still show a node as running. Ours, AWS publishes no figure."""
LEAVING = frozenset({"shutting-down", "terminated", "stopping", "stopped", "ShuttingDown", "Replacing"})
"""States of a node that is being taken: EC2's, and HyperPod's."""


def settled(environment: Environment, profile: str | None) -> None:
    """Close the open intent of `nodes replace` or `delete`; a line in the ledger has the nodes taken."""
    try:
        with exclusive(environment.file, "nodes settle") as ledger:
            _settle(environment, ledger, profile)
    except ProjectError as error:
        refuse(str(error))


def _settle(environment: Environment, ledger: Ledger, profile: str | None) -> None:
    intent = ledger.intent
    if intent is None:
        refuse(f"there is nothing to settle for {environment.name}: each request has its answer")
    if not intent.action.startswith("nodes "):
        refuse(f"{one_line(str(intent))} is open, which is settled by: {intent.settle}")
    fleet = fleet_of(environment, profile)
    if (intent.account, intent.region) != (fleet.account.identity().account, fleet.account.region):
        refuse(f"{one_line(str(intent))} was for {intent.account}, {intent.region}: use its credentials")
    with ledger.details() as details:
        names = [str(name) for name in details["nodes"]]
    there = {node.name for node in fleet.nodes if node.status not in LEAVING}
    taken = [name for name in names if name not in there]
    rest = [name for name in names if name in there]
    if rest:
        _wait_until_visible(intent, rest)
    record(ledger, taken)
    for name in taken:
        typer.echo(f"{one_line(name)}: taken")
    for name in rest:
        typer.echo(f"{one_line(name)}: still there, not taken; it may still be closed to new jobs")
    raise typer.Exit(1 if rest else 0)


def _wait_until_visible(intent: Intent, rest: list[str]) -> None:
    until = datetime.fromisoformat(intent.time) + VISIBLE
    if until > datetime.now(UTC):
        refuse(f"{', '.join(map(one_line, rest))}: not shown yet, ask again at {until:%H:%M} UTC", code=3)
