"""What the image of a rehearsal holds: the values of its record, with every unknown decided one way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog.images import Image
from ultracluster.software import Component, Release

Unknowns = Literal["absent", "at-floor"]
Repositories = Literal["offer", "lack"]
Contents = Mapping[str, str | None]
"""Version by field of the record; None is absent."""

COMPONENTS = {
    "nvidia_driver": "nvidia-driver",
    "fabric_manager": "fabric-manager",
    "cuda_default": "cuda-runtime",
    "efa_installer": "efa-installer",
    "libfabric": "libfabric",
    "aws_ofi_nccl": "aws-ofi-nccl",
    "nccl": "nccl",
    "gdrcopy_lib": "gdrcopy",
    "gdrdrv": "gdrcopy",
    "nvidia_fs": "nvidia-fs",
    "container_toolkit": "container-toolkit",
    "dcgm": "dcgm",
    "enroot": "enroot",
    "pyxis": "pyxis",
    "slurm": "slurm",
    "lustre_client": "lustre-client",
    "fsx_efa_setup": "lustre-efa-setup",
    "neuron_driver": "neuron-driver",
    "neuron_runtime": "neuron-runtime",
    "neuron_collectives": "neuron-collectives",
}
_KERNELS = {
    "ubuntu22.04": "6.8.0-1063-aws",
    "ubuntu24.04": "6.17.0-1019-aws",
    "al2023": "6.12.110-135.201.amzn2023",
}
_NEWER_KERNELS = {
    "ubuntu22.04": "6.11.0-1003-aws",
    "ubuntu24.04": "7.4.0-1001-aws",
    "al2023": "6.24.3-11.9.amzn2023",
}
"""Of no matrix of today."""
PRESENT = {
    "efa_kmod": "3.0.0",
    "libfabric": "2.4.0amzn1.0",
    "aws_ofi_nccl": "1.18.0",
    "pyxis": "0.20.0",
    "python": "3.10",
    "nvlsm": "2025.03.9-1",
    "gdrdrv": "2.5",
}
"""Where something is there, and neither record nor release says of which version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to decide what a record leaves open."""

    unknowns: Unknowns = "absent"
    repositories: Repositories = "offer"
    """Whether the makers' repositories have modules for a kernel that nobody knows."""
    newer: bool = False
    """An invented image: newer kernel, driver and packages than the record's."""

    def __str__(self) -> str:
        parts = ["newer" if self.newer else "", f"unknown {self.unknowns}"]
        parts.append("no module offered" if self.repositories == "lack" else "")
        return ", ".join(part for part in parts if part)


class UnknownSystemError(ValueError):
    """The record of an image names an operating system of which nothing is known."""


def contents(
    image: Image, release: Release, variant: Variant, instance_type: str = ""
) -> dict[str, str | None]:
    """What the image of this rehearsal brings, by field of the record.

    Raises:
        UnknownSystemError: the record has no kernel, and of its system none is known.
    """
    found: dict[str, str | None] = {}
    for field, fact in image.values.items():
        component = _component(field, release)
        if fact is None:
            found[field] = (
                _at_floor(field, component, instance_type) if variant.unknowns == "at-floor" else None
            )
        elif fact.value is False:
            found[field] = None
        elif fact.value is True:
            found[field] = _at_floor(field, component, instance_type)
        else:
            found[field] = str(fact.value).removeprefix(">=")
    found["cuda_all"] = found["cuda_all"] or found["cuda_default"]
    found["kernel"] = _kernel(image, found["kernel"], newer=variant.newer)
    if found["efa_installer"]:
        # one installer brings them all, in full form
        for field in ("efa_kmod", "libfabric", "aws_ofi_nccl"):
            found[field] = (
                found[field] or _at_floor(field, _component(field, release), instance_type) or PRESENT[field]
            )
    if variant.newer:
        found = {field: _bump(field, value) for field, value in found.items()}
    if found["nvidia_driver"]:
        found["fabric_manager"] = found["nvidia_driver"]
    return found


def _component(field: str, release: Release) -> Component | None:
    name = COMPONENTS.get(field)
    return next((part for known, part in release.components.items() if known == name), None)


def _at_floor(field: str, component: Component | None, instance_type: str) -> str | None:
    if component and (floor := component.floor_of(instance_type)):
        return floor.version
    if component and component.version[0].isdigit():
        return component.version
    return PRESENT.get(field)


def _kernel(image: Image, value: str | None, *, newer: bool) -> str:
    """A whole release as `uname -r` prints it; records have its branch alone, sometimes."""
    if newer or value is None:
        known = _NEWER_KERNELS if newer else _KERNELS
        if image.os not in known:
            raise UnknownSystemError(
                f"{image.id}: no kernel of {image.os} is known (known are those of {', '.join(known)}): "
                "write `kernel` into the record"
            )
        return f"{known[image.os]}{_machine(image)}"
    if image.os == "al2023":
        if not re.fullmatch(r"\d+\.\d+\.\d+-\S+", value):
            value = f"{value}.1-1.1"
        return value if "amzn2023" in value else f"{value}.amzn2023{_machine(image)}"
    return value if value.endswith("-aws") else f"{value}-aws"


def _machine(image: Image) -> str:
    machine = "aarch64" if image.arch == "arm64" else "x86_64"
    return f".{machine}" if image.os == "al2023" else ""


def _bump(field: str, value: str | None) -> str | None:
    """A later version: its second number is raised, of several versions the last one's."""
    if value is None or field in (
        "kernel",
        "login_user",
        "python",
        "root_volume",
        "second_volume",
        "ssm_agent",
    ):
        return value
    older, _, last = value.rpartition(" ")
    newer = re.sub(r"^(\d+)\.(\d+)", lambda found: f"{found[1]}.{int(found[2]) + 1}", last)
    return f"{older} {newer}".strip()
