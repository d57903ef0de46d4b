"""Peaks of one accelerator: operations, memory, links; sources are in `accelerator_speeds.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ultracluster.catalog.files import catalog_file


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorSpeed:
    """Published peaks of one accelerator."""

    tflops: Mapping[str, float]
    """10^12 dense operations per second by precision: `bf16`, `fp8`, `fp4`."""
    memory_gbps: float
    """GB/s of its own memory."""
    link_gbps: float | None
    """GB/s in one direction to the others of its domain; None: not published, or PCIe."""
    source: str


def accelerator_speed(name: str) -> AcceleratorSpeed | None:
    """Peaks of an accelerator by its name in the catalogue; None where none are published."""
    return _speeds().get(name)


@cache
def _speeds() -> dict[str, AcceleratorSpeed]:
    rows = catalog_file("accelerator_speeds")["accelerators"]
    return {name: AcceleratorSpeed(**row) for name, row in rows.items()}
