"""How fast the root volumes of nodes are (Amazon EBS User Guide, "General Purpose SSD volumes").

Container images of 20 to 40 GB are written to the root volume and read from it again: at gp3's 125 MiB/s
that is ten minutes of a node's start, at 1000 MiB/s one and a half. At $0.04 for a MB/s and $0.005 for an I/O
operation a second it adds some $40 a month to a node that costs $20,000 and more.
"""

from __future__ import annotations

from ultracluster.catalog import InstanceType
from ultracluster.config.nodes import NodeGroup

INCLUDED_MBPS = 125
"""What a gp3 volume has for nothing, in MiB/s."""
INCLUDED_IOPS = 3000
"""What a gp3 volume has for nothing, in I/O operations a second."""
ACCELERATED_MBPS = 1000
"""What nodes with accelerators get by default, in MiB/s: the most that ParallelCluster takes."""
_MBPS_PER_IOPS = 0.25
"""At most."""


def root_throughput(group: NodeGroup, instance_type: InstanceType | None) -> int:
    """MiB/s of a group's root volumes."""
    if group.root_volume_throughput_mbps is not None:
        return group.root_volume_throughput_mbps
    accelerated = (
        group.role == "compute" and instance_type is not None and instance_type.accelerator is not None
    )
    return ACCELERATED_MBPS if accelerated else INCLUDED_MBPS


IO2_TIERS = (32_000, 64_000, 256_000)
"""IOPS of an io2 volume up to each of which one price holds (Amazon EBS pricing)."""
IO2_IOPS_PER_GIB = 1000
"""At most (Amazon EBS User Guide, "Provisioned IOPS SSD (io2) Block Express volumes")."""


def io2_tiers(iops: int) -> tuple[int, ...]:
    """IOPS of an io2 volume in each tier of the price."""
    lows = (0, *IO2_TIERS)
    return tuple(max(0, min(iops, high) - low) for low, high in zip(lows, IO2_TIERS, strict=False))


def root_iops(throughput_mbps: int) -> int:
    """I/O operations a second that EBS requires with a throughput."""
    return max(INCLUDED_IOPS, round(throughput_mbps / _MBPS_PER_IOPS))
