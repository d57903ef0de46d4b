"""What an image has of each component: from the fields of its record to one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultracluster.catalog.images import Fact, Image, efa_installers
from ultracluster.software.versions import Version

_FIELDS: Mapping[str, str] = {
    "slurm": "slurm",
    "nvidia-driver": "nvidia_driver",
    "fabric-manager": "fabric_manager",
    "efa-installer": "efa_installer",
    "libfabric": "libfabric",
    "nccl": "nccl",
    "aws-ofi-nccl": "aws_ofi_nccl",
    "lustre-client": "lustre_client",
    "lustre-efa-setup": "fsx_efa_setup",
    "nvidia-fs": "nvidia_fs",
    "container-toolkit": "container_toolkit",
    "enroot": "enroot",
    "pyxis": "pyxis",
    "dcgm": "dcgm",
    "neuron-driver": "neuron_driver",
    "neuron-runtime": "neuron_runtime",
    "neuron-collectives": "neuron_collectives",
}
"""Component -> field of a record. cuda-runtime, gdrcopy and what no image brings are in `found`."""
_NO_IMAGE_HAS = frozenset({"nccl-tests", "nixl", "node-exporter", "dcgm-exporter", "prometheus"})
ANY_VERSION = frozenset({"pyxis", "lustre-efa-setup"})
"""The image's own was made for the image: whatever its version, it stays."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an image is held to have of a component."""

    state: Literal["unknown", "absent", "present", "at-least", "version"]
    """`present`: of an unknown version. `at-least`: `version` or newer."""
    version: str | None = None
    confirmed: bool = False
    """Read in its maker's own notes or source for this release."""

    @property
    def text(self) -> str | None:
        """The version as people read it; None where it is not known."""
        return f">={self.version}" if self.state == "at-least" else self.version


UNKNOWN = Found("unknown")


def found(
    component: str, image: Image | None, *, kubernetes: bool = False, module_only: bool = False
) -> Found:
    """What `image` has of `component`; everything is unknown of an unknown image.

    Args:
        kubernetes: of GDRCopy the kernel module decides, because containers bring the library.
        module_only: of the Lustre client the kernel module is enough.
    """
    if component in _NO_IMAGE_HAS:
        return Found("absent")
    if image is None:
        return UNKNOWN
    if component == "cuda-runtime":
        return _of(image.fact("cuda_all") or image.fact("cuda_default"))
    if component == "gdrcopy":
        return _gdrcopy(image, kubernetes=kubernetes)
    if component == "lustre-client" and module_only:
        client, module = _of(image.fact("lustre_client")), _of(image.fact("lustre_module"))
        return client if client.state not in ("absent", "unknown") or module.state == "unknown" else module
    if component == "efa-installer" and minimal_efa(image):
        return _of(image.fact("efa_kmod"))
    return _of(image.fact(_FIELDS[component]))


def minimal_efa(image: Image | None) -> bool:
    """EFA is installed without libfabric there: its kernel module is what can be compared (steps/efa.sh)."""
    return image is not None and image.node_family == "eks-al2023"


def efa_module(installer: str) -> str | None:
    """Version of the kernel module that an EFA installer brings; None where it is not known."""
    row = efa_installers().get(installer)
    return row["efa_kmod"] if row else None


def _gdrcopy(image: Image, *, kubernetes: bool) -> Found:
    library, module = _of(image.fact("gdrcopy_lib")), _of(image.fact("gdrdrv"))
    if kubernetes:
        return module
    for path in (library, module):
        if path.state == "absent":
            return path
    return Found(library.state, library.version, library.confirmed and module.confirmed)


def _of(fact: Fact | None) -> Found:
    if fact is None:
        return UNKNOWN
    confirmed = fact.mark == "confirmed"
    if fact.value is False:
        return Found("absent", None, confirmed)
    if fact.value is True:
        return Found("present", None, confirmed)
    if fact.value.startswith(">="):
        return Found("at-least", fact.value[2:], confirmed)
    # side by side, as CUDA: the newest decides
    return Found("version", max(fact.value.split(), key=Version), confirmed)
