"""A folder that users without rights may enter, wherever TMPDIR is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A temporary folder: TMPDIR's own, or else one of the system's."""
    place = next(filter(_open_to_all, (tempfile.gettempdir(), "/var/tmp", "/tmp")), None)  # noqa: S108
    if place is None:
        pytest.skip("no temporary folder that other users may enter: set TMPDIR to one")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _open_to_all(place: str) -> bool:
    path = Path(place).resolve()
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))
