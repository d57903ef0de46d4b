"""Commands that are loaded when they are asked for, so that no command waits for the others' imports.

And what happens around each of them: the options that all have, progress, pages, and the next step.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from ultracluster.cli import progress, terminal, usage_errors
from ultracluster.cli.habits import HABITS, Habit
from ultracluster.cli.json_output import forget_json, write_error
from ultracluster.cli.next_steps import tell
from ultracluster.cli.output import discard, seen_output
from ultracluster.cli.paging import paged
from ultracluster.cli.renamed import RENAMED
from ultracluster.config.plain_text import one_line

WRITE, DEPLOY, JOBS, CALL, SOFTWARE = (
    "Write environments",
    "Deploy environments",
    "Run jobs",
    "On call",
    "Package software",
)
"""Panels of `ultracluster --help`, in their order."""
EVERY = "Every command"
"""Panel of the options that all have."""


@dataclass(frozen=True, slots=True)
class Row:
    """One command, or group of commands, of the first level."""

    panel: str
    line: str
    """What it does, in one line of `ultracluster --help`."""
    place: str = ""
    """Its function: the module of this package is called like the command, or stands before a dot. Empty for
    a group of commands."""


COMMANDS = {
    "init": Row(WRITE, "Draft an environment file", "init"),
    "new": Row(WRITE, "Make a repository for your own environments", "new"),
    "import": Row(WRITE, "Make an environment of another tool's file", "import_.import_environment"),
    "choose": Row(WRITE, "Rank the orchestrators for what you need", "choose"),
    "validate": Row(WRITE, "Check environment files: shape and rules", "validate"),
    "plan": Row(WRITE, "Show what an environment is made of", "plan"),
    "cost": Row(WRITE, "Estimate what it costs", "cost"),
    "diff": Row(WRITE, "Show the blast radius of a change", "diff"),
    "move": Row(WRITE, "Plan a move to another zone, Region or capacity", "move"),
    "rules": Row(WRITE, "List the rules, or explain some in full", "rules"),
    "schema": Row(WRITE, "JSON Schemas of files and of --json", "schema"),
    "export": Row(WRITE, "Files for other tools, made from an environment", "export"),
    "capacity": Row(DEPLOY, "Search and buy capacity"),
    "permissions": Row(DEPLOY, "Print the IAM actions that the commands need", "permissions"),
    "preflight": Row(DEPLOY, "Ask the account for everything that a deploy needs", "preflight"),
    "synth": Row(DEPLOY, "Write the CloudFormation templates", "synth"),
    "deploy": Row(DEPLOY, "The whole way: preflight, lock, diff, stacks, wait", "deploy"),
    "wait": Row(DEPLOY, "Wait until every node is ready", "wait"),
    "apply": Row(DEPLOY, "Bring users, teams or boards up to date, undeployed", "apply"),
    "destroy": Row(DEPLOY, "Delete the stacks; data is retained", "deploy.destroy"),
    "job": Row(JOBS, "Submit, list, read, end and explain jobs"),
    "serve": Row(JOBS, "Print a model server for Kubernetes", "serve"),
    "connect": Row(JOBS, "Open a shell on a node", "connect"),
    "users": Row(JOBS, "People's accounts on the nodes, and their tokens", "users"),
    "list": Row(CALL, "List environments beside what the account has", "status.list_environments"),
    "status": Row(CALL, "Show how a deployed environment is, on one screen", "status"),
    "doctor": Row(CALL, "Say what is wrong with a deployed environment", "doctor"),
    "nodes": Row(CALL, "List, reboot, replace or delete nodes"),
    "acceptance": Row(CALL, "Measure a fabric, and judge it", "acceptance"),
    "software": Row(SOFTWARE, "Releases and images: show, lock, mirror, bake, update"),
}
"""In the order of the help."""
GROUPS = {
    "capacity": "Capacity that AWS has on offer: search and buy.",
    "job": "Jobs for the scheduler of an environment.",
    "nodes": (
        "List, reboot, replace or delete nodes of a deployed cluster. Exit code 0 = done or nothing to do, "
        "1 = refused or failed for a node, 2 = AWS cannot be asked or not confirmed, 3 = still under way."
    ),
    "software": "Releases that nodes are brought to, and machine images: show, lock, mirror, bake, update.",
}
"""Help of each group."""
MEMBERS = {
    "capacity buy": (
        "capacity_buy.buy",
        "Buy a training plan or Capacity Block for a group, and write its id into the environment file.",
    ),
    "capacity search": (
        "capacity_search.search",
        "List training plans and Capacity Blocks by price of an instance-hour. Buys nothing.",
    ),
    "job submit": (
        "job_queue.submit",
        "Submit a job as yourself: a file, or with --nodes what `job write` prints.",
    ),
    "job write": (
        "job_write.write",
        "Print a job that starts on all its nodes at once: for `job submit ENV -`, kubectl or `sbatch`.",
    ),
    "job list": (
        "job_queue.list_jobs",
        "List your jobs: pending, running, or ended lately. Exit code 2 if the scheduler cannot be asked.",
    ),
    "job logs": ("job_queue.logs", "Print what a job printed."),
    "job cancel": ("job_queue.cancel", "End jobs, after a question that shows them."),
    "job shell": (
        "job_shell.shell",
        "A shell on nodes of your own for a while; they are given back when the shell ends.",
    ),
    "job why": (
        "job_placement.why",
        (
            "Show how many switches a job spans on each layer of the network, and how few it could. Changes "
            "nothing."
        ),
    ),
    "nodes list": (
        "nodes.list_",
        "List every node, also those that HyperPod still waits for. Changes no node.",
    ),
    "nodes reboot": (
        "nodes.reboot",
        "Reboot nodes; disks stay as they are, lifecycle scripts do not run again.",
    ),
    "nodes replace": (
        "nodes.replace",
        "Replace nodes by new instances; everything on their own disks is lost.",
    ),
    "nodes delete": (
        "nodes.delete",
        "Delete nodes and lower their group's target; the next deploy goes by the file's `count` again.",
    ),
    "nodes health-check": (
        "nodes.health_check",
        "Start HyperPod's deep health checks: about two hours in which the nodes take no jobs.",
    ),
    "nodes add": (
        "nodes.add",
        "Add nodes to a group with continuous provisioning, or restore a group.",
    ),
    "software show": (
        "software.show",
        "Show releases and machine images: versions, origin, integrity and source of what each brings.",
    ),
    "software lock": (
        "release_lock.lock",
        "Download each open file, check its signature, and write size and SHA-256 into the lock file.",
    ),
    "software mirror": (
        "release_mirror.mirror",
        (
            "Copy the files and packages of a release to S3, verified; run it again to resume after an "
            "interruption."
        ),
    ),
    "software recipe": (
        "image_recipe.recipe",
        "Print an EC2 Image Builder component or a Packer file that bakes a release into an image.",
    ),
    "software record": (
        "image_record.record",
        "Print a record of the image catalogue from what one node reports.",
    ),
    "software update": (
        "software_update.update",
        "Update one group after the other: controller, login, compute. Wipes root volumes.",
    ),
}
"""Commands of the groups, in the order of their help: the function in its module, and the first paragraph of
its docstring, so that a list of commands loads none."""


class Group(TyperGroup):
    """A group whose commands are imported when they are called: a list of them imports none."""

    words = ""
    """Words that call the group; empty for the whole program."""
    _listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        _check_command(self, ctx, args)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        if not self.words:
            return list(COMMANDS)
        return [words.split()[1] for words in MEMBERS if words.split()[0] == self.words]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        words = f"{self.words} {cmd_name}".lstrip()
        if words not in (MEMBERS if self.words else COMMANDS):
            return None
        if self._listing:
            row = COMMANDS.get(words)
            panel, line = (row.panel, row.line) if row else (None, MEMBERS[words][1])
            return TyperCommand(cmd_name, help=line, rich_help_panel=panel)
        try:
            return _loaded(words)
        except ModuleNotFoundError:
            if ctx.resilient_parsing:  # completion of a command whose packages are not installed
                return None
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _flags_without_a_type(self)  # the shell's completion came later
        with self._lines_only():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._lines_only():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _lines_only(self) -> Generator[None]:
        """A list of the commands loads none of them."""
        self._listing = True
        try:
            yield
        finally:
            self._listing = False


class Commands(Group):
    """The whole program: with --json a refusal of a command line is JSON, too."""

    _json = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.params += common_params()
        _flags_without_a_type(self)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        forget_json()
        self._json = "--json" in (sys.argv[1:] if args is None else args)
        with terminal.asked(), seen_output(), progress.shown():
            return super().main(args, *rest, **settings)

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with self._refusals():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with self._refusals():
            return super().invoke(ctx)

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
            sys.stdout.flush()
        except typer.TyperException as error:
            if usage_errors.is_help(error):
                raise
            text = usage_errors.worded(error)
            sys.stdout.flush()
            typer.echo(text, err=True)
            if "--help" not in text and (line := usage_errors.usage(error)):
                terminal.remark(line)
            if self._json:
                write_error(text, code=error.exit_code)
            raise typer.Exit(error.exit_code) from None
        except typer.Abort:
            self._refuse("Aborted: no answer came.", 1)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("", "ultracluster") or package in sys.stdlib_module_names:
                raise
            self._refuse(
                f"This command requires the Python package {package}, which is not installed. "
                "Run `make setup` in a checkout, or `pip install` the wheel with its dependencies.",
                2,
            )
        except OSError as error:
            self._refuse_system(error)
        except Exception as error:
            if not type(error).__module__.startswith("botocore."):  # the SDK is imported by few commands
                raise
            from ultracluster.account.aws import explain  # 0.3 s: the SDK, which is there by now

            self._refuse(explain(error), 2)

    def _refuse_system(self, error: OSError) -> NoReturn:
        """For what the system refused, and no command expected."""
        if error.errno == errno.ENAMETOOLONG:
            name = Path(str(error.filename)).name[:60]
            self._refuse(one_line(f"{name}...: no file can have a name of this length"), 2)
        if error.errno in _OUTPUT_FAILS and error.filename is None:
            discard(sys.stdout)
            typer.echo(f"standard output cannot be written: {error.strerror}", err=True)
            raise SystemExit(2) from None
        if isinstance(error, FileNotFoundError) and error.filename is None:
            self._refuse("the folder that you are in no longer exists: change to another one", 2)
        raise error

    def _refuse(self, text: str, code: int) -> NoReturn:
        sys.stdout.flush()
        typer.echo(text, err=True)
        if self._json:
            write_error(text, code=code)
        raise typer.Exit(code) from None


@cache
def _loaded(words: str) -> Any:
    """A command, or a group. Its options are read once, however often a process runs it."""
    name = words.split()[-1]
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if words in GROUPS:
        alone = typer.Typer(cls=Group, add_completion=False, no_args_is_help=True, help=GROUPS[words])
        alone.callback()(_nothing)
    else:
        place = MEMBERS[words][0] if words in MEMBERS else COMMANDS[words].place
        module, _, function = place.rpartition(".")
        alone.command(name)(getattr(import_module(f"ultracluster.cli.{module or name}"), function))
    command: Any = typer.main.get_command(alone)
    command.name = name
    if words in GROUPS:
        command.words = words
    return with_habits(command, words)


def _nothing() -> None:
    pass


_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def with_habits(command: Any, words: str) -> Any:
    """A command with the options that all have and what happens around it.

    Args:
        words: that call it, as `nodes list`.
    """
    command.params += common_params()
    _flags_without_a_type(command)
    if not hasattr(command, "list_commands"):
        if words in HABITS and HABITS[words].changes:
            command.params.append(_option(terminal.account_option, "account"))
        command.invoke = partial(_run, words, command.invoke)
    return command


def _flags_without_a_type(command: Any) -> None:
    """Help shows `--yes`, not `--yes <bool>`: a flag takes no value."""
    for one in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(one, "is_flag", False):
            one.metavar = ""


@cache
def common_params() -> tuple[Any, ...]:
    """The options that every command takes, before its words or after them."""
    found = [_option(terminal.common_options, name) for name in ("quiet", "no_pager")]
    for one in found:
        one.rich_help_panel = EVERY
    return tuple(found)


@cache
def _option(function: Callable[..., None], name: str) -> Any:
    """An option as Typer makes it of a function's argument."""
    alone = typer.Typer(add_completion=False)
    alone.command()(function)
    return next(one for one in typer.main.get_command(alone).params if one.name == name)


def _run(words: str, run: Callable[[Any], Any], context: Any) -> Any:
    habit = HABITS.get(words)
    given = context.params
    if habit and habit.changes and not terminal.is_part() and _changes(habit, given):
        terminal.Wishes.changes = words
    ended: typer.Exit | None = None
    answer: Any = None
    with paged(habit is not None and habit.pages and not given.get("as_json")):
        try:
            answer = run(context)
        except typer.Exit as early:
            ended = early
    tell(words, given, ended.exit_code if ended else 0)
    if ended:
        raise ended
    return answer


def _changes(habit: Habit, given: Mapping[str, Any]) -> bool:
    flags = habit.changes_with
    return not given.get("dry_run") and (not flags or any(given.get(flag) for flag in flags))


def _check_command(group: TyperGroup, context: Any, args: list[str]) -> None:
    name = args[0]
    if context.resilient_parsing or name.startswith("-"):
        return
    if name in group.list_commands(context) and " ".join(args[:2]) not in RENAMED:
        return
    context.fail(usage_errors.no_command(context, args, tuple(HABITS)))
