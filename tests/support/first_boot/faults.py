"""What is wrong with a node of a rehearsal: nothing, unless a test says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How many devices of a node are missing, and whose a home is."""

    gpus: int = 0
    """GPUs or Neuron devices that are on the PCI bus, but that the driver does not show."""
    efa_devices: int = 0
    """On the PCI bus, but the driver does not serve them."""
    disks: int = 0
    """Local disks that are not there at all."""
    home_of: int | None = None
    """Id of somebody else, to whom the home of the session user belongs already."""
