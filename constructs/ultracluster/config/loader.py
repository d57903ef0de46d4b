"""From an environment file to an `Environment`, or to everything that is wrong with its shape."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ultracluster.config.base import FROM_FILE
from ultracluster.config.environment import RELEASE_FORM, Environment
from ultracluster.config.findings import Finding, InvalidEnvironmentError, YamlPath
from ultracluster.config.remedy import Change, apply, ask
from ultracluster.config.shape_findings import finding_of, keys_there, value_at
from ultracluster.config.source import MOST_FINDINGS, Source, more_findings, read
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
        if len(self.findings) > _MOST_PARTS:
            return None
        data: Any = self.source.data
        places: list[YamlPath] = []
        findings: Sequence[Finding] = self.findings
        for _ in range(_ROUNDS):
            for finding in sorted(findings, key=_from_the_end):
                data = _without(data, finding)
                # an unknown role leaves nothing of its group to judge
                guessed = finding.path[-1:] == ("role",) and not finding.remedy.options
                places.append(finding.path[:-1] if guessed else finding.path)
            try:
                rest = Environment.model_validate(data, context=FROM_FILE).at(Path(self.source.file))
                return Loaded(rest, self.source), tuple(places)
            except ValidationError as error:
                trial = replace(self.source, data=data)
                findings = _findings(trial, error)
                if len(findings) > _MOST_PARTS:
                    return None
        return None


def _from_the_end(finding: Finding) -> tuple[int, ...]:
    """Of a list the last part first: what is taken away moves those behind it."""
    return tuple(-part if isinstance(part, int) else 1 for part in finding.path)


_ROUNDS = 6
_MOST_PARTS = 30
"""Wrong parts with which it is worth looking for what else is wrong."""
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
    if finding.code == "CFG006" or (len(path) > 1 and path[-1] not in keys_there(data, path[:-1])):
        path = path[:-1]  # what lacks a key goes as a whole
    if not path:
        return data
    return apply(data, (Change(path),))


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
    named = value_at(source.data, place)
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
    if not re.fullmatch(RELEASE_FORM, name):
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
    steps = value_at(source.data, ("lifecycle_steps",))
    count = len(cast("list[Any]", steps)) if isinstance(steps, list) else 0
    for place in (("prices",), *(("lifecycle_steps", number) for number in range(count))):
        named, folder = value_at(source.data, place), Path(source.locate(place).file).parent
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
        raise ShapeError(_findings(source, error), source) from None


def _findings(source: Source, error: ValidationError) -> list[Finding]:
    """What pydantic refuses, at most as much of it as somebody reads."""
    details = error.errors(include_url=False)
    findings = [finding_of(source, detail) for detail in details[:MOST_FINDINGS]]
    return [*findings, more_findings(findings[-1].location)] if details[MOST_FINDINGS:] else findings
