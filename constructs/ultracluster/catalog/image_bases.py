"""Machine images that a build of one's own starts from: login user, root volume, what to clean up.

`image_bases.json` holds the facts, with source and date.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from string import Template
from typing import Literal

from ultracluster.catalog.files import catalog_file, record

_document = partial(catalog_file, "image_bases")

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
        return self.root_volume_gib + int(_document()["room_gib"][accelerator])


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
    return tuple(
        record(
            ImageBase,
            row,
            parameters=tuple(row["parameter"].items()),
            tags=tuple(row.get("tags", {}).items()),
        )
        for row in _document()["bases"]
    )


def build_type(architecture: str) -> str:
    """The instance type that builds where none is asked for."""
    return _document()["build_types"][architecture]
