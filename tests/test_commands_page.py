"""docs/commands-reference.md has every command of the parser, and its examples can be typed."""

from __future__ import annotations

import shlex

import pytest
from command_tree import commands
from page_commands import Command, fault
from project import ROOT

from tools import commands_page

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "commands-reference.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert commands_page.page() == PAGE, "run `make generate`"


@pytest.mark.parametrize("name", sorted(name for name, command in commands() if not command.hidden))
def test_a_command_has_its_place_and_its_options(name: str) -> None:
    entry = PAGE.partition(f"\n## ultracluster {name}\n")[2].partition("\n## ")[0]
    options = {
        option
        for one in dict(commands())[name].params
        if one.param_type_name == "option" and not one.hidden
        for option in one.opts
    }

    assert entry.rstrip().splitlines()[-1].startswith("Exit codes: 0 done")
    assert [option for option in options if option not in entry] == []


def test_every_command_has_an_example() -> None:
    names = {name for name, command in commands() if not command.hidden}

    assert names ^ commands_page.examples().keys() == set(), "a line in tools/command_examples.yaml"


@pytest.mark.parametrize("name", sorted(commands_page.examples()))
def test_examples_can_be_typed(name: str) -> None:
    for line in commands_page.examples()[name]:
        words = shlex.split(line)
        assert line.startswith(f"ultracluster {name}")
        assert not fault(Command(tuple(words[1:])))
