"""`ultracluster deploy` and `destroy`: the whole way of an environment into its account, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultracluster.account import retained_logs as kept
from ultracluster.account.aws import AWS_ERRORS, AccountError, explain
from ultracluster.account.delete_logs import delete_logs
from ultracluster.account.stack_outputs import stack_outputs
from ultracluster.account.stacks_at_work import stacks_at_work
from ultracluster.change import policy_openings
from ultracluster.change.changes import ChangeError
from ultracluster.change.comparison import of_account
from ultracluster.change.radius import blast_radius
from ultracluster.change.template_files import read_templates
from ultracluster.cli import accounts
from ultracluster.cli.environments import ProfileOption, confirm
from ultracluster.cli.projects import EnvironmentName, YesOption, assembled, opened
from ultracluster.cli.report import refuse
from ultracluster.cli.terminal import PART, hand_over, is_terminal, quiet, remark
from ultracluster.config.plain_text import one_line
from ultracluster.model import resolve
from ultracluster.model.orchestrators import ORCHESTRATOR_OUTPUT
from ultracluster.nodejs import NoNodeError, with_node
from ultracluster.project.cdk_command import cdk_command
from ultracluster.project.deploy_lock import only_one
from ultracluster.project.ledger import Intent, exclusive
from ultracluster.project.place import Located, ProjectError
from ultracluster.project.same_name import shared_name, twin_of

if TYPE_CHECKING:
    from ultracluster.account.aws import Account

NOBODY = "Cannot prompt: stdin is not a terminal."
MOST_AT_ONCE = 8
"""Stacks that are deployed side by side; those that wait for each other do so."""


def deploy(
    environment: EnvironmentName,
    yes: YesOption = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            "--accept-data-loss",
            metavar="STACK/LOGICAL_ID",
            help="The data of this resource may be lost, or lose a guard. Repeatable.",
            show_default=False,
        ),
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke/--no-smoke", help="End with a collective over two nodes of each group.")
    ] = True,
    stacks_only: Annotated[
        bool, typer.Option("--stacks-only", help="Only the stacks: no preflight, lock, diff and wait.")
    ] = False,
    keep_failed: Annotated[
        bool,
        typer.Option("--keep-failed", help="Keep what a failed stack has made; refused where AWS replaces."),
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Create or update an environment: preflight, release lock, diff, stacks, wait.

    A second deploy is refused while one is at work, here or by the states of the stacks. Each part is a
    command of its own, and the first that fails ends it with its exit code. What restarts or
    is replaced does not end it; lost data, or a guard of data that goes, does, unless it is accepted by name.
    Before the stacks it shows what changes in permissions and asks; without a terminal, pass --yes. The CDK's
    command is the project's (node_modules), that of the PATH, or fetched by npx in its pinned version.
    """
    here = opened(environment, deploys=True)
    if twin := twin_of(here):
        refuse(
            f"Nothing changed: {twin.file} is `{shared_name(twin, here.environment)}`, too, and both are the "
            "same stacks: the deploy "
            "of one deletes the cluster of the other. Give one of them another name."
        )
    with _alone(here, "deploy", profile) as account:
        _same_orchestrator(here, account)
        _no_retained_logs(here, account)
        _deploy_stacks(here, environment, yes, accept or [], stacks_only, keep_failed, profile)
    if not stacks_only:
        account = ["--profile", profile] if profile else []
        _part(here, ["wait", str(here.file), *([] if smoke else ["--no-smoke"]), *account])


def _deploy_stacks(
    here: Located,
    environment: str,
    yes: bool,
    accept: Sequence[str],
    stacks_only: bool,
    keep_failed: bool,
    profile: str | None,
) -> None:
    """Everything up to the wait."""
    name = str(here.file)
    account = ["--profile", profile] if profile else []
    accepted = [word for one in accept for word in ("--accept", one)]
    before: list[tuple[list[str], frozenset[int]]] = [
        (["preflight", name, "--bootstrap", *account], frozenset()),
        (["software", "lock", "--for", name, *account], frozenset()),
        (["diff", name, "--deployed", *accepted, *account], frozenset({1})),  # 1: jobs are disturbed
    ]
    if not stacks_only:
        for words, harmless in before:
            _part(here, words, harmless)
    out = here.root / "cdk.out"
    assembled(here, out)
    if keep_failed:
        _nothing_replaced(here, out, profile)
    cdk = _cdk(here, out, account)
    if not yes:
        cdk("diff", "--security-only")
        if not is_terminal(sys.stdin):
            refuse(f"{NOBODY} `ultracluster deploy {environment} --yes` deploys without a question.")
        confirm(f"Deploy {here.environment.name}?", yes=False)
    # the CDK asks nobody when it deploys several stacks at once: it stops instead
    stacks = ["deploy", "--all", "--concurrency", str(MOST_AT_ONCE), "--require-approval", "never"]
    guard = nullcontext() if stacks_only else _policies_opened(here, out, frozenset(accept), profile)
    with guard, _failed_kept(environment, keep_failed):
        cdk(*stacks, *(["--no-rollback"] if keep_failed else []))


