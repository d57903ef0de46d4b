"""Every command has a row of habits, and what a row names is there."""

from __future__ import annotations

import inspect
import string
from typing import Any

import pytest
from command_tree import commands, option_names

from ultracluster.cli.commands import COMMANDS, MEMBERS
from ultracluster.cli.habits import HABITS

TREE: dict[str, Any] = dict(commands())


def test_every_command_has_a_row() -> None:
    assert HABITS.keys() == TREE.keys(), "a new command needs a row in cli/habits.py"


@pytest.mark.parametrize("name", sorted(HABITS))
def test_a_command_has_a_next_step_or_a_reason(name: str) -> None:
    habit = HABITS[name]

    assert bool(habit.next) != bool(habit.ends), "either a next step, or why there is none"


@pytest.mark.parametrize("name", sorted(name for name, habit in HABITS.items() if habit.next))
def test_next_steps_are_commands_that_exist(name: str) -> None:
    """With options that they have, made of what this command was given."""
    given = {one.name for one in TREE[name].params}
    for one in HABITS[name].next:
        words = one.step.split()
        count = next(number for number in (2, 1) if " ".join(words[:number]) in TREE)
        target = TREE[" ".join(words[:count])]
        fields = {field for _, field, _, _ in string.Formatter().parse(one.step) if field}
        assert fields <= given, f"{name} takes no {fields - given}"
        assert {*one.given, *one.unless} <= given
        assert {word for word in words if word.startswith("-")} <= option_names(target)
        arguments = [word for word in words[count:] if word.startswith("{")]
        assert len(arguments) <= sum(param.param_type_name == "argument" for param in target.params)
        if "AWS" in HABITS[" ".join(words[:count])].waits:
            assert "--profile" in option_names(target), "the same credentials go on"


def test_what_waits_for_aws_takes_a_profile() -> None:
    for name, habit in HABITS.items():
        assert ("AWS" in habit.waits) == ("--profile" in option_names(TREE[name])), name


def test_every_command_takes_the_common_options() -> None:
    for name, command in TREE.items():
        assert {"--quiet", "-q", "--no-pager"} <= option_names(command), name


def test_a_line_of_help_fits_into_80_columns() -> None:
    """Frame and name leave 56."""
    for name, row in COMMANDS.items():
        assert len(row.line) <= 56, name
        assert not row.line.endswith("."), name


def test_a_group_lists_its_commands_by_their_docstrings() -> None:
    """Without importing them: the first paragraph is a row, too."""
    first = {
        name: " ".join(inspect.cleandoc(command.help).split("\n\n")[0].split())
        for name, command in TREE.items()
        if " " in name
    }

    assert {name: line for name, (_, line) in MEMBERS.items()} == first


def test_panels_stand_together() -> None:
    panels = [row.panel for row in COMMANDS.values()]

    assert len(set(panels)) == sum(one != before for one, before in zip(panels, ["", *panels], strict=False))
