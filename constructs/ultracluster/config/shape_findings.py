"""What pydantic refuses of a file, as findings: what is wrong, where, and what belongs there."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ultracluster.config.advice import meant, wrong_key, wrong_value
from ultracluster.config.base import DISCRIMINATORS, is_number_token, is_token
from ultracluster.config.findings import Finding, YamlPath, dotted
from ultracluster.config.hints import REFUSED_KEYS, may_be_left_out, owners, place_of, required
from ultracluster.config.remedy import ask, drop, rename, write
from ultracluster.config.source import Source


def value_at(data: Any, path: YamlPath) -> Any:
    """What stands at a path of the data; None where nothing does."""
    for part in path:
        if isinstance(data, dict):
            data = cast("dict[Any, Any]", data).get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(cast("list[Any]", data)):
            data = cast("list[Any]", data)[part]
        else:
            return None
    return data


def keys_there(data: Any, path: YamlPath) -> Any:
    """Keys of a mapping, or places in a list, at a path of the data."""
    found = value_at(data, path)
    return range(len(cast("list[Any]", found))) if isinstance(found, list) else found or ()


def finding_of(source: Source, error: ErrorDetails) -> Finding:
    """One of pydantic's errors as a finding with its place in the file, and what fixes it."""
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


def _of_token(source: Source, error: ErrorDetails) -> Finding | None:
    """Finding of a value that is known only after deploy, where it decides what is made."""
    if not is_token(error["input"]) and not is_number_token(error["input"]):
        return None
    path = _yaml_path(source.data, error["loc"])
    return Finding(
        code="CFG005",
        severity="error",
        path=path,
        message="it must be known at synth, and is a token, whose value is known only at deploy.",
        remedy=ask("decision", "the value itself, for instance from the app's context"),
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
    there = keys_there(source.data, path[:-1])
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
    if value_at(source.data, (*path, tag)) is None:
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
    if path[-1] == "instance_type" and value_at(data, (*path[:-1], "role")) in (
        "controller",
        "login",
        "system",
    ):
        return "instance_type: m5.2xlarge"  # these need no accelerator
    fields = owners(path[:-1], None)
    return fields.examples.get(str(path[-1]), f"{path[-1]}: ...")


def refusal_of(
    model: type[BaseModel], data: dict[str, Any], error: ValidationError, *, name: str = ""
) -> str:
    """Say in lines why a model, or whoever was given its fields, cannot be made of what was given.

    Args:
        model: what was to be made.
        data: what was given.
        error: what pydantic says.
        name: of what was given the data; of the model by default.
    """
    # a class has said its kind
    tags = {tag: model.model_fields[tag].default for tag in DISCRIMINATORS if tag in model.model_fields}
    found = shape_of_part(place_of(model), {**tags, **data}, error)
    return "\n".join(f"{name or model.__name__}: {finding.sentence}" for finding in found)


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
        finding = _of_token(source, detail) or finding_of(source, detail)
        options = tuple(
            tuple(replace(change, path=change.path[len(place) :]) for change in option)
            for option in finding.remedy.options
        )
        found.append(
            replace(
                finding,
                path=finding.path[len(place) :],
                message=finding.message.replace(_inside(place), ""),
                remedy=replace(finding.remedy, options=options),
                location=None,
            )
        )
    return found
