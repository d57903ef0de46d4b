"""Launch templates of EC2: what of them a node group says, too (ResponseLaunchTemplateData of its API)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from ultracluster.imports.ledger import Part

_FILE_SYSTEM = re.compile(r"\bfs-[0-9a-f]{8,17}\b")
_MOST_TEXT = 64 * 1024
"""Of user data, which EC2 bounds at 16 KiB."""


def root_volume(template: Part) -> dict[str, int]:
    """Size and speed of the first volume that a template has."""
    for part in template.parts("BlockDeviceMappings")[:1]:
        disk = part.part("Ebs")
        kind, iops = disk.text("VolumeType"), disk.number("Iops")
        found = {
            "root_volume_gib": disk.number("VolumeSize"),
            "root_volume_throughput_mbps": disk.number("Throughput"),
            "root_volume_iops": iops if kind in ("io1", "io2") else None,
        }
        return {key: value for key, value in found.items() if value is not None}
    return {}


def threads(template: Part) -> dict[str, int]:
    """Multithreading, where it is said."""
    options = template.part("CpuOptions")
    number = options.number("ThreadsPerCore")
    return {"threads_per_core": number} if number == 1 else {}


def capacity(template: Part, *, block: bool, interruptible: bool = False) -> dict[str, Any]:
    """The reservation that a template targets; empty where it targets none.

    Args:
        block: the group takes its nodes from a Capacity Block.
    """
    specification = template.part("CapacityReservationSpecification")
    specification.any("CapacityReservationPreference")
    target = specification.part("CapacityReservationTarget")
    one, several = target.text("CapacityReservationId"), target.text("CapacityReservationResourceGroupArn")
    market = template.part("InstanceMarketOptions").text("MarketType")
    if block or market == "capacity-block":
        if one is None:
            target.ledger.refuse(
                target.place("CapacityReservationId"), "the group has a Capacity Block, and none is named",
                "write the id of the block's reservation, cr-..., into its launch template",
            )  # fmt: skip
        return {"kind": "capacity-block", "id": one or ""}
    lent: dict[str, Any] = (
        {"interruptible": True} if interruptible or market == "interruptible-capacity-reservation" else {}
    )
    if one:
        return {"kind": "reservation", "id": one, **lent}
    if several:
        return {"kind": "reservation", "resource_group_arn": several, **lent}
    return {"kind": "spot"} if market == "spot" else {}


def has_efa(template: Part) -> bool:
    """Return whether its nodes have EFA interfaces."""
    kinds = [interface.get("InterfaceType") for interface in _interfaces(template)]
    return any(kind in ("efa", "efa-only") for kind in kinds)


def security_groups(template: Part) -> list[str]:
    """Security groups of nodes by id."""
    found = [str(identifier) for identifier in _list(template.data.get("SecurityGroupIds"))]
    for interface in _interfaces(template):
        found += [str(name) for name in _list(interface.get("Groups"))]
    return list(dict.fromkeys(found))


def mounts(template: Part) -> Iterator[tuple[str, str]]:
    """File systems that user data names, each with the folder in its line; empty where the line has none."""
    text = template.data.get("UserData")
    if not isinstance(text, str) or len(text) > _MOST_TEXT:
        return
    try:
        plain = base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        plain = text
    for line in plain.splitlines():
        for name in _FILE_SYSTEM.findall(line):
            folders = [word for word in line.split() if re.fullmatch(r"(/[A-Za-z0-9._-]+)+", word)]
            yield (
                name,
                next((folder for folder in folders if not folder.startswith(("/etc", "/usr", "/bin"))), ""),
            )


def _interfaces(template: Part) -> list[dict[str, Any]]:
    return [
        interface
        for interface in _list(template.data.get("NetworkInterfaces"))
        if isinstance(interface, dict)
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
