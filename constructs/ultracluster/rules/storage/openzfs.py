"""Rules on: FSx for OpenZFS."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog.fsx import openzfs, openzfs_deployments
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import Remedy, ask, beside, either, write
from ultracluster.config.storage import NewOpenZfs
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import FSX

OPENZFS: Path = ("storage", "openzfs")
_CREATE_OPENZFS = "botocore 1.44.5 fsx: CreateFileSystemOpenZFSConfiguration"


@FSX.rule(
    40,
    "error",
    "The throughput of an OpenZFS file system is one that the deployment has",
    source=f"{_CREATE_OPENZFS}, ThroughputCapacity and DeploymentType",
)
def openzfs_throughput(environment: Environment) -> Iterator[Breach]:
    made = new_openzfs(environment)
    if made and made.throughput_mbps not in (values := openzfs(made.deployment).throughput):
        yield Breach(
            (*OPENZFS, "throughput_mbps"),
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
def openzfs_capacity(environment: Environment) -> Iterator[Breach]:
    made = new_openzfs(environment)
    if made and made.capacity_gib not in (sizes := openzfs(made.deployment).capacity):
        yield Breach(
            (*OPENZFS, "capacity_gib"),
            f"{made.capacity_gib} GiB: FSx makes OpenZFS file systems of {sizes} GiB.",
            write(*sizes.neighbours(made.capacity_gib)),
        )


@FSX.rule(
    42,
    "warning",
    "The Region has the OpenZFS deployment",
    source="FSx for OpenZFS User Guide: Availability by AWS Region; awslabs/awsome-distributed-ai#1097",
)
def openzfs_offered(environment: Environment) -> Iterator[Breach]:
    made = new_openzfs(environment)
    if made is None or environment.region not in openzfs(made.deployment).regions_without:
        return
    others = [
        other.name
        for other in openzfs_deployments().values()
        if environment.region not in other.regions_without
    ]
    # a standby stays a standby where there is a choice
    others.sort(key=lambda name: ("-ha-" in name) != ("-ha-" in made.deployment))
    yield Breach(
        (*OPENZFS, "deployment"),
        f"AWS's table shows {environment.region} without {openzfs(made.deployment).api_type}: FSx "
        "refuses it as not available in the zone.",
        either(*(_other_deployment(made, one) for one in others))
        if others
        else ask("decision", "another Region"),
    )


def new_openzfs(environment: Environment) -> NewOpenZfs | None:
    """The OpenZFS file system that is made; None for none and for one that exists."""
    made = environment.storage.openzfs
    return made if isinstance(made, NewOpenZfs) else None


def _other_deployment(made: NewOpenZfs, name: str) -> Remedy:
    values = openzfs(name).throughput
    if made.throughput_mbps in values:
        return write(name)
    return beside(deployment=name, throughput_mbps=values.neighbours(made.throughput_mbps)[-1])
