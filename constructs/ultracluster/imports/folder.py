"""A folder of another tool: the files in it that say something of a cluster, and its scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_DATA = (".json", ".yaml", ".yml")
_NAMED = ("config.py", "shared_users.txt")
_SCRIPTS = (".sh", ".py")
_SKIPPED = ("node_modules", "__pycache__", "cdk.out")
MOST_FILES = 2000
MOST_LEVELS = 4


class TooManyError(Exception):
    """The folder has more than anybody's cluster."""


def files_of(folder: Path) -> tuple[list[Path], list[str]]:
    """Files that may say something of a cluster, and names of scripts, both sorted.

    Links are not followed, and hidden folders are left out.

    Raises:
        OSError: the folder cannot be read.
        TooManyError: it has too many files.
    """
    data: list[Path] = []
    scripts: list[str] = []
    for count, path in enumerate(_walk(folder, 0)):
        if count >= MOST_FILES:
            raise TooManyError
        if path.name in _NAMED or path.suffix in _DATA:
            data.append(path)
        elif path.suffix in _SCRIPTS:
            scripts.append(str(path.relative_to(folder)))
    return sorted(data), sorted(scripts)


def _walk(folder: Path, level: int) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for one in found:
        if one.name.startswith(".") or one.name in _SKIPPED or one.is_symlink():
            continue
        if one.is_dir():
            if level < MOST_LEVELS:
                yield from _walk(Path(one.path), level + 1)
        elif one.is_file():
            yield Path(one.path)
