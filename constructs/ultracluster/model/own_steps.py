"""A team's own node steps: which nodes run them, and what their files say of themselves.

A step is `NN_name.sh` with `name::detect`, `name::install` and `name::verify`
(lifecycle_scripts/README.md). A line `# need: required` says that a node must not join without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from ultracluster.config import Environment
from ultracluster.config.file_text import bytes_of
from ultracluster.scripts_folder import add_own_step

FORM = re.compile(r"(?P<number>\d\d)_(?P<name>[a-z][a-z0-9_]{0,29})\.sh")
"""Of a step's file name."""
_NEED = re.compile(r"^#\s*need:\s*(\S+)\s*$", re.MULTILINE)

Need = Literal["required", "optional"]


@dataclass(frozen=True)
class OwnStep:
    """A step of the environment's own."""

    path: str
    """As the environment file has it."""
    file: Path

    @property
    def name(self) -> str:
        """`proxy` of `10_proxy.sh`; empty where the file is not called so."""
        found = FORM.fullmatch(self.file.name)
        return found["name"] if found else ""

    @cached_property
    def content(self) -> bytes | None:
        """None where it cannot be read."""
        try:
            return bytes_of(self.file)
        except OSError:
            return None

    @property
    def text(self) -> str:
        return (self.content or b"").decode(errors="replace")

    @property
    def says_need(self) -> str:
        """What stands behind `# need:`; empty without such a line."""
        found = _NEED.search(self.text)
        return found[1] if found else ""

    @property
    def need(self) -> Need:
        """Whether a node fails without it, or joins degraded, which is what happens by default."""
        return "required" if self.says_need == "required" else "optional"

    def for_node(self) -> dict[str, str]:
        """As the nodes of a group read it in cluster.json; its content is kept for their scripts."""
        assert self.content is not None, f"{self.file}: the rules refuse a step that cannot be read"
        return {"file": self.file.name, "need": self.need, "sha256": add_own_step(self.content)}


def named_steps(environment: Environment) -> tuple[OwnStep, ...]:
    """Every step that the environment names, in the order of its file."""
    folder = environment.file.parent
    return tuple(OwnStep(path, folder / path) for path in environment.lifecycle_steps)


def own_steps(environment: Environment) -> tuple[OwnStep, ...]:
    """The same in the order in which nodes run them: that of their numbers."""
    return tuple(sorted(named_steps(environment), key=lambda one: one.file.name))


def steps_of_group(environment: Environment, group: str) -> tuple[OwnStep, ...]:
    """The steps that the nodes of a group run."""
    chosen = environment.node_groups[group].lifecycle_steps
    return tuple(step for step in own_steps(environment) if chosen is None or step.name in chosen)
