"""Writes docs/commands-reference.md: every command with its arguments, options, exit codes and examples.

Run by `make generate`; a test fails when the page is stale. The commands are those of the parser, the codes
those of docs/exit-codes.md, the examples those of command_examples.yaml beside this file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer
from ruamel.yaml import YAML

from ultracluster.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "ultracluster"
EXAMPLES = Path(__file__).with_name("command_examples.yaml")
HEAD = """# Reference of the commands

<!-- Written by `make generate` from the parser, docs/exit-codes.md and tools/command_examples.yaml. -->

Every command of `ultracluster`, as `--help` explains it. [Commands by task](commands.md) says which one you
need, [exit codes](exit-codes.md) what a pipeline can rely on, [JSON](json.md) what `--json` prints. An
environment is a file, or the name of one in `environments/`. `ultracluster --install-completion` completes
commands, options and names in your shell; `ultracluster --version` prints the version.
"""


def page() -> str:
    """The page as Markdown."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, command in commands():
        groups.setdefault(name.partition(" ")[0] if " " in name else "", []).append((name, command))
    plain = groups.pop("", [])
    rows = {name: [(name, command)] for name, command in plain} | groups
    parts = [HEAD, "| command | |\n|---|---|"]
    for _, inside in sorted(rows.items()):
        parts += [
            f"| [`{name}`](#{PROGRAM}-{name.replace(' ', '-')}) | {_prose(_first(command))} |"
            for name, command in inside
        ]
    for _, inside in sorted(rows.items()):
        for name, command in inside:
            parts.append("\n".join(_entry(name, command)))
    return "\n".join(parts).rstrip() + "\n"


def commands(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that is no group, by its words; hidden ones are left out."""
    group = group or typer.main.get_command(app)
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        if hasattr(command, "list_commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


@cache
def examples() -> dict[str, list[str]]:
    """Lines by command, each with the program's name."""
    rows = YAML(typ="safe").load(EXAMPLES)
    return {command: [f"{PROGRAM} {line}" for line in lines] for command, lines in rows.items()}


@cache
def _codes() -> dict[str, tuple[str, str]]:
    """What 1 and 3 mean, by command."""
    text = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z -]+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)
    return {name: (one, three) for name, one, three in rows}


def _entry(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=f"{PROGRAM} {name}")
    yield f"\n## {PROGRAM} {name}\n"
    for paragraph in re.split(r"\n\s*\n", _without_codes(command.help or "")):
        yield f"{_prose(paragraph)}\n"
    if lines := examples().get(name):
        yield "```sh\n" + "\n".join(lines) + "\n```\n"
    # help for the whole program, and completion, are the same for every command
    rows = [one.get_help_record(context) for one in command.params if not getattr(one, "hidden", False)]
    if rows:
        yield "| argument or option | |\n|---|---|"
        for written, words in filter(None, rows):
            yield f"| `{_cell(written)}` | {_prose(words)} |"
        yield ""
    one, three = _codes().get(name, ("-", "-"))
    told = ["0 done", f"1 {one}", "2 refused", f"3 {three}"]
    yield f"Exit codes: {'; '.join(row for row in told if row[2:] != '-')}."


def _without_codes(text: str) -> str:
    """What is said before the exit codes, which stand in a line of their own."""
    before, _, after = text.partition("Exit code")
    rest = after.partition("\n\n")[2]
    return "\n\n".join(part.strip() for part in (before, rest) if part.strip()) or text


def _first(command: Any) -> str:
    return (command.help or "").split("\n\n")[0].partition("Exit code")[0]


def _prose(text: str) -> str:
    """Words of the parser on one line, in which nothing but backquotes is a mark."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    plain = [one if one.startswith("`") else re.sub(r"([\\<>*])", r"\\\1", one) for one in parts]
    return _cell("".join(plain))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
