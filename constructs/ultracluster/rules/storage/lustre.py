"""Rules on: FSx for Lustre: the file system itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from ultracluster.catalog import region
from ultracluster.catalog.fsx import (
    Series,
    alternatives,
    limits,
    lustre,
    lustre_deployments,
    lustre_offer,
    read_cache,
)
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import DROP, Remedy, ask, beside, drop, either, inside, whole, write
from ultracluster.config.storage import (
    ExistingLustre,
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import in_local_zone
from ultracluster.rules.sets import FSX

NewLustre = (
    ScratchLustre
    | Persistent1SsdLustre
    | Persistent1HddLustre
    | Persistent2SsdLustre
    | IntelligentTieringLustre
)

LUSTRE: Path = ("storage", "lustre")
_CREATE = "botocore 1.44.5 fsx: CreateFileSystem"
_CREATE_LUSTRE = "botocore 1.44.5 fsx: CreateFileSystemLustreConfiguration"


@FSX.rule(
    1,
    "error",
    "A throughput tier is one that the deployment has",
    source=f"{_CREATE_LUSTRE}, PerUnitStorageThroughput",
)
def throughput_tier(environment: Environment) -> Iterator[Breach]:
    made = _tiered(environment)
    tiers = lustre(made.deployment).throughput if made else None
    if not made or not tiers or made.throughput_mbps_per_tib in tiers:
        return
    tier = made.throughput_mbps_per_tib
    others = [
        other.name
        for other in lustre_deployments().values()
        if other.capacities and other.throughput and tier in other.throughput
    ]
    yield Breach(
        (*LUSTRE, "throughput_mbps_per_tib"),
        f"{tier} MB/s per TiB: {made.deployment} has the tiers {tiers}, and FSx refuses others.",
        _tiers(made, tiers.neighbours(tier)).noting(
            f"{tier} needs deployment: {alternatives(others)}" if others else ""
        ),
    )


@FSX.rule(
    2,
    "error",
    "The capacity of a Lustre file system is one that FSx makes",
    source=f"{_CREATE}, StorageCapacity",
)
def lustre_capacity(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if made is None or isinstance(made, IntelligentTieringLustre):
        return
    if isinstance(made, Persistent2SsdLustre) and made.efa:
        return  # FSX011 has the sizes for EFA
    tier = getattr(made, "throughput_mbps_per_tib", None)
    sizes = lustre(made.deployment).capacity(tier)
    if sizes is None or made.capacity_gib in sizes:
        return
    at = f" at {tier} MB/s per TiB" if isinstance(made, Persistent1HddLustre) else ""
    yield Breach(
        (*LUSTRE, "capacity_gib"),
        f"{made.capacity_gib} GiB: storage comes in whole disks, and for {made.deployment}{at} FSx "
        f"takes {sizes} GiB.",
        write(*sizes.neighbours(made.capacity_gib)),
    )


@FSX.rule(
    3,
    "error",
    "The Lustre version is one that the deployment runs",
    source=f"{_CREATE}, FileSystemTypeVersion",
)
def lustre_version(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if made and made.version not in lustre(made.deployment).versions:
        versions = lustre(made.deployment).versions
        yield Breach(
            (*LUSTRE, "version"),
            f"Lustre {made.version}: {made.deployment} runs {alternatives(list(versions))}, and "
            "the file system fails to be created.",
            write(versions[-1]),
        )


@FSX.rule(
    4,
    "error",
    "A metadata configuration has a Lustre version that takes one",
    source=f"{_CREATE}, FileSystemTypeVersion",
)
def metadata_version(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, Persistent2SsdLustre) or made.metadata_iops is None:
        return
    deployment = lustre(made.deployment)
    if made.version in deployment.versions and made.version not in deployment.metadata_versions:
        newest = deployment.metadata_versions[-1]
        yield Breach(
            (*LUSTRE, "version"),
            f"Lustre {made.version} takes no metadata configuration, and metadata_iops is "
            f"{made.metadata_iops}: FSx refuses the two together.",
            write(newest) | beside(metadata_iops=None),
        )


@FSX.rule(
    5,
    "warning",
    "HyperPod's Lustre client can talk to the server's version",
    source="aravneelaws/hyperpod-local-zone-quickstart; HyperPod Slurm AMI of 2026-07-09 "
    "(client 2.15, third party)",
    by_hand="lctl get_param version  (on a node)",
)
def client_refused(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if (
        made
        and made.version in limits().client_refused_by
        and made.version in lustre(made.deployment).versions
    ):
        client = limits().client_version
        yield Breach(
            (*LUSTRE, "version"),
            f"HyperPod's image has Lustre client {client}, and servers of {made.version} were "
            f"seen to refuse it: the nodes would not mount {made.mount_path}.",
            write(client),
        )


@FSX.rule(
    6,
    "error",
    "Metadata IOPS are a number that FSx provisions",
    source="botocore 1.44.5 fsx: CreateFileSystemLustreMetadataConfiguration, Iops",
)
def metadata_iops(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, Persistent2SsdLustre | IntelligentTieringLustre):
        return
    iops, accepted = made.metadata_iops, lustre(made.deployment).metadata_iops
    if isinstance(iops, int) and accepted and iops not in accepted:
        yield Breach(
            (*LUSTRE, "metadata_iops"),
            f"{iops} metadata IOPS: {made.deployment} takes {accepted}. They can grow later and "
            "never shrink.",
            write(
                *accepted.neighbours(iops), *(["automatic"] if isinstance(made, Persistent2SsdLustre) else [])
            ),
        )


@FSX.rule(
    7,
    "warning",
    "A Lustre file system fits the account's default quota",
    source="FSx for Lustre User Guide: Quotas",
    by_hand="aws service-quotas list-service-quotas --service-code fsx --region <region>",
)
def default_quota(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if made is None:
        return
    quota = lustre(made.deployment).quota
    code = limits().quota_codes[quota]
    if isinstance(made, IntelligentTieringLustre):
        key, wanted, unit = "throughput_mbps", made.throughput_mbps, "MB/s"
        most = limits().quota_intelligent_tiering_mbps
    else:
        key, wanted, unit = "capacity_gib", made.capacity_gib, "GiB"
        most = limits().quota_capacity_gib[quota]
    if wanted > most:
        yield Breach(
            (*LUSTRE, key),
            f"{wanted} {unit} of {made.deployment}: an account begins with {most} {unit} in a "
            "Region, and FSx refuses what goes beyond.",
            ask("action", f"have quota {code} raised first, or at most {most}"),
        )


@FSX.rule(
    20,
    "error",
    "Intelligent-Tiering throughput comes in steps",
    source=f"{_CREATE_LUSTRE}, ThroughputCapacity",
)
def tiering_throughput(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, IntelligentTieringLustre):
        return
    steps = lustre(made.deployment).throughput
    if steps and made.throughput_mbps not in steps:
        yield Breach(
            (*LUSTRE, "throughput_mbps"),
            f"{made.throughput_mbps} MB/s: file servers of an Intelligent-Tiering file system come "
            f"whole, and FSx takes {steps}. Throughput can grow later and never shrink.",
            write(*steps.neighbours(made.throughput_mbps)),
        )


@FSX.rule(
    21,
    "error",
    "A read cache has a size exactly when its mode is `sized`",
    source="botocore 1.44.5 fsx: LustreReadCacheConfiguration",
)
def read_cache_mode(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, IntelligentTieringLustre):
        return
    cache = made.read_cache
    if cache.mode == "sized" and cache.gib is None:
        sizes = _cache_sizes(made)
        yield Breach(
            (*LUSTRE, "read_cache"),
            "mode is `sized` and no size is given; FSx wants SizeGiB with it.",
            inside(gib=sizes.minimum) | inside(mode="proportional") if sizes else inside(mode="proportional"),
        )
    elif cache.mode != "sized" and cache.gib is not None:
        yield Breach(
            (*LUSTRE, "read_cache", "gib"),
            f"{cache.gib} GiB beside mode `{cache.mode}`, which leaves the size to FSx.",
            drop() | beside(mode="sized") if cache.gib in (_cache_sizes(made) or ()) else drop(),
        )


@FSX.rule(
    22,
    "error",
    "A read cache suits the throughput",
    source="botocore 1.44.5 fsx: LustreReadCacheConfiguration, SizeGiB",
)
def read_cache_size(environment: Environment) -> Iterator[Breach]:
    made = environment.storage.lustre
    if not isinstance(made, IntelligentTieringLustre):
        return
    gib, sizes = made.read_cache.gib, _cache_sizes(made)
    if made.read_cache.mode == "sized" and gib is not None and sizes and gib not in sizes:
        yield Breach(
            (*LUSTRE, "read_cache", "gib"),
            f"{gib} GiB of cache at {made.throughput_mbps} MB/s: each file server takes 32 to "
            f"131072 GiB for its 4000 MB/s, so that this file system takes {sizes}.",
            write(*sizes.neighbours(gib)),
        )


@FSX.rule(
    30,
    "error",
    "Root squash changes user and group, or neither",
    source="botocore 1.44.5 fsx: LustreRootSquashConfiguration",
)
def root_squash_ids(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    squash = made.root_squash if made else None
    if squash and bool(squash.uid) != bool(squash.gid):
        zero, other = ("uid", squash.gid) if squash.uid == 0 else ("gid", squash.uid)
        yield Breach(
            (*LUSTRE, "root_squash", zero),
            f"{squash.uid}:{squash.gid}: zero is root itself. FSx takes 0:0 (off) or two ids above "
            "zero, and refuses one of each.",
            write(other) | whole(DROP),
        )


@FSX.rule(
    31,
    "error",
    "Clients that root squash exempts are written as Lustre writes them",
    source="botocore 1.44.5 fsx: LustreNoSquashNid",
)
def root_squash_clients(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    squash = made.root_squash if made else None
    for index, nid in enumerate(squash.exempt_clients if squash else ()):
        if not _is_nid(nid):
            address = nid.partition("@")[0]
            yield Breach(
                (*LUSTRE, "root_squash", "exempt_clients", index),
                f"`{nid}` is not a client: FSx takes an IPv4 address, each part a number from 0 "
                "to 255 or a range in brackets, and `@tcp`.",
                write(f"{address}@tcp")
                if _is_nid(f"{address}@tcp")
                else ask("fact", "a client such as 10.0.1.6@tcp or 10.0.[2-10].[1-255]@tcp"),
            )


@FSX.rule(
    33,
    "warning",
    "The Region and zone have the deployment",
    source="FSx for Lustre User Guide, Deployment type availability",
    by_hand="aws ec2 describe-availability-zones --all-availability-zones  (the zone's city)",
)
def deployment_offered(environment: Environment) -> Iterator[Breach]:
    made, home = new_lustre(environment), region(environment.region)
    if made is None or home is None:
        return
    zone_id = environment.network.zone_id
    local = in_local_zone(home, zone_id)
    offer = lustre_offer(home.name, zone_id, local=local)
    if offer is None or made.deployment == "scratch-1":
        return
    where = zone_id if local else home.name
    if made.deployment not in offer.deployments:
        yield Breach(
            (*LUSTRE, "deployment"),
            f"AWS does not list {made.deployment} for {where}: the storage stack would fail.",
            either(*(other_deployment(made, one) for one in offer.deployments))
            if offer.deployments
            else ask("fact", "a zone that the guide lists, or acknowledge if it lists the city of this one"),
        )
    elif isinstance(made, Persistent2SsdLustre) and offer.limited:
        tiers = alternatives([str(tier) for tier in offer.limited])
        if made.throughput_mbps_per_tib not in offer.limited:
            yield Breach(
                (*LUSTRE, "throughput_mbps_per_tib"),
                f"{where} has {made.deployment} with {tiers} MB/s per TiB, not "
                f"{made.throughput_mbps_per_tib}: the storage stack would fail.",
                _tiers(made, offer.limited),
            )
        if made.efa:
            yield Breach(
                (*LUSTRE, "efa"),
                f"{where} has {made.deployment} without EFA: the storage stack would fail.",
                efa_off(environment),
            )


def new_lustre(environment: Environment) -> NewLustre | None:
    """The Lustre file system that is made; None for none and for one that exists."""
    made = environment.storage.lustre
    return None if isinstance(made, ExistingLustre) else made


def _tiered(
    environment: Environment,
) -> Persistent1SsdLustre | Persistent1HddLustre | Persistent2SsdLustre | None:
    made = new_lustre(environment)
    return None if isinstance(made, ScratchLustre | IntelligentTieringLustre) else made


def _cache_sizes(made: IntelligentTieringLustre) -> Series | None:
    """None while the throughput itself is wrong."""
    steps = lustre(made.deployment).throughput
    return read_cache(made.throughput_mbps) if steps and made.throughput_mbps in steps else None


def _is_nid(text: str) -> bool:
    if not re.fullmatch(limits().nid_pattern, text):
        return False
    for part in text.removesuffix("@tcp").split("."):
        ends = re.fullmatch(r"(\d{1,3})|\[(\d{1,3})(?:-(\d{1,3}))?\]", part)
        if not ends:
            return False
        numbers = [int(end) for end in ends.groups() if end]
        if numbers != sorted(numbers) or numbers[-1] > 255:
            return False
    return True


def efa_off(environment: Environment) -> Remedy:
    """No EFA, and nothing that needs it."""
    gds = getattr(environment.storage.lustre, "gds", False)
    return beside(efa=False, gds=False) if gds else beside(efa=False)


def _tiers(made: Any, tiers: Iterable[int]) -> Remedy:
    """These tiers, each with the nearest capacity that it allows."""
    return either(*(beside(**_sized(made.deployment, made, tier)) for tier in tiers))


def _sized(name: str, made: Any, tier: int) -> dict[str, Any]:
    changes: dict[str, Any] = {"throughput_mbps_per_tib": tier}
    sizes = lustre(name).capacity(tier, efa=getattr(made, "efa", False) and name == made.deployment)
    if sizes and made.capacity_gib not in sizes:
        changes["capacity_gib"] = sizes.neighbours(made.capacity_gib)[-1]
    return changes


_MODELS = (ScratchLustre, Persistent1SsdLustre, Persistent1HddLustre, Persistent2SsdLustre)


def other_deployment(made: NewLustre, name: str) -> Remedy:
    """Another deployment with what it needs and without what it lacks; for a finding at a key of `lustre`."""
    model = next(one for one in _MODELS if name in get_args(one.model_fields["deployment"].annotation))
    changes: dict[str, Any] = {"deployment": name}
    changes |= {key: DROP for key in sorted(made.model_fields_set) if key not in model.model_fields}
    known, tier = lustre(name), getattr(made, "throughput_mbps_per_tib", None)
    if known.throughput and (tier is None or tier not in known.throughput):
        tier = (known.throughput.neighbours(tier) if tier else known.throughput.neighbours(0))[-1]
        changes["throughput_mbps_per_tib"] = tier
    sizes, capacity = known.capacity(tier), getattr(made, "capacity_gib", 0)
    if sizes and capacity not in sizes:
        changes["capacity_gib"] = sizes.neighbours(capacity)[-1]
    if name == "persistent-1-hdd" and made.deployment != name:
        changes["drive_cache"] = "none"
    if made.version not in known.versions:
        changes["version"] = known.versions[-1]
    return beside(**changes)
