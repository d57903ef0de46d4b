"""Files that these tests write are for users of a node, too."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _readable_by_all() -> Iterator[None]:
    """Scripts on nodes set the same umask; that of this run may be another."""
    before = os.umask(0o022)
    yield
    os.umask(before)
