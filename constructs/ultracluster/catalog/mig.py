"""GPUs that MIG cuts: profiles of each, and which of them fit on one GPU together.

`mig_profiles.json` has them with source and date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ultracluster.catalog.files import catalog_file
from ultracluster.catalog.instance_facts import InstanceType

_document = partial(catalog_file, "mig_profiles")


def mig_profiles(instance_type: InstanceType) -> Mapping[str, int]:
    """Instances that each MIG profile makes of one GPU, smallest first; empty where it has no MIG."""
    gpu = _gpu(instance_type)
    return MappingProxyType({**gpu["profiles"], gpu["media"]: 1} if gpu else {})


def balanced_profiles(instance_type: InstanceType) -> Mapping[str, int]:
    """Instances of each profile that the layout `all-balanced` makes of one GPU; empty without MIG."""
    gpu = _gpu(instance_type)
    return MappingProxyType(dict(gpu["balanced"]) if gpu else {})


def mig_devices(instance_type: InstanceType) -> tuple[str, ...]:
    """PCI ids of its GPUs, as mig-parted filters by them."""
    gpu = _gpu(instance_type)
    return tuple(gpu["devices"]) if gpu else ()


def fits_on_gpu(instance_type: InstanceType, profiles: Mapping[str, int]) -> bool:
    """Return whether these instances have a place on one GPU together."""
    return places_on_gpu(instance_type, profiles) is not None


def places_on_gpu(
    instance_type: InstanceType, profiles: Mapping[str, int]
) -> tuple[tuple[str, int], ...] | None:
    """Instances that have a place on one GPU together, the largest first, each with its first slice of
    memory; None where they have not.

    Each takes some of its seven compute slices and eight slices of memory, and only certain ones.
    """
    known = mig_profiles(instance_type)
    if any(count > known.get(profile, 0) for profile, count in profiles.items()):
        return None
    wanted = [
        (*_placement(profile, known), profile) for profile in profiles for _ in range(profiles[profile])
    ]
    slices = sum(int(profile.partition("g")[0]) * count for profile, count in profiles.items())
    return _placed(sorted(wanted, reverse=True), frozenset()) if slices <= _SLICES else None


def is_partition(profile: str) -> bool:
    """Return whether a compute quota of task governance can count it."""
    return profile in _document()["partitions"]


_SLICES = 7


def _placement(profile: str, known: Mapping[str, int]) -> tuple[int, tuple[int, ...]]:
    slices = profile.partition(".")[0]
    double = slices == "1g" and "+" not in profile and known[profile] < _SLICES
    size, starts = _document()["placements"]["1g double" if double else slices]
    return size, tuple(starts)


def _placed(
    wanted: Sequence[tuple[int, tuple[int, ...], str]], taken: frozenset[int]
) -> tuple[tuple[str, int], ...] | None:
    if not wanted:
        return ()
    size, starts, profile = wanted[0]
    for start in starts:
        place = frozenset(range(start, start + size))
        others = None if place & taken else _placed(wanted[1:], taken | place)
        if others is not None:
            return ((profile, start), *others)
    return None


def _gpu(instance_type: InstanceType) -> Mapping[str, Any] | None:
    accelerator = instance_type.accelerator
    if accelerator is None or not accelerator.count:
        return None
    each = accelerator.memory_gib / accelerator.count
    fitting = [
        gpu
        for gpu in _document()["gpus"].values()
        if gpu["accelerator"] == accelerator.name and each >= gpu["from_gib"]
    ]
    return max(fitting, key=lambda gpu: gpu["from_gib"], default=None)


__all__ = ["balanced_profiles", "fits_on_gpu", "is_partition", "mig_devices", "mig_profiles", "places_on_gpu"]
