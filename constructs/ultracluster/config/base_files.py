"""Which files an environment may extend: those of its own folder, and of folders that the user names.

An environment may come from a stranger, as in a pull request. `extends: ../../.aws/credentials` would show
lines of that file in the log of a check, and a base outside of the reviewed folder is not what was reviewed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ultracluster.config.file_text import kind_of, real

EXTENDS_FROM = "ULTRACLUSTER_EXTENDS_FROM"
"""Environment variable: further folders whose files may be extended, with `:` between them. Not a key of the
file: who writes the file must not decide it."""
_SUFFIXES = {".yaml", ".yml"}


class Refused(NamedTuple):
    """Why a file may not be extended."""

    why: str
    instead: str


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders, resolved, below which files may be extended."""

    home: Path
    further: tuple[Path, ...]

    @classmethod
    def of(cls, file: Path) -> Folders:
        """For an environment: the folder `environments` that it lies in, else the folder it lies in."""
        folder = Path(os.path.normpath(file.absolute())).parent
        home = next((one for one in (folder, *folder.parents) if one.name == "environments"), folder)
        asked = filter(None, os.environ.get(EXTENDS_FROM, "").split(os.pathsep))
        return cls(real(home), tuple(real(Path(one)) for one in asked))

    def hold(self, file: Path) -> bool:
        """Whether the file lies in one of them once its links are followed."""
        return any(real(file).is_relative_to(folder) for folder in (self.home, *self.further))

    def refuse(self, base: Path) -> Refused | None:
        """Why `base` may not be extended; None where it may. Nothing is said of whether it exists."""
        if not self.hold(base):
            return Refused(
                f"lies outside {self.home}, to which `extends` is kept",
                f"copy it there, or set {EXTENDS_FROM} to its folder if you trust what lies there",
            )
        if kind_of(base) != "folder" and not {base.suffix, real(base).suffix} <= _SUFFIXES:
            return Refused("is no environment file by its name", "extends: base.yaml")
        return None


def known_keys(node: Any) -> bool:
    """Whether a mapping of YAML has a key at its top that an environment has."""
    from ultracluster.config.environment import Environment

    names = {str(key.value) for key, _ in node.value if isinstance(key.value, str)}
    return bool(names & {"extends", *Environment.model_fields})


__all__ = ["EXTENDS_FROM", "Folders", "Refused", "known_keys"]
