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

from ultracluster.cli import progress, terminal
from ultracluster.cli.habits import HABITS, Habit
from ultracluster.cli.json_output import forget_json, write_error
from ultracluster.cli.output import discard, seen_output
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
    found: str = ""
    """What it is in its module: a group of commands, or one function. The module of this package is called
    like the command; another name of a module stands before a dot."""


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
    "rules": Row(WRITE, "List the rules, or explain some in full"),
    "schema": Row(WRITE, "JSON Schemas of files and of --json"),
    "export": Row(WRITE, "Files for other tools, made from an environment", "export"),
    "capacity": Row(DEPLOY, "Search and buy capacity", "app"),
    "permissions": Row(DEPLOY, "Print the IAM actions that the commands need", "permissions"),
    "preflight": Row(DEPLOY, "Ask the account for everything that a deploy needs", "preflight"),
    "synth": Row(DEPLOY, "Write the CloudFormation templates", "synth"),
    "deploy": Row(DEPLOY, "The whole way: preflight, lock, diff, stacks, wait", "deploy"),
    "wait": Row(DEPLOY, "Wait until every node is ready", "wait"),
    "apply": Row(DEPLOY, "Bring users, teams or boards up to date, undeployed", "apply"),
    "destroy": Row(DEPLOY, "Delete the stacks; data is retained", "deploy.destroy"),
    "job": Row(JOBS, "Submit, list, read, end and explain jobs", "app"),
    "serve": Row(JOBS, "Print a model server for Kubernetes", "serve"),
    "connect": Row(JOBS, "Open a shell on a node", "connect"),
    "users": Row(JOBS, "People's accounts on the nodes, and their tokens", "users"),
    "doctor": Row(CALL, "Say what is wrong with a deployed environment", "doctor"),
    "nodes": Row(CALL, "List, reboot, replace or delete nodes", "app"),
    "acceptance": Row(CALL, "Measure a fabric, and judge it", "acceptance"),
    "software": Row(SOFTWARE, "Releases and images: show, lock, mirror, bake, update", "app"),
}
"""In the order of the help. Those without a place in a module are in `main`."""


class Commands(TyperGroup):
    """A group that finds those commands in their modules, and that says with --json what is wrong with a
    command line as JSON, too."""

    _json = False
    _listing = False

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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        _check_command(self, ctx, args)
        return super().resolve_command(ctx, args)

    @contextmanager
    def _refusals(self) -> Generator[None]:
        from ultracluster.cli import usage_errors

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
            from ultracluster.account.aws import explain

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

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

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

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=row.line, rich_help_panel=row.panel)
        if not row.found:
            return with_habits(super().get_command(ctx, cmd_name), cmd_name)
        return _loaded(cmd_name, row.found)


@cache
def _loaded(cmd_name: str, place: str) -> Any:
    """A command or group of another module. Its options are read once, however often a process runs it."""
    module, _, name = place.rpartition(".")
    found: typer.Typer | Callable[..., None] = getattr(
        import_module(f"ultracluster.cli.{module or cmd_name}"), name
    )
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name)(found)
        found = alone
    else:
        found.info.cls = Group
    command = typer.main.get_command(found)
    command.name = cmd_name
    return with_habits(command, cmd_name)


_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


class Group(TyperGroup):
    """A group of commands of the second level."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        _check_command(self, ctx, args)
        return super().resolve_command(ctx, args)


def with_habits(command: Any, words: str) -> Any:
    """A command, and those of a group, with the options that all have and what happens around each.

    Args:
        words: that call it, as `nodes list`.
    """
    if any(one.name == "no_pager" for one in command.params):
        return command
    command.params += common_params()
    _flags_without_a_type(command)
    if not hasattr(command, "list_commands"):
        if words in HABITS and HABITS[words].changes:
            command.params.append(_option(terminal.account_option, "account"))
        command.invoke = partial(_run, words, command.invoke)
        return command
    for name, one in command.commands.items():
        with_habits(one, f"{words} {name}")
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
    from ultracluster.cli.next_steps import tell
    from ultracluster.cli.paging import paged

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
    from ultracluster.cli.usage_errors import no_command

    context.fail(no_command(context, args, tuple(HABITS)))
