"""From a production cluster to the smallest one on which the same jobs, scripts and stacks are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ultracluster.catalog import InstanceType, instance_type, instance_types
from ultracluster.plan.draft import Wishes
from ultracluster.plan.draft_check import deployable
from ultracluster.plan.draft_place import capacities

NODES = 2
"""Fewer have no fabric between them."""
_TRIES = 8


def small(wishes: Wishes, name: str) -> Wishes:
    """Two nodes of the smallest type with EFA of the accelerator's maker, on demand; else two of the same.

    Orchestrator and Region stay; zone, capacity and Lustre are chosen for it.
    """
    bare = replace(
        wishes, name=name, nodes=min(NODES, wishes.nodes), zone_id="", capacity="", capacity_id="",
        lustre_tib=None, protect=False, type_reason="", zone_reason="", capacity_reason="",
    )  # fmt: skip
    why = f"The smallest type with EFA that {wishes.orchestrator} takes in {wishes.region}, for trials"
    options = (replace(bare, instance_type=one, type_reason=why) for one in _smaller(wishes))
    return next(filter(deployable, islice(options, _TRIES)), bare)


def _smaller(wishes: Wishes) -> Iterator[str]:
    large = instance_type(wishes.instance_type)
    if large is None or large.accelerator is None:
        return
    maker = large.accelerator.manufacturer

    def fits(one: InstanceType) -> bool:
        return (
            one.accelerator is not None
            and one.accelerator.manufacturer == maker
            and one.architecture == large.architecture
            and bool(one.efa_interfaces)
            and one.vcpu < large.vcpu
            and "on-demand" in capacities(wishes.orchestrator, one.name)
        )

    # of equally small ones the younger: images and drivers support it longer
    yield from (
        one.name
        for one in sorted(filter(fits, instance_types().values()), key=lambda one: (one.vcpu, one.name))
    )
