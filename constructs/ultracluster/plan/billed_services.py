"""What an environment is billed for beside its nodes and control plane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ultracluster.config import Environment
from ultracluster.config.kubernetes import Eks, HyperPodEks
from ultracluster.config.storage import (
    ExistingLustre,
    IntelligentTieringLustre,
    Persistent2SsdLustre,
    ScratchLustre,
)
from ultracluster.model import resolve
from ultracluster.model.endpoints import made_endpoints
from ultracluster.plan.billed_item import Item, standing


def services(environment: Environment) -> Iterator[Item]:
    """Storage, network and security, then what is billed by use."""
    yield from _lustre(environment)
    yield from _open_zfs(environment)
    yield from _database(environment)
    yield from _network(environment)
    yield from _security(environment)
    yield from _by_use(environment)


def _lustre(environment: Environment) -> Iterator[Item]:
    lustre = environment.storage.lustre
    if lustre is None or isinstance(lustre, ExistingLustre):
        return
    key = f"lustre.{lustre.deployment}"
    if isinstance(lustre, IntelligentTieringLustre):
        speed = lustre.throughput_mbps
        yield standing(
            "storage", f"Lustre throughput, {lustre.deployment}", f"{key}.throughput", "MB/s", speed
        )
        yield standing("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops)
        if lustre.read_cache.mode == "sized":
            yield standing("storage", "Lustre read cache", f"{key}.cache", "GiB", lustre.read_cache.gib or 0)
        elif lustre.read_cache.mode == "proportional":
            # FSx decides its size; without one there is nothing to multiply
            yield standing("storage", "Lustre read cache, size by throughput", "", "cache")
        return
    tier = "" if isinstance(lustre, ScratchLustre) else f".{lustre.throughput_mbps_per_tib}"
    cache = "-cached" if getattr(lustre, "drive_cache", "none") == "read" else ""
    speed = f", {tier[1:]}/TiB" if tier else ""
    yield standing(
        "storage", f"Lustre {lustre.deployment}{speed}", f"{key}{tier}{cache}", "GiB", lustre.capacity_gib
    )
    if isinstance(lustre, Persistent2SsdLustre) and isinstance(lustre.metadata_iops, int):
        yield replace(
            standing("storage", "Lustre metadata IOPS", f"{key}.metadata", "IOPS", lustre.metadata_iops),
            note="some of them may come with the capacity",
        )


def _open_zfs(environment: Environment) -> Iterator[Item]:
    home = environment.storage.openzfs
    if home is None or home.deployment == "existing":
        return
    key = f"openzfs.{home.deployment}"
    yield standing("storage", f"OpenZFS {home.deployment}", f"{key}.storage", "GiB", home.capacity_gib)
    yield standing("storage", "OpenZFS throughput", f"{key}.throughput", "MB/s", home.throughput_mbps)


def _database(environment: Environment) -> Iterator[Item]:
    database = environment.storage.accounting_database
    if database is None or database.kind == "existing":
        return
    zones = "-multi-az" if database.multi_az else ""
    two = ", 2 zones" if database.multi_az else ""
    yield standing(
        "storage",
        f"RDS MySQL db.{database.instance_class}{two}",
        f"rds.mysql{zones}.{database.instance_class}",
        "instance",
    )
    yield standing("storage", f"RDS storage, gp3{two}", f"rds.storage{zones}", "GiB", database.storage_gib)


def _network(environment: Environment) -> Iterator[Item]:
    if _makes_nat(environment):
        yield standing("network", "NAT gateway", "nat", "gateway")
        yield standing("network", "public IPv4 of the NAT gateway", "ipv4", "address")
    interfaces = [one for one in made_endpoints(resolve(environment)) if one.kind == "interface"]
    if interfaces:
        yield standing("network", "interface endpoints, one zone", "endpoint", "endpoint", len(interfaces))


def _makes_nat(environment: Environment) -> bool:
    return environment.network.egress == "nat" and environment.network.vpc is None


def _security(environment: Environment) -> Iterator[Item]:
    kubernetes = isinstance(environment.orchestrator, Eks | HyperPodEks)
    ours = 0 if environment.storage.key else 1 + kubernetes  # the control plane has one of its own
    keys = ours + (environment.network.vpc is None)  # flow logs
    if keys:
        yield standing("security", "KMS keys", "kms.key", "key", keys)
    database = environment.storage.accounting_database
    if database is not None and database.kind != "existing":
        yield standing("security", "secret of the database", "secret", "secret")


def _by_use(environment: Environment) -> Iterator[Item]:
    storage = environment.storage

    def use(what: str, key: str = "") -> Item:
        return Item(area="by use", what=what, key=key, purchase="usage", unit="GB")

    if _makes_nat(environment):
        yield use("data through the NAT gateway", "nat.gb")
    if any(one.kind == "interface" for one in made_endpoints(resolve(environment))):
        yield use("data through interface endpoints", "endpoint.gb")
    if not storage.scripts_bucket or environment.data_repositories:
        yield use("S3: objects and requests")
    if isinstance(storage.lustre, IntelligentTieringLustre):
        yield use("Lustre: data in Intelligent-Tiering")
    if any(
        getattr(getattr(one, "backups", None), "retention_days", 0)
        for one in (storage.lustre, storage.openzfs)
    ):
        yield use("backups of file systems")
    yield use("CloudWatch: logs and metrics")
    yield use("traffic to other zones, Regions and the internet")
