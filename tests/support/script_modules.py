"""Modules of the node's programs, of which folders have some by the same name (`slurm`)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


def script_module(folder: Path, name: str) -> ModuleType:
    """A module with its neighbours of the same folder, whatever another test has loaded by their names.

    On nodes each folder is a program of its own.
    """
    loaded = {file.stem for file in folder.glob("*.py")} & sys.modules.keys()
    if any(Path(str(sys.modules[one].__file__)).parent != folder for one in loaded):
        for one in loaded:  # all of them: what one raises, another catches
            del sys.modules[one]
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
