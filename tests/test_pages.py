"""Commands on pages of wishes: each is there, with its options, and so is its environment."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click import Context
from project import ROOT
from typer.main import get_command

PAGES = sorted((ROOT / "docs" / "wishes").glob("*.md"))
MAIN: Any = get_command(importlib.import_module("ultracluster.cli.main").app)
PLACEHOLDER = re.compile(r"[A-Z]+|\.\.\.")


def commands(text: str) -> Iterator[list[str]]:
    """In blocks and between backquotes, up to a pipe, a redirection or a bracket."""
    blocks = re.findall(r"```(?:bash|shell|console)\n(.*?)```", text, re.DOTALL)
    spans = re.findall(r"`(ultracluster [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for block in (*blocks, *spans):
        for line in block.replace("\\\n", " ").splitlines():
            for found in re.findall(r"ultracluster [^|>#)]*", line):
                yield shlex.split(found.replace("\n", " "))[1:]


def resolved(words: list[str]) -> tuple[Any, list[str]]:
    command, rest = MAIN, list(words)
    while rest and hasattr(command, "get_command") and not rest[0].startswith("-"):
        found = command.get_command(Context(command), rest[0])
        assert found, f"there is no command {rest[0]!r} of {command.name}"
        command, rest = found, rest[1:]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_page_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"# environments/(\w+)\.yaml", text))
    for words in commands(text):
        command, rest = resolved(words)
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert given <= options, f"{' '.join(words)}: no {given - options}"
        takes = any(one.name == "environment" for one in command.params)
        if (
            takes
            and rest
            and not rest[0].startswith("-")
            and not PLACEHOLDER.fullmatch(rest[0])
            and rest[0] not in named
        ):
            assert (ROOT / rest[0]).is_file(), f"{' '.join(words)}: no environment {rest[0]}"
