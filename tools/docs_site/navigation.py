"""The menu of the site: `navigation.yaml`, with the pages that are there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FILE = Path(__file__).with_name("navigation.yaml")
START = "index"


class PageError(Exception):
    """Something about a page that a person has to mend: which page, and how."""


@dataclass(frozen=True, slots=True)
class Group:
    """A heading of the menu."""

    title: str
    pages: tuple[tuple[str, str], ...]
    """Page, and its name in the menu where it is not its title."""
    folder: str = ""
    """A folder whose pages stand below one page of the menu."""


def menu(pages: Iterable[str], rows: Sequence[dict[str, Any]] | None = None) -> list[Group]:
    """The groups that have any page.

    Args:
        pages: of docs/, by path without `.md`.
        rows: other ones than those of the file.

    Raises:
        PageError: a page stands nowhere, or twice.
    """
    there = sorted(pages)
    groups = [_group(row, there) for row in rows or YAML(typ="safe").load(FILE)]
    placed = [page for group in groups for page in _taken(group, there)]
    nowhere = [page for page in there if page not in placed and page != START]
    twice = sorted({page for page in placed if placed.count(page) > 1})
    names = [f"docs/{page}.md has no place in the menu: name it" for page in nowhere]
    names += [f"docs/{page}.md stands in the menu twice: name it once" for page in twice]
    if names:
        raise PageError("\n".join(f"{one} in {_place()}" for one in names))
    return [group for group in groups if group.pages or group.folder]


def _group(row: dict[str, Any], there: list[str]) -> Group:
    folder = row.get("folder", "")
    inside = [page for page in there if folder and page.startswith(f"{folder}/")]
    if folder and row.get("flat"):
        all_of_it = f"All {row['group'].lower()}"
        pages = ((page, all_of_it if page.endswith("/README") else "") for page in inside)
        return Group(row["group"], tuple(pages))
    if folder:
        return Group(row["group"], (), folder if inside else "")
    named = [
        next(iter(page.items())) if isinstance(page, dict) else (str(page), "")
        for page in row.get("pages", ())
    ]
    return Group(row["group"], tuple(one for one in named if one[0] in there or one[0].startswith("../")))


def _taken(group: Group, there: list[str]) -> list[str]:
    if group.folder:
        return [page for page in there if page.startswith(f"{group.folder}/")]
    return [page for page, _ in group.pages]


def _place() -> str:
    return "/".join(FILE.parts[-3:])
