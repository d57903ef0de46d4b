"""From an environment file to an `Environment`, or to everything that is wrong with its shape."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ultracluster.config.advice import meant, wrong_key, wrong_value
from ultracluster.config.base import DISCRIMINATORS, FROM_FILE
from ultracluster.config.environment import RELEASE_FORM, Environment
from ultracluster.config.findings import Finding, InvalidEnvironmentError, YamlPath, dotted
from ultracluster.config.hints import REFUSED_KEYS, may_be_left_out, owners, required
from ultracluster.config.remedy import Change, apply, ask, drop, rename, write
from ultracluster.config.source import Source, read
from ultracluster.scripts_folder import add_own_release


@dataclass(frozen=True, slots=True)
class Loaded:
    """An environment and the places in its file(s), which rules need to report."""

    environment: Environment
    source: Source


class ShapeError(InvalidEnvironmentError):
    """The shape of an environment is wrong; the file itself could be read."""

    def __init__(self, findings: Iterable[Finding], source: Source) -> None:
        super().__init__(findings)
        self.source = source

    def rest(self) -> tuple[Loaded, tuple[YamlPath, ...]] | None:
        """The environment with each wrong part corrected or left out, and the places of these parts.

        So that what is wrong elsewhere is found in the same run. None where too little is left.
        """
        data: Any = self.source.data
        places: list[YamlPath] = []
        findings: Sequence[Finding] = self.findings
        for _ in range(_ROUNDS):
            for finding in findings:
                data = _without(data, finding)
                # an unknown role leaves nothing of its group to judge
                guessed = finding.path[-1:] == ("role",) and not finding.remedy.options
                places.append(finding.path[:-1] if guessed else finding.path)
            try:
                rest = Environment.model_validate(data, context=FROM_FILE).at(Path(self.source.file))
                return Loaded(rest, self.source), tuple(places)
            except ValidationError as error:
                trial = replace(self.source, data=data)
                findings = [_finding(trial, detail) for detail in error.errors(include_url=False)]
        return None


_ROUNDS = 6
_STAND_INS: dict[str, Any] = {"role": "compute", "count": 1, "instance_type": "unknown.unknown"}
"""For a group whose own is missing or cannot be read; rules say nothing of an unknown type."""


def _without(data: Any, finding: Finding) -> Any:
    """The data with the finding fixed as far as it can be, for the sake of the rest only."""
    path = finding.path
    if not path:
        return data
    in_group = len(path) == 3 and path[0] == "node_groups"
    if in_group and path[-1] in _STAND_INS and not finding.remedy.options:
        return apply(data, (Change(path, _STAND_INS[str(path[-1])]),))
    if finding.remedy.options:
        return apply(data, finding.remedy.options[0])
    if finding.code == "CFG006" or (len(path) > 1 and path[-1] not in _keys_there(data, path[:-1])):
        path = path[:-1]  # what lacks a key goes as a whole
    if not path:
        return data
    return apply(data, (Change(path),))


def _there(data: Any, path: YamlPath) -> Any:
    for part in path:
        if isinstance(data, dict):
            data = cast("dict[Any, Any]", data).get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(cast("list[Any]", data)):
            data = cast("list[Any]", data)[part]
        else:
            return None
    return data


def _keys_there(data: Any, path: YamlPath) -> Any:
    found = _there(data, path)
    return range(len(cast("list[Any]", found))) if isinstance(found, list) else found or ()


def load(path: Path | str) -> Loaded:
    """Read, merge and check the shape of an environment file.

    Raises:
        InvalidEnvironmentError: with one finding for each thing that is wrong.
    """
    source = read(Path(path))
    _own_release(source)
    _own_files(source)
    found = parse(source)
    return Loaded(found.environment.at(Path(path)), found.source)


def _own_release(source: Source) -> None:
    """A release that is named by its path, from then on by its name.

    Raises:
        InvalidEnvironmentError: there is no such file, or its name is another release's.
    """
    place: YamlPath = ("software", "release")
    named = _there(source.data, place)
    if not isinstance(named, str) or ("/" not in named and not named.endswith((".lock", ".yaml", ".yml"))):
        return
    location = source.locate(place)
    try:
        name = add_own_release(Path(location.file).parent / named)
    except OSError as error:
        finding = Finding(
            code="CFG008",
            severity="error",
            path=place,
            message=f"{error.args[-1]}.",
            remedy=ask("fact", "the path of a lock file, from the folder of this file"),
            location=location,
        )
        raise InvalidEnvironmentError([finding]) from None
    if not re.match(RELEASE_FORM, name):
        finding = Finding(
            code="CFG008",
            severity="error",
            path=place,
            message=f"`{named}` is not named like a release.",
            remedy=ask("action", "rename it to <word>-2026.11.lock, and give its `release` the same name"),
            location=location,
        )
        raise InvalidEnvironmentError([finding])
    source.data = apply(source.data, (Change(place, name),))


def _own_files(source: Source) -> None:
    """Paths that a file in another folder names, as the environment file itself would name them."""
    home = Path(source.file).parent
    steps = _there(source.data, ("lifecycle_steps",))
    count = len(cast("list[Any]", steps)) if isinstance(steps, list) else 0
    for place in (("prices",), *(("lifecycle_steps", number) for number in range(count))):
        named, folder = _there(source.data, place), Path(source.locate(place).file).parent
        if isinstance(named, str) and folder != home:
            moved = os.path.relpath(folder / named, home)
            source.data = apply(source.data, (Change(place, Path(moved).as_posix()),))


def parse(source: Source) -> Loaded:
    """Check the shape of data that was read.

    Raises:
        InvalidEnvironmentError: with one finding for each thing that is wrong.
    """
    try:
        return Loaded(Environment.model_validate(source.data, context=FROM_FILE), source)
    except ValidationError as error:
        details = error.errors(include_url=False)
        findings = [_finding(source, detail) for detail in details]
        raise ShapeError(findings, source) from None


def _finding(source: Source, error: ErrorDetails) -> Finding:
    path = _yaml_path(source.data, error["loc"])
    kind = error["type"]
    if error["input"] is None and path and kind not in ("missing", "extra_forbidden") and path[-1] != "[key]":
        return _blank(source, path)
    if kind == "extra_forbidden":
        return _unknown_key(source, path)
    if kind == "missing":
        name = str(error["loc"][-1])
        return Finding(
            code="CFG006",
            severity="error",
            path=(*path[:-1], name),
            location=source.locate(path[:-1], key=True),
            message=f"`{name}` is missing{_inside(path[:-1])}.",
            remedy=ask("decision", _example((*path[:-1], name), source.data)),
        )
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _choice(source, path, error)
    is_key = path[-1:] == ("[key]",)
    if is_key:
        path = path[:-1]
        message, remedy = wrong_key(path, error)
    else:
        message, remedy = wrong_value(source, path, error)
    return Finding(
        code="CFG005",
        severity="error",
        path=path,
        message=message,
        remedy=remedy.placed(path),
        location=source.locate(path, key=is_key),
    )


def _yaml_path(data: Any, loc: tuple[str | int, ...]) -> YamlPath:
    """Pydantic's location without the names of union members, which are not in the file."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        if isinstance(data, dict) and part in data:
            path.append(part)
            data = cast("dict[str | int, Any]", data)[part]
        elif isinstance(data, list) and isinstance(part, int):
            path.append(part)
            data = cast("list[Any]", data)[part]
        elif index == len(loc) - 1 and isinstance(data, dict):
            path.append(part)  # a key that is missing, or "[key]"
    return tuple(path)


