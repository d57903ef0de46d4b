"""`ultracluster list` and `ultracluster status`: which environments there are, and how one of them is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ultracluster.account import aws
from ultracluster.account.aws import Account
from ultracluster.account.status import CostState
from ultracluster.account.status import status as ask
from ultracluster.account.status.overview import Filed, overview
from ultracluster.cli.accounts import open_account
from ultracluster.cli.environments import (
    EnvironmentArgument,
    JsonOption,
    ProfileOption,
    load_environment,
    refuse,
)
from ultracluster.cli.json_output import write_json
from ultracluster.cli.progress import working
from ultracluster.cli.status_text import as_document, list_text, status_text
from ultracluster.config import InvalidEnvironmentError, load
from ultracluster.jobs.queue import open_queue
from ultracluster.model import Cluster, resolve
from ultracluster.project.place import find_root

EVERY = 30
INTERRUPTED = 130
DETECT_EVERY = 20
"""Looks of --watch from one detection of drift to the next: CloudFormation needs minutes for one."""

WatchOption = Annotated[
    bool, typer.Option("--watch", help=f"Look again every {EVERY} seconds, until it is interrupted.")
]


def list_environments(
    watch: WatchOption = False, profile: ProfileOption = None, as_json: JsonOption = False
) -> None:
    """List the environments of the folder beside what the account has. Changes nothing.

    Files in environments/, and environments that have stacks in the same Regions, but no file. A source
    that has not answered after 10 seconds is named, and the others still answer. Exit code 1 = an environment
    has failed, is deployed in part, or could not be asked, 2 = there is no environment file, 130 =
    interrupted.
    """

    files = list(_files())
    if not files:
        refuse("there is no environments/*.yaml here or in the project above: `ultracluster init` drafts one")

    def look(number: int) -> int:
        with working("asking") as say:
            rows = overview(
                files,
                lambda region: aws.Account(region=region, profile=profile),
                progress=lambda step: say(f"asking {step}"),
            )
        if as_json:
            write_json("environments", {"environments": rows})
        else:
            _show(list_text(rows), again=number > 0)
        return int(any(row.state in ("failed", "in part", "unknown") for row in rows))

    _end(look, watch=watch)


def status(
    environment: EnvironmentArgument,
    spent: Annotated[
        bool, typer.Option("--spent", help="Ask Cost Explorer for the month to date; AWS bills 0.01 USD.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option("--drift/--no-drift", help="Detect drift now, or only read what was found last."),
    ] = True,
    jobs: Annotated[
        bool, typer.Option("--jobs/--no-jobs", help="Ask the scheduler, on Slurm by a session.")
    ] = True,
    watch: WatchOption = False,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a deployed environment is: stacks, nodes, jobs, storage, faults, cost, changes by hand.

    Each line ends with the call that it comes from. A source that has not answered after 10 seconds is named,
    and the others still answer. Changes nothing; CloudFormation's detection of drift continues where it needs
    longer. Exit code 0 = every source answered, and nothing is wrong or was changed by hand, 1 = otherwise,
    or not deployed, 2 = the account cannot be asked, 130 = interrupted.
    """

    cluster = resolve(load_environment(environment))
    account = open_account(cluster.environment, profile)
    month: list[CostState] = []

    def look(number: int) -> int:
        with working("asking") as say:
            found = ask(
                account,
                cluster,
                jobs=(lambda: _job_states(account, cluster)) if jobs else None,
                detect=drift and number % DETECT_EVERY == 0,
                spent=spent and not month,
                progress=lambda step: say(f"asking {step}"),
            )
        new = [one for one in found.of(CostState) if one.per != "hour"]
        found.rows += [one for one in month if not new]
        month[:] = new or month  # AWS bills each question, and answers once a day
        if as_json:
            write_json("status", as_document(cluster, account, found))
        else:
            _show(status_text(cluster, account, found, spent=spent), again=number > 0)
        return int(not (found.quiet and found.found.deployed))

    _end(look, watch=watch)


def _end(look: Callable[[int], int], *, watch: bool, pause: Callable[[float], None] | None = None) -> None:
    """Look once, or again and again, and end with the code of the look."""
    number = 0
    try:
        while True:
            code = look(number)
            if not watch:
                raise typer.Exit(code)
            (pause or time.sleep)(EVERY)
            number += 1
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _show(text: str, *, again: bool) -> None:
    """A look, apart from the one before."""
    typer.echo(f"\n{text}" if again else text)


def _job_states(account: Account, cluster: Cluster) -> list[str]:
    """States of everybody's jobs, as far as whoever asks may see them."""

    with open_queue(account, cluster) as queue:
        return [job.state for job in queue.jobs(everyone=True)]


def _files() -> Iterator[Filed]:
    """The environment files of the project, or of the folder."""

    folder = (find_root() or Path()) / "environments"
    for file in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        try:
            found: Any = load(file).environment
        except InvalidEnvironmentError as error:
            first = error.findings[0].message
            why = f"is no environment ({first}): `ultracluster validate {file.stem}`"
            yield Filed(name=file.stem, file=str(file), cluster=None, why=why)
        else:
            yield Filed(name=found.name, file=str(file), cluster=resolve(found))
