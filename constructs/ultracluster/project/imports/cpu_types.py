"""Instance types without accelerators that the catalogue does not know: what their names say of them."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(
    r"(?P<family>[cmrtx])(?P<generation>\d)(?P<options>[a-z]*)\.(?P<size>medium|large|(?P<times>\d*)xlarge)"
)
_GIB_PER_VCPU = {"c": 2, "m": 4, "t": 4, "r": 8, "x": 16}
_VCPU = {"medium": 1, "large": 2}
_LEAST_GBPS = 5
"""Bandwidth that types of a few vCPUs have at least, in Gbit/s."""


def estimated(name: str) -> dict[str, Any] | None:
    """A declaration of the type by its family and size; None where the name says neither.

    vCPUs follow the size, memory the family, and a `g` after the generation is Graviton (EC2 Instance Types
    guide, "Instance type naming conventions" and "General purpose", 2026-11-27).
    """
    if not (found := _NAME.fullmatch(name)):
        return None
    size, times = found["size"], found["times"]
    burst = found["family"] == "t" and size == "medium"
    vcpu = 2 if burst else _VCPU.get(size) or 4 * int(times or 1)
    return {
        "vcpu": vcpu,
        "memory_gib": 4 if burst else vcpu * _GIB_PER_VCPU[found["family"]],
        "architecture": "arm64" if "g" in found["options"] else "x86_64",
        "accelerator": "none",
        "accelerators": 0,
        "network_gbps": _LEAST_GBPS,
        "network_cards": 1,
        "efa_interfaces": 0,
        "addresses": 1,
        "source": "an estimate by the type's name; `aws ec2 describe-instance-types` prints the figures",
    }
