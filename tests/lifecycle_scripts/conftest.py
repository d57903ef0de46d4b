"""Files that these tests write are for users of a node, too."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from training_program import FILE


@pytest.fixture(autouse=True, scope="module")
def _readable_by_all() -> Iterator[None]:
    """Scripts on nodes set the same umask; that of this run may be another."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, as new, in a process that is no job; it writes into `tmp_path`."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI", "ULTRACLUSTER_")) or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ULTRACLUSTER_METRICS_FOLDER", str(tmp_path))
    spec = importlib.util.spec_from_file_location("ultracluster_metrics_of_test", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
