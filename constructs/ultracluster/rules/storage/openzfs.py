"""Rules on: FSx for OpenZFS."""

from __future__ import annotations

from ultracluster.catalog.fsx import openzfs
from ultracluster.config.remedy import write
from ultracluster.config.storage import NewOpenZfs
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import FSX
from ultracluster.rules.sources import BOTOCORE

_CREATE_OPENZFS = f"{BOTOCORE} fsx: CreateFileSystemOpenZFSConfiguration"


@FSX.error(40, f"{_CREATE_OPENZFS}, ThroughputCapacity and DeploymentType")
def openzfs_throughput(settings: NewOpenZfs) -> Breaches:
    """The throughput of an OpenZFS file system is one that the deployment has."""
    values = openzfs(settings.deployment).throughput
    if settings.throughput_mbps not in values:
        yield at("throughput_mbps").breach(
            f"{settings.throughput_mbps} MB/s: each value is a size of file server, and "
            f"{settings.deployment} has {values}.",
            write(*values.neighbours(settings.throughput_mbps)),
        )


@FSX.error(41, f"{BOTOCORE} fsx: CreateFileSystem, StorageCapacity")
def openzfs_capacity(settings: NewOpenZfs) -> Breaches:
    """The capacity of an OpenZFS file system is one that FSx makes."""
    sizes = openzfs(settings.deployment).capacity
    if settings.capacity_gib not in sizes:
        yield at("capacity_gib").breach(
            f"{settings.capacity_gib} GiB: FSx makes OpenZFS file systems of {sizes} GiB.",
            write(*sizes.neighbours(settings.capacity_gib)),
        )