def _blank(source: Source, path: YamlPath) -> Finding:
    """A key with nothing after it: where it stands, and what belongs there."""
    name, fields = path[-1], owners(path, source.data)
    needed = required(path)
    message = f"`{name}` has no value{_inside(path[:-1])}."
    if needed:
        words = f"{name}: with {', '.join(needed)} below it"
    elif path[-1] in DISCRIMINATORS:
        words = f"{name}: {' | '.join(owners(path[:-1], source.data).tags)}"
    elif fields.tags:
        words = f"{name}: {{{fields.tag}: {' | '.join(fields.tags)}, ...}}"
    else:
        words = _example(path, source.data)
    remedy = drop().noting(f"or {words}") if may_be_left_out(path) else ask("decision", words)
    return Finding(
        code="CFG006",
        severity="error",
        path=path,
        location=source.locate(path, key=True),
        message=message,
        remedy=remedy.placed(path),
    )


def _unknown_key(source: Source, path: YamlPath) -> Finding:
    name = str(path[-1])
    fields = owners(path[:-1], source.data)
    there = _keys_there(source.data, path[:-1])
    if reason := REFUSED_KEYS.get(name):
        message, remedy = f"`{name}` is not offered: {reason}", drop()
    elif variants := fields.elsewhere.get(name):
        message = (
            f"`{name}` does not belong to `{fields.tag}: {fields.chosen}`; "
            f"it belongs to {', '.join(variants)}."
        )
        remedy = drop().noting(f"or choose {fields.tag}: {variants[0]}")
    else:
        message = f"there is no `{name}`{_inside(path[:-1])}."
        free = [one for one in fields.here if one not in there]
        near = difflib.get_close_matches(name, free, n=1, cutoff=0.6)
        remedy = rename(near[0]) if near else drop().noting(f"the keys are {', '.join(fields.here)}")
    return Finding(
        code="CFG004",
        severity="error",
        path=path,
        message=message,
        remedy=remedy.placed(path),
        location=source.locate(path, key=True),
    )


