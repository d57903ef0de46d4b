"""From an environment file to an `Environment`, or to everything that is wrong with its shape."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ultracluster.config.environment import Environment
from ultracluster.config.findings import Finding, InvalidEnvironmentError, Path, dotted
from ultracluster.config.hints import REFUSED_KEYS, in_unit_of, owners
from ultracluster.config.source import Source, read


@dataclass(frozen=True, slots=True)
class Loaded:
    """An environment and the places in its file(s), which rules need to report."""

    environment: Environment
    source: Source


def load(path: FilePath | str) -> Loaded:
    """Read, merge and check the shape of an environment file.

    Raises:
        InvalidEnvironmentError: with one finding for each thing that is wrong.
    """
    found = parse(read(FilePath(path)))
    return Loaded(found.environment.at(FilePath(path)), found.source)


def parse(source: Source) -> Loaded:
    """Check the shape of data that was read.

    Raises:
        InvalidEnvironmentError: with one finding for each thing that is wrong.
    """
    try:
        return Loaded(Environment.model_validate(source.data), source)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise InvalidEnvironmentError(_finding(source, detail) for detail in details) from None


def _finding(source: Source, error: ErrorDetails) -> Finding:
    path = _yaml_path(source.data, error["loc"])
    kind = error["type"]
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
            instead=_example(path),
        )
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _choice(source, path, error)
    message, instead = _wrong_value(source, path, error)
    is_key = path[-1:] == ("[key]",)
    if is_key:
        path = path[:-1]
        message, instead = _wrong_key(path, error)
    return Finding(
        code="CFG005",
        severity="error",
        path=path,
        message=message,
        instead=instead,
        location=source.locate(path, key=is_key),
    )


def _yaml_path(data: Any, loc: tuple[str | int, ...]) -> Path:
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


def _unknown_key(source: Source, path: Path) -> Finding:
    name = str(path[-1])
    known = owners(path[:-1], source.data)
    instead = ""
    if reason := REFUSED_KEYS.get(name):
        message = f"`{name}` is not offered: {reason}"
    elif variants := known.elsewhere.get(name):
        message = (
            f"`{name}` does not belong to `{known.tag}: {known.chosen}`; it belongs to {', '.join(variants)}."
        )
        instead = f"remove `{name}`, or choose {known.tag}: {variants[0]}"
    else:
        message = f"there is no `{name}`{_inside(path[:-1])}."
        near = difflib.get_close_matches(name, known.here, n=1, cutoff=0.6)
        instead = near[0] if near else f"one of {', '.join(known.here)}"
    return Finding(
        code="CFG004",
        severity="error",
        path=path,
        message=message,
        instead=instead,
        location=source.locate(path, key=True),
    )


def _choice(source: Source, path: Path, error: ErrorDetails) -> Finding:
    context = error.get("ctx", {})
    tag = str(context["discriminator"]).strip("'")
    known = owners(path, source.data)
    allowed = known.tags
    if error["type"] == "union_tag_not_found":
        return Finding(
            code="CFG006",
            severity="error",
            path=(*path, tag),
            location=source.locate(path, key=True),
            message=f"`{tag}` is missing{_inside(path)}.",
            instead=f"{tag}: {' | '.join(allowed)}",
        )
    given = str(context["tag"])
    near = difflib.get_close_matches(given, allowed, n=1, cutoff=0.4)
    return Finding(
        code="CFG005",
        severity="error",
        path=(*path, tag),
        location=source.locate((*path, tag)),
        message=f"`{given}` is none of {', '.join(allowed)}.",
        instead=f"{tag}: {near[0]}" if near else "",
    )


def _wrong_value(source: Source, path: Path, error: ErrorDetails) -> tuple[str, str]:
    value = error["input"]
    context = error.get("ctx", {})
    shown = source.raw(path) or repr(value)
    name = str(path[-1]) if path else ""
    match error["type"]:
        case "string_type" if isinstance(value, int | float):
            return f"a text is needed, and YAML reads {shown} as a number.", f'"{shown}"'
        case "int_type" | "int_from_float" | "float_type" if isinstance(value, str):
            return f"a number is needed, not the text {value!r}.", in_unit_of(name, value)
        case "int_type" | "int_from_float":
            return f"a whole number is needed, not {shown}.", str(round(value)) if isinstance(
                value, float
            ) else ""
        case "bool_type":
            return f"true or false is needed, not {shown}.", "true or false"
        case "literal_error":
            allowed = re.findall(r"'([^']*)'|(\d+)", str(context["expected"]))
            options = [text or number for text, number in allowed]
            near = difflib.get_close_matches(str(value), options, n=1, cutoff=0.4)
            if not near and isinstance(value, int | float):
                near = sorted((o for o in options if o.isdigit()), key=lambda o: abs(int(o) - value))[:1]
            quoted = any(text and text[0].isdigit() for text, _ in allowed)
            instead = (f'"{near[0]}"' if quoted else near[0]) if near else ""
            return f"{shown} is none of {', '.join(options)}.", instead
        case "string_pattern_mismatch":
            return f"`{shown}` does not have the form {context['pattern']}.", _reshaped(
                shown, context["pattern"]
            )
        case "value_error":
            return f"`{shown}` is {context['error']}.", ""
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            limit = next(context[key] for key in ("ge", "le", "gt", "lt") if key in context)
            step = {"greater_than": 1, "less_than": -1}.get(error["type"], 0)
            return f"{shown} is out of range: {error['msg'].lower()}.", str(limit + step)
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"keys and values are needed here, not {shown}.", ""
        case "tuple_type":
            return f"a list is needed here, not {shown}.", f"[{shown}]"
        case _:
            text = error["msg"]
            return f"{shown}: {text[0].lower()}{text[1:]}.", ""


def _wrong_key(path: Path, error: ErrorDetails) -> tuple[str, str]:
    name, pattern = str(path[-1]), error.get("ctx", {}).get("pattern", "")
    if pattern:
        return f"the name `{name}` does not have the form {pattern}.", _reshaped(name, pattern)
    return f"the name `{name}`: {error['msg'].lower()}.", ""


def _reshaped(text: str, pattern: str) -> str:
    """The nearest text of the wanted form that a few ordinary mistakes lead to."""
    plain = text.strip().removeprefix("ml.")
    if plain.startswith("ami-"):
        return "ami-0123456789abcdef0"  # no parameter is meant
    for candidate in (
        plain,
        plain.lower(),
        re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-"),
        f"/{plain}",
    ):
        if re.fullmatch(pattern.removeprefix("^").removesuffix("$"), candidate):
            return candidate
    return ""


def _inside(path: Path) -> str:
    return f" in `{dotted(path)}`" if path else " at the top of the file"


def _example(path: Path) -> str:
    known = owners(path[:-1], None)
    return known.examples.get(str(path[-1]), "")
