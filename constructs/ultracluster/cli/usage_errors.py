"""What is wrong with a command line, in the words of other refusals: what, and the nearest that works."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from ultracluster.cli.renamed import OPTIONS, TRIED, now_called
from ultracluster.config.plain_text import one_line

_NOT_ONE_OF = re.compile(r"(?:Value error, )?'(?P<value>.*)' is not one of (?P<choices>'.*')\.?", re.DOTALL)
_TOO_MANY = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)\.?", re.DOTALL)
_FRAME = re.compile(r"^(?:Value error, |Input should be )")
PROGRAM = "ultracluster"
_NEAR = 0.65
"""How much of a name is the same where one is mistaken for the other; without the dashes that all have."""


def is_help(error: typer.TyperException) -> bool:
    """Whether nothing is wrong: a group without a command has shown its help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def worded(error: typer.TyperException) -> str:
    """The error in one line."""
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        return no_option(getattr(error, "ctx", None), str(option))
    said = error.message
    if option := getattr(error, "option_name", None):
        return one_line(f"{option}: a value is missing" if "requires an" in said else said)
    if found := _TOO_MANY.fullmatch(said):
        return one_line(f"too many arguments: {found['words']}")
    place = _place(error)
    if found := _NOT_ONE_OF.fullmatch(said):
        return _no_choice(place, found["value"], re.findall(r"'([^']*)'", found["choices"]))
    if hasattr(error, "param_type"):
        what = "argument" if place and not place.startswith("-") else "option"
        return one_line(f"the {what} {place} is missing{f': {said}' if said else ''}")
    said = _FRAME.sub(lambda found: "it should be " if found[0].startswith("Input") else "", said)
    return one_line(f"{place}: {said}" if place else f"{said[:1].lower()}{said[1:]}")


def no_command(context: typer.Context, args: Sequence[str], tree: Sequence[str]) -> str:
    """There is no such command.

    Args:
        args: what was typed, from the unknown word on.
        tree: the words of every command, as `nodes list`.
    """
    name = args[0]
    if line := now_called([*words_of(context), *args]):
        former = " ".join([*words_of(context), *args])
        return one_line(f"`{PROGRAM} {former}` has a new name: {PROGRAM} {line}")
    if not words_of(context) and name in TRIED:
        rest = " ".join(args[1:]) if len(TRIED[name]) == 1 else ""
        return one_line(f"there is no command `{name}`: {' or '.join(TRIED[name])} {rest}".rstrip())
    before = f"{' '.join(words_of(context))} ".lstrip()
    here = [one.removeprefix(before) for one in tree if one.startswith(before)]
    first = list(dict.fromkeys(one.split()[0] for one in here))
    near = difflib.get_close_matches(name, first, n=1)
    elsewhere = [one for one in tree if one.split()[-1] == name]
    if (
        not near and before and len(elsewhere) != 1
    ):  # of several others none is meant more than those of the group
        near = here if len(here) <= 3 else []
    elif not near:  # what a group has, without the group's name
        near = elsewhere
        near = near or [one for one in tree if difflib.get_close_matches(name, one.split()[1:], n=1)]
        before = ""
    asked = one_line(f"{' '.join(words_of(context))} {name}".strip())
    help_of = " ".join([PROGRAM, *words_of(context), "--help"])
    instead = " or ".join(f"{before}{one}" for one in near[:3]) or f"`{help_of}` lists them"
    return f"there is no command `{asked}`: {instead}"


def no_option(context: Any, name: str) -> str:
    """A command has no such option."""
    words = " ".join([PROGRAM, *words_of(context)])
    written = _options(context.command) if context else []
    own = {one.removeprefix("--"): one for one in written if one.startswith("--")}
    alike = [one for one in OPTIONS.get(name, ()) if one in written][:1]
    near = alike or [
        own[one] for one in difflib.get_close_matches(name.removeprefix("--"), own, cutoff=_NEAR)
    ]
    if not alike and (others := _elsewhere(context, name)):
        return one_line(f"`{words}` has no option {name}: use it with {' or '.join(others)}")
    instead = " or ".join(sorted(near)) or f"`{words} --help` lists them"
    return one_line(f"`{words}` has no option {name}: {instead}")


def _elsewhere(context: Any, name: str) -> list[str]:
    """Commands of the same group that have the option; none where so many do that none is meant."""
    group = context.parent if context else None
    if group is None or group.parent is None:  # commands without a group have little in common
        return []
    found = [one for one in group.command.list_commands(group) if name in _options_of(group, one)]
    return [" ".join([*words_of(group), one]) for one in found] if len(found) <= 3 else []


def _options_of(group: Any, name: str) -> Iterable[str]:
    try:
        command = group.command.get_command(group, name)
    except ModuleNotFoundError:  # packages of a command that is not the one called
        return ()
    return _options(command) if command and not command.hidden else ()


def _options(command: Any) -> list[str]:
    """As they are written, those that the help shows."""
    return [
        written
        for one in command.params
        if one.param_type_name == "option" and not getattr(one, "hidden", False)
        for written in (*one.opts, *one.secondary_opts)
    ]


def usage(error: typer.TyperException) -> str:
    """How the command is to be called; empty where nobody knows which."""
    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    pieces = context.command.collect_usage_pieces(context)
    words = " ".join([PROGRAM, *words_of(context)])
    return f"usage: {' '.join([words, *pieces])}; `{words} --help` says more"


def words_of(context: Any) -> list[str]:
    """The words of a command after the program's name."""
    return list(_words(context))


def _words(context: Any) -> Iterator[str]:
    if context is not None and context.parent is not None:
        yield from _words(context.parent)
        yield str(context.info_name)


def _place(error: typer.TyperException) -> str:
    """The option or argument that is meant, as it is written."""
    hint: Any = getattr(error, "param_hint", None)
    parameter: Any = getattr(error, "param", None)
    if hint is None and parameter is not None:
        if parameter.param_type_name == "option":
            return max(parameter.opts, key=len)
        return str(parameter.metavar or parameter.name).strip("{}[].").upper()
    return hint if isinstance(hint, str) else " / ".join(hint or ())


def _no_choice(place: str, value: str, choices: list[str]) -> str:
    near = difflib.get_close_matches(value, choices, n=1)
    rest = ", ".join(choices)
    instead = f"{near[0]}; there is {rest}" if near and choices[1:] else rest
    return one_line(f"{place} {value}: write {instead}" if near else f"{place} {value}: write one of {rest}")
