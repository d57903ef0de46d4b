"""`ultracluster deploy` and `destroy`: the whole way of an environment into its account, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ultracluster.cli.environments import ProfileOption, confirm
from ultracluster.cli.projects import EnvironmentName, YesOption, assembled, opened
from ultracluster.cli.report import refuse
from ultracluster.project.place import Located, ProjectError

NOBODY = "Cannot prompt: stdin is not a terminal."
MOST_AT_ONCE = 8
"""Stacks that are deployed side by side; those that wait for each other do so."""


def deploy(
    environment: EnvironmentName,
    yes: YesOption = False,
    accept_data_loss: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STACK/LOGICAL_ID",
            help="This resource may lose its data. Repeatable.",
            show_default=False,
        ),
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke/--no-smoke", help="End with a collective over two nodes of each group.")
    ] = True,
    stacks_only: Annotated[
        bool, typer.Option("--stacks-only", help="Only the stacks: no preflight, lock, diff and wait.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Create or update an environment: preflight, release lock, diff, stacks, wait.

    Each part is a command of its own, and the first that fails ends it with its exit code. What restarts or
    is replaced does not end it; lost data does, unless it is accepted by name. Before the stacks it shows
    what changes in permissions and asks; without a terminal, pass --yes. The CDK's command is the project's
    (node_modules), that of the PATH, or fetched by npx in its pinned version.
    """
    here = opened(environment, deploys=True)
    name = str(here.file)
    account = ["--profile", profile] if profile else []
    accepted = [word for one in accept_data_loss or [] for word in ("--accept-data-loss", one)]
    before: list[tuple[list[str], frozenset[int]]] = [
        (["preflight", name, "--bootstrap", *account], frozenset()),
        (["release", "lock", "--for", name, *account], frozenset()),
        (["diff", name, "--deployed", *accepted, *account], frozenset({1})),  # 1: jobs are disturbed
    ]
    if not stacks_only:
        for words, harmless in before:
            _part(here, words, harmless)
    out = here.root / "cdk.out"
    assembled(here, out)
    cdk = _cdk(here, out, account)
    if not yes:
        cdk("diff", "--security-only")
        if not sys.stdin.isatty():
            refuse(f"{NOBODY} `ultracluster deploy {environment} --yes` deploys without a question.")
        confirm(f"Deploy {here.environment.name}?", yes=False)
    # the CDK asks nobody when it deploys several stacks at once: it stops instead
    cdk("deploy", "--all", "--concurrency", str(MOST_AT_ONCE), "--require-approval", "never")
    if not stacks_only:
        _part(here, ["wait", name, *([] if smoke else ["--no-smoke"]), *account])


def destroy(environment: EnvironmentName, yes: YesOption = False, profile: ProfileOption = None) -> None:
    """Delete the stacks of an environment. What holds data is retained; `protect: true` refuses.

    The CDK's command asks first; without a terminal, pass --yes.
    """
    here = opened(environment)
    if not yes and not sys.stdin.isatty():
        refuse(f"{NOBODY} `ultracluster destroy {environment} --yes` deletes without a question.")
    out = here.root / "cdk.out"
    assembled(here, out)
    cdk = _cdk(here, out, ["--profile", profile] if profile else [])
    cdk("destroy", "--all", *(["--force"] if yes else []))


def _part(here: Located, words: Sequence[str], harmless: frozenset[int] = frozenset()) -> None:
    """Run one of our commands; ends with its exit code unless that is 0 or harmless."""
    import subprocess

    typer.echo(f"-- ultracluster {' '.join(words)}", err=True)
    command = [sys.executable, "-m", "ultracluster", *words]
    status = subprocess.run(command, cwd=here.root, check=False).returncode  # noqa: S603
    if status and status not in harmless:
        raise typer.Exit(status)


def _cdk(here: Located, out: Path, account: Sequence[str]) -> Callable[..., None]:
    """Runs the CDK's command on what was synthesised; ends with its exit code unless that is 0."""
    import os
    import subprocess

    from ultracluster.nodejs import NoNodeError, with_node
    from ultracluster.project.cdk_command import cdk_command

    try:
        environment = with_node(os.environ)
        command = cdk_command(here.root, environment)
    except (NoNodeError, ProjectError) as error:
        refuse(str(error))

    def run(*words: str) -> None:
        line = [*command, words[0], "--app", str(out), *words[1:], *account]
        typer.echo(f"-- cdk {' '.join(words)}", err=True)
        done = subprocess.run(line, cwd=here.root, env=environment, check=False)  # noqa: S603
        if done.returncode:
            raise typer.Exit(done.returncode)

    return run
