"""Values that are known only after deploy, which nobody can judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from aws_cdk import Token

Figure = int | float
"""A whole number, or a token that stands for one, which is a float."""

_NUMBER = -1.8881545897e289  # how the CDK writes a number that it does not know yet begins so
_TEXT = ("${Token[", "#{Token[")
_WRITTEN = re.compile(r"-1\.88815458\d*e\+?289")


def holds_token(value: object) -> bool:
    """Return whether it is a token of the CDK, or a text, list or mapping with one in it."""
    if isinstance(value, str):
        return any(mark in value for mark in _TEXT)
    if isinstance(value, float):
        return value < _NUMBER / 10 and Token.is_unresolved(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return any(holds_token(key) or holds_token(inner) for key, inner in pairs)
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds_token(inner) for inner in cast("Iterable[Any]", value))
    return False


def speaks_of_token(text: str) -> bool:
    """Return whether a text has a token written into it, a number included."""
    numbers = (float(found) for found in _WRITTEN.findall(text))
    return any(mark in text for mark in _TEXT) or any(Token.is_unresolved(number) for number in numbers)
