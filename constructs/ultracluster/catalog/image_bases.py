"""Machine images that a build of one's own starts from: login user, root volume, what to clean up.

`image_bases.json` holds the facts, with source and date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal

Accelerator = Literal["nvidia", "neuron", "none"]
_DEFAULT_GIB = 200  # `root_volume_gib` of a node group, which must hold the image


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBase:
    """The image of one orchestrator with one operating system."""

    orchestrator: str
    os: str
    family: str
    """What `bake.sh --family` takes."""
    user: str
    """Who logs in through SSH."""
    root_device: str
    root_volume_gib: int | None
    volume: Literal["grows", "fixed", "unknown"]
    encryption: Literal["always", "same-key"]
    """`same-key`: only with a key, which root volumes of the node groups then need, too."""
    architectures: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    clean_up: str | None
    tags: tuple[tuple[str, str], ...]
    """That an image made from it needs."""
    find: str
    """How to find the id of a base."""

    def parameter(self, architecture: str, *, accelerator: Accelerator, kubernetes: str = "") -> str | None:
        """The SSM parameter with the id of the newest base; None where AWS publishes none that is known."""
        template = dict(self.parameters).get(architecture)
        if template is None or ("$kubernetes" in template and not kubernetes):
            return None
        kind = "standard" if accelerator == "none" else accelerator
        return Template(template).substitute(kubernetes=kubernetes, accelerator=kind)

    def volume_gib(self, accelerator: Accelerator) -> int | None:
        """Size of the root volume to build with; None leaves that of the base."""
        if self.volume == "fixed":
            return None
        if self.root_volume_gib is None:
            return _DEFAULT_GIB
        return self.root_volume_gib + int(_facts()["room_gib"][accelerator])


class UnknownBaseError(ValueError):
    """There is no such base; the text names those that there are."""


def image_base(orchestrator: str, os: str = "") -> ImageBase:
    """The base of an orchestrator, by default with the operating system that its first row has.

    Raises:
        UnknownBaseError: the orchestrator or its operating system is not known.
    """
    bases = [base for base in image_bases() if base.orchestrator == orchestrator]
    if not bases:
        orchestrators = ", ".join(dict.fromkeys(base.orchestrator for base in image_bases()))
        raise UnknownBaseError(f"orchestrator {orchestrator!r} is unknown: write one of {orchestrators}")
    for base in bases:
        if os in ("", base.os):
            return base
    raise UnknownBaseError(
        f"{orchestrator} has no image with os {os!r}: write one of {', '.join(base.os for base in bases)}"
    )


@cache
def image_bases() -> tuple[ImageBase, ...]:
    """All of them, the default operating system of each orchestrator first."""
    return tuple(_base(row) for row in _facts()["bases"])


def build_type(architecture: str) -> str:
    """The instance type that builds where none is asked for."""
    return _facts()["build_types"][architecture]


@cache
def _facts() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("image_bases.json").read_text())


def _base(row: dict[str, Any]) -> ImageBase:
    return ImageBase(
        orchestrator=row["orchestrator"],
        os=row["os"],
        family=row["family"],
        user=row["user"],
        root_device=row["root_device"],
        root_volume_gib=row["root_volume_gib"],
        volume=row["volume"],
        encryption=row["encryption"],
        architectures=tuple(row["architectures"]),
        parameters=tuple(row["parameter"].items()),
        clean_up=row["clean_up"],
        tags=tuple(row.get("tags", {}).items()),
        find=row["find"],
    )
