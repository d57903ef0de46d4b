"""Rules on: FSx for Lustre: capacity, throughput, version and metadata of a file system that is made."""

from __future__ import annotations

from ultracluster.catalog.fsx import alternatives, limits, lustre, lustre_deployments
from ultracluster.catalog.images import Image
from ultracluster.catalog.lustre_kernels import lustre_client, lustre_servers
from ultracluster.config.lustre import LustreFacts, NewLustre
from ultracluster.config.remedy import ask, beside, write
from ultracluster.config.storage import (
    IntelligentTieringLustre,
    Persistent1HddLustre,
    Persistent1SsdLustre,
    Persistent2SsdLustre,
)
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.lustre_changes import other_tiers
from ultracluster.rules.sets import FSX
from ultracluster.rules.sources import BOTOCORE
from ultracluster.software.node_image import node_image

CREATE = f"{BOTOCORE} fsx: CreateFileSystem"
CREATE_LUSTRE = f"{BOTOCORE} fsx: CreateFileSystemLustreConfiguration"

TieredLustre = Persistent1SsdLustre | Persistent1HddLustre | Persistent2SsdLustre
"""Deployments whose throughput is chosen by tier."""


@FSX.error(1, f"{CREATE_LUSTRE}, PerUnitStorageThroughput")
def throughput_tier(settings: TieredLustre, facts: LustreFacts) -> Breaches:
    """The throughput tier is one that the Lustre deployment has."""
    tier, tiers = settings.throughput_mbps_per_tib, lustre(settings.deployment).throughput
    if not tiers or tier in tiers:
        return
    others = [
        other.name
        for other in lustre_deployments().values()
        if other.capacities and other.throughput and tier in other.throughput
    ]
    yield at("throughput_mbps_per_tib").breach(
        f"{tier} MB/s per TiB: {settings.deployment} has the tiers {tiers}, and FSx refuses others.",
        other_tiers(facts, tiers.neighbours(tier)).noting(
            f"{tier} needs deployment: {alternatives(others)}" if others else ""
        ),
    )


@FSX.error(2, f"{CREATE}, StorageCapacity")
def lustre_capacity(settings: NewLustre, facts: LustreFacts) -> Breaches:
    """The capacity of a Lustre file system is one that FSx makes."""
    if facts.efa or facts.capacity_gib is None:
        return  # FSX011 has the sizes for EFA; elastic storage has none
    tier = facts.throughput_mbps_per_tib
    sizes = lustre(settings.deployment).capacity(tier)
    if sizes is None or facts.capacity_gib in sizes:
        return
    speed = f" at {tier} MB/s per TiB" if isinstance(settings, Persistent1HddLustre) else ""
    yield at("capacity_gib").breach(
        f"{facts.capacity_gib} GiB: storage comes in whole disks, and for {settings.deployment}{speed} FSx "
        f"takes {sizes} GiB.",
        write(*sizes.neighbours(facts.capacity_gib)),
    )


@FSX.error(3, f"{CREATE}, FileSystemTypeVersion")
def lustre_version(settings: NewLustre) -> Breaches:
    """The Lustre version is one that the deployment runs."""
    versions = lustre(settings.deployment).versions
    if settings.version not in versions:
        yield at("version").breach(
            f"Lustre {settings.version}: {settings.deployment} runs {alternatives(list(versions))}, and "
            "the file system fails to be created.",
            write(versions[-1]),
        )


@FSX.error(4, f"{CREATE}, FileSystemTypeVersion")
def metadata_version(settings: Persistent2SsdLustre) -> Breaches:
    """metadata_iops is set only with a Lustre version that takes it."""
    deployment = lustre(settings.deployment)
    if settings.metadata_iops is None or settings.version not in deployment.versions:
        return
    if settings.version not in deployment.metadata_versions:
        yield at("version").breach(
            f"Lustre {settings.version} takes no metadata configuration, and metadata_iops is "
            f"{settings.metadata_iops}: FSx refuses the two together.",
            write(deployment.metadata_versions[-1]) | beside(metadata_iops=None),
        )


@FSX.warning(
    5,
    "FSx for Lustre User Guide, Lustre file system and client kernel compatibility; the images' notes",
    "2026-11-28",
    by_hand="lctl get_param version  (on a node)",
)
def lustre_client_version(settings: NewLustre, facts: LustreFacts, cluster: Cluster) -> Breaches:
    """The Lustre client of each image reaches servers of the version."""
    if settings.version not in lustre(settings.deployment).versions:
        return  # FSX003 reports it
    for name in cluster.groups:
        image = node_image(cluster.environment, name).image if facts.mounted_by(name) else None
        client = _client(image) if image else None
        servers = lustre_servers(image.os, client) if image and client else ()
        if image is None or not servers or settings.version in servers:
            continue
        both = [version for version in lustre(settings.deployment).versions if version in servers]
        yield at("version").breach(
            f"`{name}` boots an image with {image.os}, whose Lustre client is {client}: FSx lists servers of "
            f"{alternatives(list(servers))} for it, not of {settings.version}. Its nodes may not mount "
            f"{settings.mount_path}.",
            write(*both[::-1]) if both else ask("decision", "another deployment, or another image"),
        )
        return  # one group is reason enough


def _client(image: Image) -> str | None:
    """Version of the Lustre client that nodes of an image have; None where nobody says."""
    fact = image.fact("lustre_client")
    named = fact.value if fact and isinstance(fact.value, str) else None
    return named or lustre_client(image.os)


@FSX.error(6, f"{BOTOCORE} fsx: CreateFileSystemLustreMetadataConfiguration, Iops")
def metadata_iops(settings: Persistent2SsdLustre | IntelligentTieringLustre) -> Breaches:
    """metadata_iops is a number that FSx provisions."""
    iops, accepted = settings.metadata_iops, lustre(settings.deployment).metadata_iops
    if isinstance(iops, int) and accepted and iops not in accepted:
        automatic = ["automatic"] if isinstance(settings, Persistent2SsdLustre) else []
        yield at("metadata_iops").breach(
            f"{iops} metadata IOPS: {settings.deployment} takes {accepted}. They can grow later and "
            "never shrink.",
            write(*accepted.neighbours(iops), *automatic),
        )


@FSX.warning(
    7,
    "FSx for Lustre User Guide: Quotas",
    by_hand="aws service-quotas list-service-quotas --service-code fsx --region <region>",
)
def default_quota(settings: NewLustre) -> Breaches:
    """A Lustre file system fits the account's default quota."""
    quota = lustre(settings.deployment).quota
    code = limits().quota_codes[quota]
    if isinstance(settings, IntelligentTieringLustre):
        key, amount, unit = "throughput_mbps", settings.throughput_mbps, "MB/s"
        most = limits().quota_intelligent_tiering_mbps
    else:
        key, amount, unit = "capacity_gib", settings.capacity_gib, "GiB"
        most = limits().quota_capacity_gib[quota]
    if amount > most:
        yield at(key).breach(
            f"{amount} {unit} of {settings.deployment}: an account begins with {most} {unit} in a "
            "Region, and FSx refuses what goes beyond.",
            ask("action", f"have quota {code} raised first, or take at most {most}"),
        )
