"""Modules of the health loop in the process of a test: what they keep lies in a folder of this process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from unittest import mock

from project import ROOT
from script_modules import script_module

FOLDER = ROOT / "lifecycle_scripts" / "health_loop"


def health_module(name: str) -> ModuleType:
    """A module of the loop. As on a node its places are known when it is imported; here they are none of the
    machine's."""
    with mock.patch.dict(os.environ, ULTRACLUSTER_ROOT=str(_root())):
        return script_module(FOLDER, name)


@cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="ultracluster-health-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root
