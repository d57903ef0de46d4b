"""The recipes of CONTRIBUTING.md: their blocks, and how a reader applies them to a checkout.

The line above a block says where it goes: `FILE`, a new file; `FILE`, at the end; or `FILE`, below `LINE`.
Where LINE is in the file more than once, "of `OTHER`" names a line further up.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from project import ROOT

from ultracluster.catalog import instances

NEW_TYPE = "p7.48xlarge"
"""The instance type of the first recipe."""

_PLACE = re.compile(
    r" *`(?P<file>[^`]+)`, (?:a new file|at the end|below `(?P<line>.+?)`(?: of `(?P<after>.+?)`)?):"
)
_FENCE = re.compile(r" *```")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Text that a recipe adds to a file."""

    file: str
    text: str
    new: bool
    line: str
    """The line below which it goes; empty for a new file and the end of a file."""
    after: str
    """A line further up."""

    def apply(self, folder: Path) -> None:
        file = folder / self.file
        if self.new:
            assert not file.exists(), f"{self.file} is there already"
            file.write_text(self.text)
            return
        lines = file.read_text().splitlines(keepends=True)
        place = len(lines)
        if self.line:
            first = _only(lines, self.after, self.file) if self.after else 0
            end = _next(lines, self.line, first) + 1 if self.after else len(lines)
            place = first + _only(lines[first:end], self.line, self.file) + 1
        lines.insert(place, self.text)
        file.write_text("".join(lines))


@cache
def recipes() -> dict[str, tuple[Block, ...]]:
    """Blocks by the title of their recipe, "rule" for "Add a rule"."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Recipes\n")[2].partition("\n## ")[0]
    parts = re.split(r"^### Add an? (.+)$", section, flags=re.M)[1:]
    return {title: tuple(_blocks(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def new_type() -> dict[str, Any]:
    """The row of the first recipe."""
    text = recipes()["instance type"][0].text.strip().rstrip(",")
    return json.loads(f"{{{text}}}")[NEW_TYPE]


@contextmanager
def catalogue_with_new_type(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalogue as it is with the first recipe."""
    real = instances.catalog_file
    document = real("instances")
    added = {**document, "types": {**document["types"], NEW_TYPE: new_type()}}
    monkeypatch.setattr(instances, "catalog_file", lambda file: added if file == "instances" else real(file))
    for answer in (instances.instance_type, instances.instance_types):
        answer.cache_clear()
    yield
    for answer in (instances.instance_type, instances.instance_types):
        answer.cache_clear()


def _blocks(text: str) -> list[Block]:
    found: list[Block] = []
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        above = next(line for line in reversed(lines[:start]) if line.strip() and "<!--" not in line)
        place = _PLACE.fullmatch(above)
        assert place, f"where does this block go? {above}"
        indent = len(lines[start]) - len(lines[start].lstrip())
        body = "".join(f"{line[indent:]}\n" for line in lines[start + 1 : end])
        new = "a new file" in above
        found.append(
            Block(
                file=place["file"],
                text=textwrap.dedent(body) if new else body,
                new=new,
                line=place["line"] or "",
                after=place["after"] or "",
            )
        )
    return found


def _next(lines: list[str], text: str, first: int) -> int:
    return next(number for number in range(first, len(lines)) if text in lines[number])


def _only(lines: list[str], text: str, file: str) -> int:
    numbers = [number for number, line in enumerate(lines) if text in line]
    assert len(numbers) == 1, f"{file} has {len(numbers)} lines with {text}"
    return numbers[0]