def _choice(source: Source, path: YamlPath, error: ErrorDetails) -> Finding:
    context = error.get("ctx", {})
    tag = str(context["discriminator"]).strip("'")
    fields = owners(path, source.data)
    allowed = fields.tags
    if error["type"] == "union_tag_not_found":
        return Finding(
            code="CFG006",
            severity="error",
            path=(*path, tag),
            location=source.locate(path, key=True),
            message=f"`{tag}` is missing{_inside(path)}.",
            remedy=ask("decision", f"{tag}: {' | '.join(allowed)}"),
        )
    if _there(source.data, (*path, tag)) is None:
        return _blank(source, (*path, tag))
    given = str(context["tag"])
    near = meant(str(tag), given, allowed)
    return Finding(
        code="CFG005",
        severity="error",
        path=(*path, tag),
        location=source.locate((*path, tag)),
        message=f"`{given}` is none of {', '.join(allowed)}.",
        remedy=(write(near) if near else ask("decision", f"{tag}: {' | '.join(allowed)}")).placed(
            (*path, tag)
        ),
    )


def _inside(path: YamlPath) -> str:
    return f" in `{dotted(path)}`" if path else " at the top of the file"


def _example(path: YamlPath, data: Any) -> str:
    if path[-1] == "instance_type" and _there(data, (*path[:-1], "role")) in (
        "controller",
        "login",
        "system",
    ):
        return "instance_type: m5.2xlarge"  # these need no accelerator
    fields = owners(path[:-1], None)
    return fields.examples.get(str(path[-1]), f"{path[-1]}: ...")


def shape_of_part(place: YamlPath, data: Any, error: ValidationError) -> list[Finding]:
    """What is wrong with the shape of a part that was not read from a file, with paths from that part.

    Args:
        place: where a file has such a part, e.g. `("storage", "lustre")`; known keys are looked up there.
        data: the part.
        error: what its model says of it.
    """
    whole = data
    for key in reversed(place):
        whole = {key: whole}
    source = Source("", data=whole)
    found: list[Finding] = []
    for detail in error.errors(include_url=False):
        detail["loc"] = (*place, *detail["loc"])
        one = _finding(source, detail)
        options = tuple(
            tuple(replace(change, path=change.path[len(place) :]) for change in option)
            for option in one.remedy.options
        )
        found.append(
            replace(
                one,
                path=one.path[len(place) :],
                message=one.message.replace(_inside(place), ""),
                remedy=replace(one.remedy, options=options),
                location=None,
            )
        )
    return found