def _nothing_replaced(here: Located, out: Path, profile: str | None) -> None:
    """Refuse --keep-failed where the update replaces a resource, before anything is changed.

    CloudFormation has no immutable updates without rollback (User Guide, "Choose how to handle failures when
    provisioning resources", 2026-10); the CDK would stop there in the middle, after other stacks.
    """
    try:
        found = of_account(here, accounts.open_account(here.environment, profile), read_templates(out))
    except (AccountError, ChangeError) as error:
        refuse(str(error))
    for why in found.unread:
        remark(one_line(f"not known, whether resources would be replaced: {why}"))
    changes = blast_radius(found.before, found.after)
    names = dict.fromkeys(one.resource for one in changes if one.replaces and (one.path or one.after))
    if names:
        refuse(
            f"Nothing changed: --keep-failed, and the update replaces {', '.join(names)}. CloudFormation "
            "replaces nothing while rollback is off. Deploy without --keep-failed."
        )


@contextmanager
def _failed_kept(environment: str, keep: bool) -> Generator[None]:
    """Say what can follow when stacks that failed are kept."""
    try:
        yield
    except typer.Exit:
        if keep:
            typer.echo(
                "What the failed stacks have made is kept, and costs money. Read why: `ultracluster doctor "
                f"{environment}`. To continue: `ultracluster deploy {environment} --keep-failed`. To roll "
                "back: `npx cdk rollback STACK` (a stack that was never complete is deleted by it).",
                err=True,
            )
        raise


def destroy(
    environment: EnvironmentName,
    yes: YesOption = False,
    delete_logs: Annotated[
        bool, typer.Option("--delete-logs", help="Also the retained log group of the EKS control plane.")
    ] = False,
    profile: ProfileOption = None,
) -> None:
    """Delete the stacks of an environment. What holds data is retained; `protect: true` refuses.

    Shows the account and asks first; without a terminal, pass --yes. The environment's ledger records it. A
    retained log group of an EKS control plane stops the next deploy of the same name: it is deleted where it
    is empty, or with --delete-logs.
    """
    here = opened(environment)
    if not yes and not is_terminal(sys.stdin):
        refuse(f"{NOBODY} `ultracluster destroy {environment} --yes` deletes without a question.")
    out = here.root / "cdk.out"
    with _alone(here, "destroy", profile) as account, _recorded(here, account) as begin:
        assembled(here, out)
        cdk = _cdk(here, out, ["--profile", profile] if profile else [])
        identity = account.identity()
        where = f"account {identity.account}, {account.region}"
        confirm(f"Delete the stacks of {here.environment.name} in {where}? What holds data is kept.", yes)
        begin()
        cdk("destroy", "--all", "--force")
        _end_of_logs(here, account, delete_logs)


def _end_of_logs(here: Located, account: Account, delete: bool) -> None:
    """Delete the log group of the control plane where that loses nothing or was asked for; else report it."""
    cluster = resolve(here.environment)
    if cluster.kubernetes is None:
        return
    name = kept.control_plane_group(cluster.cluster_name)
    try:
        found = kept.retained_logs(account, name)
        if found and (delete or found.empty):
            delete_logs(account, name)
            typer.echo(f"deleted the log group {found}", err=True)
        elif found:
            again = f"`ultracluster destroy {here.environment.asked_as} --delete-logs`"
            typer.echo(f"retained: the log group {found}, which stops the next deploy: {again}", err=True)
    except AccountError as error:
        typer.echo(one_line(f"not known, whether the log group {name} is retained: {error}"), err=True)


def _no_retained_logs(here: Located, account: Account) -> None:
    """Refuse a first deploy whose log group is there already, before anything is created."""
    cluster = resolve(here.environment)
    if cluster.kubernetes is None or not here.environment.makes_foundation:
        return
    stack = here.environment.stack_name("foundation")
    try:
        found = kept.retained_logs(account, kept.control_plane_group(cluster.cluster_name))
        blocked = found is not None and not kept.stack_exists(account, stack)
    except AccountError as error:  # CloudFormation itself refuses what exists
        typer.echo(one_line(f"not known, whether a log group is left from before: {error}"), err=True)
        return
    if blocked:
        refuse(
            f"Nothing changed: the log group {found} exists, and {stack} would stop at it. To delete it with "
            f"its logs: `ultracluster destroy {here.environment.asked_as} --delete-logs`. To keep it: "
            f"`cdk deploy {stack} --import-existing-resources`, then deploy again."
        )


