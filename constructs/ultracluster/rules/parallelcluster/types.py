"""Rules on: ParallelCluster. Instance types, and the images and root volumes that they boot from."""

from __future__ import annotations

from ultracluster.catalog import InstanceType, instance_types
from ultracluster.catalog.parallelcluster import Family, parallelcluster, version
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.remedy import Remedy, anywhere, ask, drop, write
from ultracluster.model import Cluster, Group
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.groups.types import alike
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER


@PCL.error(30, f"{PCLUSTER}, InstanceTypeOSCompatibleValidator", DATE)
def type_supports_os(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """ParallelCluster supports the operating system on the instance type."""
    for name, group in cluster.groups.items():
        family = family_of(group)
        if family and family.systems and settings.os not in family.systems:
            yield at("os").breach(
                f"`{name}` has {group.settings.instance_type}, on which ParallelCluster supports only "
                f"{', '.join(family.systems)}, not {settings.os}.",
                write("ubuntu2404" if "ubuntu2404" in family.systems else family.systems[0]),
            )


@PCL.error(
    31,
    "release notes of ParallelCluster 3.14.0 and 3.15.0; aws/aws-parallelcluster#7143",
    DATE,
)
def release_supports_type(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """The ParallelCluster release supports the instance type."""
    for name, group in cluster.groups.items():
        family = family_of(group)
        if family and version(settings.version) < version(family.since):
            yield at("version").breach(
                f"`{name}` has {group.settings.instance_type}, which ParallelCluster launches from "
                f"{family.since} on ({family.source}), and this is {settings.version}.",
                write(parallelcluster().judged_versions[-1]),
            )


@PCL.error(
    32,
    f"{PCLUSTER}, InstanceArchitectureCompatibilityValidator; its official images are chosen by the "
    "head node's architecture",
    DATE,
)
def one_architecture(cluster: Cluster) -> Breaches:
    """All nodes have the same processor architecture."""
    leader = next((group for group in cluster.with_role("compute").values() if group.type), None)
    if not leader or not leader.type or not leader.type.architecture:
        return
    architecture = leader.type.architecture
    for name, group in cluster.groups.items():
        kind = group.type
        if kind and kind.architecture and kind.architecture != architecture:
            yield at("node_groups", name, "instance_type").breach(
                f"{kind.name} is {kind.architecture}, and `{leader.name}` ({leader.type.name}) is "
                f"{architecture}: head, login and compute nodes of a cluster must have the same "
                "architecture.",
                alike(kind, architecture, group.role),
            )


@PCL.error(33, f"{PCLUSTER}, HeadNodeMemorySizeValidator", DATE)
def head_memory(group: Group, cluster: Cluster) -> Breaches:
    """The head node has enough memory for the number of nodes."""
    nodes = sum(other.most_nodes for other in cluster.with_role("compute").values())
    needed = parallelcluster().head_memory_gb(nodes)
    kind = group.type if group.role == "controller" else None
    if kind and kind.memory_gib and kind.memory_gib < needed:
        yield at("instance_type").breach(
            f"{kind.name} has {kind.memory_gib:g} GB, and the head node of {nodes} nodes requires "
            f"{needed:.1f}.",
            _with_memory(kind, needed),
        )


@PCL.warning(34, f"{PCLUSTER}, InstanceTypeOSCompatibleValidator", DATE)
def instance_memory(group: Group, settings: ParallelCluster) -> Breaches:
    """No instance is too small for the operating system."""
    small, kind = parallelcluster().small_sizes, group.settings.instance_type
    if settings.os in small["systems"] and any(size in kind for size in small["names"]):
        arm = group.type is not None and group.type.architecture == "arm64"
        yield at("instance_type").breach(
            f"{kind} is too small for {settings.os}: ParallelCluster requires 1.7 GB of memory or more.",
            write("m7g.xlarge" if arm else "m5.xlarge"),
        )


@PCL.error(36, f"{PCLUSTER}, OsCustomAmiValidator", DATE)
def image_published(group: Group, settings: ParallelCluster) -> Breaches:
    """Every group names an image where ParallelCluster publishes none."""
    if settings.os in parallelcluster().systems_without_image and not group.settings.image:
        yield at("image").breach(
            f"ParallelCluster publishes no image of {settings.os}.",
            anywhere({("orchestrator", "os"): "ubuntu2404"}).noting(
                "or image: ami-... from `pcluster build-image`"
            ),
        )


@PCL.warning(
    37,
    f"{PCLUSTER}, CustomAmiTagValidator and AmiOsCompatibleValidator",
    DATE,
    by_hand="aws ec2 describe-images --image-ids <ami> --query 'Images[].[Tags,Architecture]'",
)
def image_built_by_parallelcluster(group: Group, settings: ParallelCluster) -> Breaches:
    """Images are built by ParallelCluster."""
    if group.settings.image:
        yield at("image").breach(
            f"{group.settings.image} must come from `pcluster build-image` of {settings.version} with "
            f"{settings.os}: ParallelCluster refuses images of other releases by their tags, and nodes from "
            "images without its software never join.",
            drop().noting("to use ParallelCluster's own image; or check the image and acknowledge this"),
        )


@PCL.error(39, f"{PCLUSTER}, RootVolumeSizeValidator; release notes of 3.16.2", DATE)
def root_volume_size(group: Group, settings: ParallelCluster) -> Breaches:
    """A root volume is at least as large as the image's."""
    least, size = parallelcluster().root_volume_gib(settings.version), group.settings.root_volume_gib
    if group.role != "login" and size < least:
        yield at("root_volume_gib").breach(
            f"{size} GiB is too small: ParallelCluster's images of {settings.version} have {least}.",
            write(least),
        )


def family_of(group: Group) -> Family | None:
    """What ParallelCluster requires of the family of the group's type."""
    return parallelcluster().families.get(group.settings.instance_type.partition(".")[0])


def _with_memory(kind: InstanceType, needed: float) -> Remedy:
    """The smallest general type of the architecture with that memory."""
    family = "m7g." if kind.architecture == "arm64" else "m5."
    fits = [
        other
        for other in instance_types().values()
        if other.name.startswith(family) and other.memory_gib and other.memory_gib >= needed
    ]
    least = min(fits, key=lambda other: (other.memory_gib, other.name), default=None)
    return write(least.name) if least else ask("decision", "use fewer nodes, or a type with more memory")
