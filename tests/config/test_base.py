"""Every text of every model that reads a file: its form says what may stand in it, and nothing unseen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as kinds  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import AfterValidator, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from rows import for_each

from ultracluster.config import Environment, base, slurm
from ultracluster.config.base import Line, Prose, Setting, Values
from ultracluster.config.plain_text import unseen_in
from ultracluster.software.environment_lock import EnvironmentLock
from ultracluster.software.lock import Release

UNSEEN = [
    "\n",
    "\r",
    "\t",
    "\x00",
    "\x07",
    "\x1b",
    "\x7f",
    "\x85",
    "\x9b",
    "\u200b",
    "\u2028",
    "\u202e",
    "\u2066",
    "\ufeff",
]
# validators that look at every character
LOOKING = {base._one_line, base._lines, base._setting, base._plain_values, base._network, slurm._value}
# fields whose text is told to people only: it may have lines
FOR_PEOPLE = {
    "Acknowledgement.reason", "Artifact.note", "Component.constraint", "Component.note", "Component.source",
    "DeclaredInstanceType.source", "Directory.ca_certificate", "Floor.source", "PackageSet.note",
    "Release.images", "Release.summary",
}  # fmt: skip


def texts(
    annotation: Any, where: str, besides: tuple[Any, ...] = ()
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each text below a type, with what is said about it there."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return
    if annotation in (str, Any):
        yield where, besides
    elif get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        own = tuple(
            one for item in metadata for one in (item.metadata if isinstance(item, FieldInfo) else [item])
        )
        yield from texts(inner, where, (*besides, *own))
    elif get_origin(annotation) is not Literal:
        down = _of_parts(besides) if get_origin(annotation) in (dict, Sequence) else besides
        for part in get_args(annotation):
            yield from texts(part, where, down)


def _of_parts(besides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of what is said of a list or mapping: what looks at its parts, too."""
    return tuple(one for one in besides if isinstance(one, AfterValidator) and one.func in LOOKING)


def models() -> Iterator[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    pending: list[Any] = [Environment, EnvironmentLock, Release]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation not in found:
                found.add(annotation)
                pending += [field.annotation for field in annotation.model_fields.values()]
                pending += [one for field in annotation.model_fields.values() for one in field.metadata]
        else:
            pending += get_args(annotation)
    return iter(sorted(found, key=lambda one: one.__name__))


FIELDS = [
    (f"{model.__name__}.{name}", besides)
    for model in models()
    for name, field in model.model_fields.items()
    for _, besides in texts(
        Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation, name
    )
]


def test_there_are_many() -> None:
    assert len(FIELDS) > 90


@for_each(
    ("where", "besides"),
    FIELDS,
)
def test_each_text_has_a_form_or_is_looked_at(where: str, besides: tuple[Any, ...]) -> None:
    patterns = [one.pattern for one in besides if getattr(one, "pattern", None)]
    looked = [one.func for one in besides if isinstance(one, AfterValidator) and one.func in LOOKING]
    assert patterns or looked, f"{where} takes any text: give it a pattern, or the type Line"
    for pattern in patterns:
        assert pattern.startswith("^") and pattern.endswith("$"), (
            f"{where}: {pattern} is for a part of the text"
        )
        assert looked or not admitted(pattern), f"{where}: {pattern} takes {admitted(pattern)!r}"
    if base._lines in looked and not patterns:
        assert where in FOR_PEOPLE


def admitted(pattern: str) -> list[str]:
    """Characters that nobody sees, or digits and letters of other scripts, that a pattern takes somewhere."""
    strange = [*UNSEEN, "\u0661", "\u0430"] if "\\u0000" not in pattern else UNSEEN
    return [one for one in strange if _takes(list(parser.parse(pattern)), one)]


def _takes(parsed: Any, character: str) -> bool:
    for kind, value in parsed:
        if kind in (kinds.ANY, kinds.CATEGORY, kinds.NOT_LITERAL):
            return True
        if kind is kinds.LITERAL and value == ord(character):
            return True
        if kind is kinds.IN and (
            any(one is kinds.CATEGORY for one, _ in value) or re.fullmatch(_set(value), character)
        ):
            return True
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT) and _takes(value[2], character):
            return True
        if kind is kinds.SUBPATTERN and _takes(value[3], character):
            return True
        if kind is kinds.BRANCH and any(_takes(one, character) for one in value[1]):
            return True
    return False


def _set(items: Any) -> str:
    parts = {
        kinds.LITERAL: lambda value: re.escape(chr(value)),
        kinds.RANGE: lambda value: f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}",
    }
    negated = any(kind is kinds.NEGATE for kind, _ in items)
    return (
        f"[{'^' if negated else ''}{''.join(parts[kind](value) for kind, value in items if kind in parts)}]"
    )


def test_the_test_finds_wide_patterns() -> None:
    for pattern in (
        r"^a.b$",
        r"^\d+$",
        r"^\w$",
        r"^[\w-]+$",
        r"^[^/]+$",
        r"^(a|\s)$",
        r"^\S+$",
        r"^(x(y.)?)+$",
    ):
        assert admitted(pattern), pattern
    for pattern in (r"^[a-z0-9-]+$", r"^(/[A-Za-z]+)+$", r"^[!-~]*$", f"^{base.SEEN}+$"):
        assert not admitted(pattern), pattern


@pytest.mark.parametrize("character", UNSEEN)
@pytest.mark.parametrize("kind", [Line, Setting, Values, Prose])
def test_what_nobody_sees_is_refused(kind: Any, character: str) -> None:
    if kind in (Values, Prose) and character in "\n\t":
        assert TypeAdapter(kind).validate_python(f"a{character}b")
        return
    with pytest.raises(ValidationError, match="the text holds U\\+"):
        TypeAdapter(kind).validate_python(f"a{character}b")


def test_values_are_looked_at_however_deep() -> None:
    for value in ({"a": [{"b": "x\x1b"}]}, {"a\n": 1}, [["\u202e"]]):
        with pytest.raises(ValidationError):
            TypeAdapter(Values).validate_python(value)
    assert TypeAdapter(Values).validate_python({"a": [1, 2.5, None, True, "x\ny"]})


def test_other_languages_are_text() -> None:
    for text in ("Größe für München", "训练集群", "кластер", "クラスタ 1", "é", "naïve – “quoted”"):
        assert TypeAdapter(Line).validate_python(text) == text
        assert unseen_in(text) is None
