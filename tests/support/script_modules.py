"""Modules of the node's programs, of which folders have some by the same name (`slurm`)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

_LOADED: dict[Path, dict[str, ModuleType]] = {}
"""Modules that wait for their folder's turn."""


def script_module(folder: Path, name: str) -> ModuleType:
    """A module with its neighbours of the same folder, whatever another test has loaded by their names.

    On nodes each folder is a program of its own.
    """
    names = {file.stem for file in folder.glob("*.py")} & sys.modules.keys()
    if any(_folder_of(sys.modules[one]) != folder for one in names):
        for one in names:
            module = sys.modules.pop(one)
            _LOADED.setdefault(_folder_of(module), {})[one] = module
        sys.modules.update(_LOADED.get(folder, {}))  # the same again: a test may have patched them
    sys.path.insert(0, str(folder))
    before, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # beside the scripts, whose digest names them
    try:
        return importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(folder))


def _folder_of(module: ModuleType) -> Path:
    return Path(str(module.__file__)).parent
