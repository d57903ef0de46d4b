"""Instance types without accelerators that the catalogue does not know: what their names say of them."""

from __future__ import annotations

import re

from ultracluster.catalog.instance_facts import InstanceType

_NAME = re.compile(
    r"(?P<family>[cmrtx])(?P<generation>[3-9])(?P<options>[a-z]*)\."
    r"(?P<size>medium|large|(?P<times>|[234689]|1[0268]|24|32|48|96)xlarge)"
)
_GIB_PER_VCPU = {"c": 2, "m": 4, "t": 4, "r": 8, "x": 16}
_INTERFACES = {1: (2, 4), 2: (3, 10), 8: (4, 15), 48: (8, 30)}
"""vCPUs at most -> network interfaces and IPv4 addresses on each, as most families have them."""
_MOST_INTERFACES = (15, 50)
_SOURCE = 'an estimate by its name (EC2 Instance Types guide, "Instance type naming conventions", 2026-11-27)'


def estimated_type(name: str) -> InstanceType | None:
    """A type by its family and size; None where the name says neither.

    vCPUs follow the size, memory the family, and a `g` after the generation is Graviton. It has one network
    card and no EFA, and HyperPod, whose list is closed, does not take it.
    """
    if not (found := _NAME.fullmatch(name)):
        return None
    small = found["size"] in ("medium", "large")
    vcpu = 4 * int(found["times"] or 1) if not small else 2 if found["size"] == "large" else 1
    burst = found["family"] == "t" and vcpu == 1
    interfaces, addresses = next(
        (figures for most, figures in _INTERFACES.items() if vcpu <= most), _MOST_INTERFACES
    )
    return InstanceType(
        name=name,
        vcpu=2 if burst else vcpu,
        memory_gib=4 if burst else vcpu * _GIB_PER_VCPU[found["family"]],
        architecture="arm64" if "g" in found["options"] else "x86_64",
        network_interfaces=interfaces,
        network_interfaces_per_card=interfaces,
        ipv4_per_interface=addresses,
        efa_interfaces=0,
        efa_layout_rule="NO_EFA",
        hyperpod=False,
        hyperpod_addresses_slurm=1,
        hyperpod_addresses_eks=addresses,
        lustre_efa_client=False,
        lustre_efa_interfaces=0,
        lustre_gds_client=False,
        sources=(_SOURCE,),
        estimated=True,
    )
