"""Rules on: FSx for OpenZFS."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.fsx import openzfs
from ultracluster.config.remedy import write
from ultracluster.config.storage import NewOpenZfs
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import FSX

_CREATE_OPENZFS = "botocore 1.44.5 fsx: CreateFileSystemOpenZFSConfiguration"


@FSX.rule(
    40,
    "error",
    "The throughput of an OpenZFS file system is one that the deployment has",
    source=f"{_CREATE_OPENZFS}, ThroughputCapacity and DeploymentType",
)
def openzfs_throughput(made: NewOpenZfs) -> Iterator[Breach]:
    values = openzfs(made.deployment).throughput
    if made.throughput_mbps not in values:
        yield Breach(
            ("throughput_mbps",),
            f"{made.throughput_mbps} MB/s: each value is a size of file server, and "
            f"{made.deployment} has {values}.",
            write(*values.neighbours(made.throughput_mbps)),
        )


@FSX.rule(
    41,
    "error",
    "The capacity of an OpenZFS file system is one that FSx makes",
    source="botocore 1.44.5 fsx: CreateFileSystem, StorageCapacity",
)
def openzfs_capacity(made: NewOpenZfs) -> Iterator[Breach]:
    sizes = openzfs(made.deployment).capacity
    if made.capacity_gib not in sizes:
        yield Breach(
            ("capacity_gib",),
            f"{made.capacity_gib} GiB: FSx makes OpenZFS file systems of {sizes} GiB.",
            write(*sizes.neighbours(made.capacity_gib)),
        )
