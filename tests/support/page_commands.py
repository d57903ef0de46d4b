"""The commands of `ultracluster` that a page shows, and why one of them cannot be typed."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import typer
from project import ROOT
from sybil import Document
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer
from typer.main import get_command

PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*(?:\.\.\.)?|\.\.\.|<.*|\"?\$\{?\w+\}?\"?")
"""`ENV`, `<name>`, `$file`: what a reader fills in."""
SHELLS = ("", "bash", "sh", "shell", "console")
FENCES = RawFencedCodeBlockLexer(re.compile(r"(?P<info>[^\n]*)\n"))
COMMAND = re.compile(r"(?:^|[$;&|(] ?|\bdo )ultracluster (?![A-Z@])([^|;&>#)]*)")
WRITES = re.compile(r"(?:--to|--write|--output|-o|>)[ =]*environments/([\w./-]+)\.yaml")
OF_THE_PARSER = {"--help", "--install-completion", "--show-completion"}


@dataclass(frozen=True)
class Command:
    """The words after `ultracluster`, and whether it is in prose, where its arguments may be left out."""

    words: tuple[str, ...]
    prose: bool = False

    def __str__(self) -> str:
        return " ".join(("ultracluster", *self.words))


def commands(text: str) -> Iterator[Command]:
    """In blocks for a shell and between backquotes, up to a pipe, a redirection, a comment or a bracket."""
    page = Document(text, "")
    fences = sorted(FENCES(page), key=lambda one: one.start)
    blocks = [
        (str(one.lexemes["source"]).replace("\\\n", " "), False)
        for one in fences
        if one.lexemes["info"].strip() in SHELLS
    ]
    for one in reversed(fences):
        text = text[: one.start] + text[one.end :]
    spans = [(one.replace("\n", " "), True) for one in re.findall(r"`([^`]*)`", text)]
    for block, prose in (*blocks, *spans):
        for line in block.splitlines():
            for found in re.findall(
                r"(?:^|[$;&|(] ?|\bdo )ultracluster (?![A-Z@])([^|;&>#)]*)", line.strip()
            ):
                yield Command(tuple(_words(found)), prose)


def environments_of(text: str) -> set[str]:
    """Names of the environments that a page shows or writes."""
    shown = re.findall(r"^# (?:environments/)?([\w-]+)\.yaml", text, re.MULTILINE)
    made = re.findall(r"ultracluster new ([\w-]+)", text)
    return {*shown, *WRITES.findall(text), *re.findall(r"--name ([\w-]+)", text), *(["dev"] if made else [])}


def fault(command: Command, named: Collection[str] = ()) -> str:
    """Why a command of a page cannot be typed; empty where it can.

    `named` are environments that the page itself makes.
    """
    found, rest = _main(), list(command.words)
    while rest and hasattr(found, "get_command") and not rest[0].startswith("-"):
        inner = found.get_command(typer.Context(found), rest[0])
        if inner is None:
            known = PLACEHOLDER.fullmatch(rest[0])
            return "" if known else f"{command}: there is no command {rest[0]!r} of {found.name}"
        found, rest = inner, rest[1:]
    rest = [word for word in rest if word not in OF_THE_PARSER]
    if command.prose and rest and rest[-1].startswith("-"):
        rest.append("...")  # the value that prose leaves out
    context = typer.Context(found)
    try:
        given, more, _ = found.make_parser(context).parse_args(args=list(rest))
    except typer.BadParameter as error:
        return f"{command}: {error}"
    except Exception as error:  # what typer's own parser refuses has no public name
        return "" if command.prose and "requires" in str(error) else f"{command}: {error}"
    more = [word for word in more if word != "..."]
    if more and not hasattr(found, "get_command"):
        return f"{command}: nothing takes {' '.join(more)}"
    return _missing(command, found, given) or _environment_fault(command, found, given, named)


def _missing(command: Command, found: Any, given: dict[str, Any]) -> str:
    if command.prose:
        return ""
    lacks = [one.name for one in found.params if one.required and given.get(one.name) in (None, ())]
    return f"{command}: {', '.join(lacks)} is missing" if lacks else ""


def _environment_fault(command: Command, found: Any, given: dict[str, Any], named: Collection[str]) -> str:
    for one in found.params:
        if one.param_type_name != "argument" or not one.name.startswith("environment"):
            continue
        value = given.get(one.name)
        for word in value if isinstance(value, tuple | list) else [value]:
            if word and not _there(str(word), named):
                return f"{command}: no environment {word}"
    return ""


def _there(word: str, named: Collection[str]) -> bool:
    if PLACEHOLDER.fullmatch(word) or word.removeprefix("environments/").removesuffix(".yaml") in named:
        return True
    if "*" in word:
        return any(ROOT.glob(word))
    return (ROOT / word).is_file() or (ROOT / "environments" / f"{word}.yaml").is_file()


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark that the end of the command has cut off
        return text.split()


@cache
def _main() -> Any:
    return get_command(importlib.import_module("ultracluster.cli.main").app)