@contextmanager
def _recorded(here: Located, account: Account) -> Generator[Callable[[], None]]:
    """Record the intent of a destroy when it begins, and the destroy in the ledger when it has ended."""
    name = here.environment.name
    settle = f"ultracluster destroy {here.environment.asked_as}"
    with exclusive(here.file, "destroy") as ledger:
        if ledger.intent and ledger.intent.action != "destroy":
            refuse(
                f"Nothing changed: {one_line(str(ledger.intent))} ended without an answer. Find out what "
                f"became of it first: {ledger.intent.settle}"
            )
        if ledger.intent:  # a destroy can be repeated: CloudFormation knows what is left
            remark(one_line(f"{ledger.intent} did not end; continuing with the stacks that are left"))
            ledger.withdraw()
        identity = account.identity().account
        intent = Intent(
            action="destroy", subject=name, settle=settle, account=identity, region=account.region,
            details={"stacks": here.environment.stack_names},
        )  # fmt: skip
        try:
            yield lambda: ledger.begin(intent)
        except typer.Exit:  # the CDK's command has said what is left
            ledger.withdraw()
            raise
        try:
            ledger.complete(name)
        except OSError as error:
            refuse(f"{name} is deleted, but {ledger.file} cannot be written: {error.strerror}", code=1)


@contextmanager
def _alone(here: Located, what: str, profile: str | None) -> Generator[Account]:
    """Refuse while another deploy is at work: on this machine, or by the states of the stacks anywhere."""
    try:
        with only_one(here.root, f"{what} of {here.environment.name}"):
            yield _none_at_work(here, profile)
    except ProjectError as error:
        refuse(str(error))


def _none_at_work(here: Located, profile: str | None) -> Account:
    """The account, in which no stack of the environment is being changed."""
    cluster = resolve(here.environment)
    names = [*here.environment.stack_names, *([cluster.cluster_name] if cluster.traits.own_stack else [])]
    account = accounts.open_account(here.environment, profile)
    try:
        found = stacks_at_work(account, names)
    except AccountError as error:  # CloudFormation itself refuses a stack that is at work
        typer.echo(one_line(f"not known, whether another deploy is at work: {error}"), err=True)
        return account
    if found:
        refuse(
            f"Nothing changed: {'; '.join(map(str, found))}. Another deploy is at work: wait until it ends "
            f"(`ultracluster doctor {here.environment.name}` shows what fails)."
        )
    return account


def _same_orchestrator(here: Located, account: Account) -> None:
    """Refuse where the stacks of this name are a cluster of another orchestrator, which would be deleted."""
    environment = here.environment
    name, kind = environment.stack_name("cluster"), environment.orchestrator.kind
    try:
        outputs = stack_outputs(account, [name]).get(name, {})
    except AccountError as error:
        typer.echo(one_line(f"the orchestrator of {name} is not known: {error}"), err=True)
        return
    if (deployed := outputs.get(ORCHESTRATOR_OUTPUT, kind)) != kind:
        refuse(
            f"Nothing changed: {name} is a cluster of {one_line(deployed)}, and {here.file.name} has {kind}: "
            f"the deploy would delete it. Give the environment another name, or run "
            f"`ultracluster destroy` with the file of {one_line(deployed)} first."
        )


@contextmanager
def _policies_opened(
    here: Located, out: Path, accepted: frozenset[str], profile: str | None
) -> Generator[None]:
    """Stack policies refuse what loses data; inside they are open for what was accepted."""
    account = accounts.open_account(here.environment, profile)
    try:
        needed, notes = policy_openings.openings(here, account, out, accepted)
    except (AccountError, ChangeError) as error:
        refuse(str(error))
    for note in notes:
        remark(note)
    for stack, opening in needed.items():
        names = ", ".join(sorted(opening.going))
        typer.echo(f"the policy of {stack} lets go, until the stacks are deployed: {names}", err=True)
    try:
        with policy_openings.opened(account, needed):
            yield
    except policy_openings.NotClosedError as error:
        refuse(str(error))
    except AWS_ERRORS as error:
        refuse(f"a stack policy could not be opened: {explain(error)}")


def _part(here: Located, words: Sequence[str], harmless: frozenset[int] = frozenset()) -> None:
    """Run one of our commands; ends with its exit code unless that is 0 or harmless."""
    remark(f"-- ultracluster {' '.join(words)}")
    command = [sys.executable, "-m", "ultracluster", *words, *(["--quiet"] if quiet() else [])]
    environment = {**os.environ, PART: "1"}
    hand_over()
    done = subprocess.run(command, cwd=here.root, env=environment, check=False)  # noqa: S603
    status = done.returncode
    if status and status not in harmless:
        raise typer.Exit(status)


def _cdk(here: Located, out: Path, account: Sequence[str]) -> Callable[..., None]:
    """Runs the CDK's command on what was synthesised; ends with its exit code unless that is 0."""
    try:
        environment = with_node(os.environ)
        command = cdk_command(here.root, environment)
    except (NoNodeError, ProjectError) as error:
        refuse(str(error))

    def run(*words: str) -> None:
        line = [*command, words[0], "--app", str(out), *words[1:], *account]
        remark(f"-- cdk {' '.join(words)}")
        hand_over()
        done = subprocess.run(line, cwd=here.root, env=environment, check=False)  # noqa: S603
        if done.returncode:
            raise typer.Exit(done.returncode)

    return run
