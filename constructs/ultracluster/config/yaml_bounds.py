# pyright: basic
# ruamel.yaml marks no types.
"""Parsing YAML of a stranger: as deep, as much and as long as an environment can be, and no more.

A few hundred bytes of nested aliases make billions of values, and brackets in one another a stack overflow.
The greatest shipped environment has 2 kB and 80 values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import Node

MOST_BYTES = 256 << 10
MOST_VALUES = 10_000
"""Values of a file, those that aliases repeat among them."""
MOST_TEXT = 1 << 20
"""Characters of all values together, those that aliases repeat among them."""
MOST_LEVELS = 30
"""Of values in one another; values of charts have the deepest."""


class TooMuchError(Exception):
    """It holds, or its aliases repeat, more than a file can mean."""


class TooDeepError(Exception):
    """Its values lie in one another too deep."""


class _Composer(Composer):
    """Stops where it has made too many nodes, or is too deep in them."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self.warn_double_anchors = False  # the later one counts, as YAML has it
        self.made = 0
        self.level = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.made += 1
        if self.made > 2 * MOST_VALUES:  # keys are nodes, too
            raise TooMuchError
        self.level += 1
        if self.level > MOST_LEVELS:
            raise TooDeepError
        try:
            return super().compose_node(parent, index)
        finally:
            self.level -= 1


@lru_cache(maxsize=64)
def compose(text: str) -> Node | None:
    """The nodes of one document; None for an empty one.

    A text is parsed once in a process, whether several environments extend the file or one command reads it
    again: nobody may change the nodes.

    Raises:
        TooDeepError, TooMuchError: it is beyond the bounds.
        YAMLError: it is not YAML.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Composer
    try:
        return yaml.compose(text)
    except RecursionError:
        raise TooDeepError from None


def load_documents(text: str) -> list[Any]:
    """Plain values of each document, within the bounds of one.

    Raises:
        TooDeepError, TooMuchError: it is beyond the bounds.
        ValueError: it is not YAML.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Composer
    try:
        return list(yaml.load_all(text))
    except RecursionError:
        raise TooDeepError from None
    except (YAMLError, ValueError) as error:
        raise ValueError(str(error)) from None


def compose_documents(text: str) -> list[Node | None]:
    """The nodes of each document that `load_documents` has, in its order.

    Raises:
        TooDeepError, TooMuchError, ValueError: as there.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Composer
    try:
        return list(yaml.compose_all(text))
    except RecursionError:
        raise TooDeepError from None
    except (YAMLError, ValueError) as error:
        raise ValueError(str(error)) from None


def directive_line(text: str) -> int:
    """The line of a directive (`%YAML 1.1` would turn words into booleans); 0 without one."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("%"):
            return number
        if line.strip() and not line.lstrip().startswith("#"):
            return 0
    return 0
