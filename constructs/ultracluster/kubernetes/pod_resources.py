"""What a pod of a training job takes of a node, and what it mounts."""

from __future__ import annotations

from ultracluster.model.team_shares import Pool

HUGE_PAGES_MIB = 5120
"""Of 2 MiB pages that EFA's installer reserves on a node (EKS User Guide, Run machine learning training on
Amazon EKS with Elastic Fabric Adapter)."""


def efa_interfaces(pool: Pool) -> int:
    """EFA interfaces that every node of the pool has."""
    return pool.instance_type.least_efa_interfaces


def whole_node(pool: Pool) -> dict[str, str]:
    """Requests of a pod that has a node to itself, beside what runs on every node.

    All accelerators and EFA interfaces, nine tenths of the processors, four fifths of the memory.
    """
    known = pool.instance_type
    wanted = {pool.resource: str(pool.per_node)}
    if interfaces := efa_interfaces(pool):
        wanted |= {"vpc.amazonaws.com/efa": str(interfaces), "hugepages-2Mi": f"{HUGE_PAGES_MIB}Mi"}
    if known.vcpu:
        wanted["cpu"] = str(max(1, known.vcpu * 9 // 10))
    if known.memory_gib:
        wanted["memory"] = f"{max(1, int(known.memory_gib) * 4 // 5)}Gi"
    return wanted


__all__ = ["HUGE_PAGES_MIB", "efa_interfaces", "whole_node"]
