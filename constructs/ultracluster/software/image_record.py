"""From what a node says of its image (lifecycle_scripts/image/record.sh) to a record of the catalogue."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from ultracluster.catalog.images import Fact, Family, Image, UnknownImageError, fields, image
from ultracluster.scripts_folder import scripts_folder
from ultracluster.software.contradictions import contradictions
from ultracluster.software.fit import in_matrix

SOURCE = "node"
"""Key of the catalogue's sources under which values of nodes stand."""


_VERSION = re.compile(r"\d[A-Za-z0-9.+~:-]*")
_OTHER = ("nvidia_driver_kind", "login_user", "cuda_all")


class RecordError(ValueError):
    """The node's answer, or what was said of the image, makes no record; the text says why and what does."""


class Answer(BaseModel):
    """What the script prints."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: Literal[1] = Field(alias="schema")
    asked: date
    os: str = Field(pattern=r"^[a-z]+[0-9][0-9.]*$")
    arch: Literal["x86_64", "arm64"]
    installed: str = ""
    """Steps that have installed something on the node: it shows more than the image."""
    notes: Mapping[str, StrictStr] = {}
    facts: Mapping[str, StrictStr | StrictBool | None]
    """By field: a version, True (there, version unknown), False (not there), None (could not be asked)."""


def script() -> str:
    """The script that a node runs; it needs no other file."""
    return (scripts_folder() / "image" / "record.sh").read_text(encoding="utf-8")


def read_answer(text: str) -> Answer:
    """The last answer in a text, which may hold a login's greeting or be the log of an image build.

    Raises:
        RecordError: there is none, it is broken, it names unknown fields, or it contradicts itself.
    """
    start = text.rfind('{"schema":')
    if start < 0:
        raise RecordError(
            "there is no record in it: it has to hold what the script printed, which begins with "
            '{"schema": (ultracluster software record --script)'
        )
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
        answer = Answer.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RecordError(f"the record is not what the script prints: {where}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"the record is cut off or broken: {error}") from error
    _check_fields(answer)
    if not any(answer.facts.get(name) for name in ("kernel", "python")):
        raise RecordError("the record tells neither kernel nor python: it is not of a node")
    return answer


def record(
    answer: Answer,
    *,
    image_id: str,
    family: str,
    release: str,
    day: str = "",
    kubernetes: str = "",
    name: str = "",
) -> dict[str, Any]:
    """The record, as `catalog/images.json` has it.

    What the node could not tell stays as the catalogue has it, where it knows the image, else unknown.

    Args:
        answer: of a node that runs the image.
        image_id: id of the record; one that the catalogue has is brought up to date.
        family: family of the image.
        release: its maker's number of it.
        day: its date; by default the one at the end of `release`.
        kubernetes: Kubernetes release, of EKS images.
        name: name of the AMI, or the parameter that gives its id.

    Raises:
        RecordError: an argument is not what the catalogue takes.
    """
    if family not in get_args(Family):
        raise RecordError(f"family {family!r} is unknown: write one of {', '.join(get_args(Family))}")
    if not re.fullmatch(r"[a-z0-9][A-Za-z0-9._-]*", image_id):
        raise RecordError(f"id {image_id!r} has to be letters, digits, dots, dashes and underscores")
    if family.startswith(("eks", "hyperpod-eks")) and not re.fullmatch(r"1\.\d\d", kubernetes):
        raise RecordError(f"an image of family {family} is for one Kubernetes release: add --kubernetes 1.34")
    if not (its_day := _day(day, release)):
        raise RecordError(f"{day or release!r} does not end in a date: add --date 2026-11-17")
    catalogued = _catalogued(image_id)
    if catalogued and (catalogued.os, catalogued.arch) != (answer.os, answer.arch):
        raise RecordError(
            f"{image_id} is for {catalogued.os} on {catalogued.arch}, and the node has "
            f"{answer.os} on {answer.arch}: which image does it run?"
        )
    row: dict[str, Any] = {
        "id": image_id,
        "family": family,
        "release": release,
        "date": its_day,
        "os": answer.os,
        "arch": answer.arch,
    }
    row |= {"kubernetes": kubernetes} if kubernetes else {}
    row |= {"name": name} if name else {}
    row["values"] = {field: _cell(answer, field, catalogued) for field in fields()}
    if wrong := contradictions(_image(row)):
        raise RecordError(f"the record contradicts itself: {'; '.join(wrong)}")
    return row


def text(row: Mapping[str, Any]) -> str:
    """A record as it stands in the file: one line for what it is, and one for each value."""
    head = ", ".join(f"{json.dumps(key)}: {json.dumps(row[key])}" for key in row if key != "values")
    values = ",\n".join(f"    {json.dumps(key)}: {json.dumps(cell)}" for key, cell in row["values"].items())
    return f'{{{head},\n  "values": {{\n{values}\n  }}}}\n'


def _cell(answer: Answer, field: str, catalogued: Image | None) -> list[Any] | None:
    value, today = answer.facts.get(field), answer.asked.isoformat()
    if value is not None:
        note = answer.notes.get(field, "")
        if isinstance(value, str) and field not in _OTHER and not _VERSION.fullmatch(value):
            value, note = True, value  # it is there; what it says is no version that can be compared
        return [value, "confirmed", SOURCE, today, *([note] if note else [])]
    if field == "lustre_kernel_in_matrix" and (fits := _in_matrix(answer)) is not None:
        return [fits, "inferred", "derived", today]
    fact = catalogued.fact(field) if catalogued else None
    if fact is None:
        return None
    return [fact.value, fact.mark, fact.source, fact.as_of, *([fact.note] if fact.note else [])]


def _in_matrix(answer: Answer) -> bool | None:
    kernel = answer.facts.get("kernel")
    return in_matrix(answer.os, kernel) if isinstance(kernel, str) else None


def _image(row: Mapping[str, Any]) -> Image:
    values = {field: Fact(*cell) if cell else None for field, cell in row["values"].items()}
    rest: dict[str, Any] = {"kubernetes": None, "name": "", "advisories": (), "notes": ""}
    rest |= row
    rest["values"] = values
    return Image(**rest)


def _catalogued(image_id: str) -> Image | None:
    try:
        return image(image_id)
    except UnknownImageError:
        return None


def _day(day: str, release: str) -> str:
    match = re.search(r"(20\d\d)-?(\d\d)-?(\d\d)$", day or release)
    try:
        return date(*map(int, match.groups())).isoformat() if match else ""
    except ValueError:
        return ""


def _check_fields(answer: Answer) -> None:
    for name in answer.facts:
        if name not in fields():
            near = difflib.get_close_matches(name, fields(), n=1)
            raise RecordError(
                f"the catalogue has no field {name!r}{f', the nearest is {near[0]}' if near else ''}: "
                "was it written by another version of the script?"
            )
