"""Which instance types have ENA Express: SRD, EFA's transport, for TCP and UDP between two instances."""

from __future__ import annotations

from ultracluster.catalog.files import catalog_file
from ultracluster.catalog.instances import instance_type


def has_ena_express(name: str) -> bool | None:
    """Whether a type has it; None of a type that the catalogues do not have."""
    family, _, size = name.partition(".")
    if size in catalog_file("ena_express")["sizes"].get(family, ()):
        return True
    return None if instance_type(name) is None else False


def sizes_with_ena_express(family: str) -> tuple[str, ...]:
    """Types of a family that have it, smallest first."""
    return tuple(f"{family}.{size}" for size in catalog_file("ena_express")["sizes"].get(family, ()))


__all__ = ["has_ena_express", "sizes_with_ena_express"]
