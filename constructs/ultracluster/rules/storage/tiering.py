"""Rules on: Lustre file systems of Intelligent-Tiering: throughput and read cache."""

from __future__ import annotations

from ultracluster.catalog.fsx import Series, lustre, read_cache
from ultracluster.config.remedy import beside, drop, inside, write
from ultracluster.config.storage import IntelligentTieringLustre
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import FSX
from ultracluster.rules.sources import BOTOCORE
from ultracluster.rules.storage.lustre import CREATE_LUSTRE

_CACHE = f"{BOTOCORE} fsx: LustreReadCacheConfiguration"


@FSX.error(20, f"{CREATE_LUSTRE}, ThroughputCapacity")
def tiering_throughput(settings: IntelligentTieringLustre) -> Breaches:
    """The throughput of Intelligent-Tiering is a multiple that FSx takes."""
    steps = lustre(settings.deployment).throughput
    if steps and settings.throughput_mbps not in steps:
        yield at("throughput_mbps").breach(
            f"{settings.throughput_mbps} MB/s: file servers of an Intelligent-Tiering file system come "
            f"whole, and FSx takes {steps}. Throughput can grow later and never shrink.",
            write(*steps.neighbours(settings.throughput_mbps)),
        )


@FSX.error(21, _CACHE)
def read_cache_mode(settings: IntelligentTieringLustre) -> Breaches:
    """A read cache has a size exactly when its mode is `sized`."""
    cache = settings.read_cache
    if cache.mode == "sized" and cache.gib is None:
        sizes = _cache_sizes(settings)
        yield at("read_cache").breach(
            "mode is `sized` and no size is given; FSx requires SizeGiB with it.",
            inside(gib=sizes.minimum) | inside(mode="proportional") if sizes else inside(mode="proportional"),
        )
    elif cache.mode != "sized" and cache.gib is not None:
        yield at("read_cache", "gib").breach(
            f"{cache.gib} GiB is given, and mode `{cache.mode}` leaves the size to FSx.",
            drop() | beside(mode="sized") if cache.gib in (_cache_sizes(settings) or ()) else drop(),
        )


@FSX.error(22, f"{_CACHE}, SizeGiB")
def read_cache_size(settings: IntelligentTieringLustre) -> Breaches:
    """The size of a read cache suits the throughput."""
    gib, sizes = settings.read_cache.gib, _cache_sizes(settings)
    if settings.read_cache.mode == "sized" and gib is not None and sizes and gib not in sizes:
        yield at("read_cache", "gib").breach(
            f"{gib} GiB of cache at {settings.throughput_mbps} MB/s: each file server takes 32 to "
            f"131072 GiB for its 4000 MB/s, so this file system takes {sizes}.",
            write(*sizes.neighbours(gib)),
        )


def _cache_sizes(settings: IntelligentTieringLustre) -> Series | None:
    """None while the throughput itself is wrong."""
    steps = lustre(settings.deployment).throughput
    return read_cache(settings.throughput_mbps) if steps and settings.throughput_mbps in steps else None
