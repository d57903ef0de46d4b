"""Changes of an environment file as a program makes them: comments, order and quotes of the rest stay."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any, cast

from ruamel.yaml import YAML, YAMLError
from ruamel.yaml.comments import CommentedMap

from ultracluster.config.remedy import DROP, Option, YamlPath, apply, apply_to

_WIDE = 4096
_STANDS_IN = re.compile(r"^# (?:stands in|replace\b)[^\n]*")


class EditError(ValueError):
    """The file cannot be changed by a program; says why."""


def edited(text: str, option: Option, notes: Mapping[YamlPath, str] | None = None) -> str:
    """The text of a file with changes.

    Args:
        text: of a file that could be read.
        option: the changes.
        notes: comments at the end of the lines of values, by path; an empty one takes away what said that the
            value stands in for another.

    Raises:
        EditError: something else would change, or the text is not YAML.
    """
    yaml = _yaml()
    try:
        before: Any = _plain(text)
        data: Any = cast("Any", yaml).load(text)
    except YAMLError as error:
        raise EditError(f"it is not YAML: {str(error).splitlines()[0]}") from None
    apply_to(data, option)
    _commented(data)
    for path, note in (notes or {}).items():
        _note(data, path, note)
    out = io.StringIO()
    cast("Any", yaml).dump(data, out)
    after = out.getvalue()
    # an anchor, for one, whose value is changed in one place changes in the others as well
    if _plain(after) != apply(before, option):
        raise EditError("more than is asked for would change, by an anchor or a merge key: edit it by hand")
    return after


def inherited(text: str, option: Option) -> Option:
    """The same changes for a file that extends others: what is not in its own text is taken away by null."""
    own: Any = _plain(text)
    if not isinstance(own, dict) or "extends" not in own:
        return option
    return tuple(
        type(one)(one.path, None) if one.value is DROP and not one.rename and not _has(own, one.path) else one
        for one in option
    )


def _plain(text: str) -> Any:
    return _unshared(cast("Any", YAML(typ="safe")).load(text))


def _unshared(data: Any) -> Any:
    """The data without aliases: what an anchor names is there once for each place."""
    if isinstance(data, dict):
        return {key: _unshared(value) for key, value in cast("dict[Any, Any]", data).items()}
    return [_unshared(one) for one in cast("list[Any]", data)] if isinstance(data, list) else data


def _has(data: Any, path: YamlPath) -> bool:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _commented(data: Any) -> Any:
    """What is new as a mapping that takes comments, in place; what the file has is not touched."""
    rows = cast("dict[Any, Any] | list[Any]", data)
    places: list[Any] = list(rows) if isinstance(rows, dict) else list(range(len(rows)))
    for place in places:
        value: Any = rows[place]
        if isinstance(value, dict | list) and (made := _commented(value)) is not value:
            rows[place] = made
    return CommentedMap(rows) if type(rows) is dict else rows


def _note(data: Any, path: YamlPath, note: str) -> None:
    *parents, last = path
    for part in parents:
        data = data[part]
    behind = data.ca.items.get(last, [None] * 4)[2]
    if not note:
        if behind is not None:
            behind.value = _STANDS_IN.sub("", behind.value)
        return
    if behind is None:
        data.yaml_add_eol_comment(note, last)
    elif behind.value.startswith("#"):
        behind.value = f"# {note}; {behind.value.removeprefix('#').lstrip()}"
    else:  # an empty line
        behind.value = f" # {note}{behind.value}"


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)  # pyright: ignore[reportUnknownMemberType]
    yaml.representer.add_representer(type(None), _null)  # pyright: ignore[reportUnknownMemberType]
    return yaml


def _null(representer: Any, _: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")
