"""Rules on: file systems that exist already, where two fields cannot both be true."""

from __future__ import annotations

from ultracluster.catalog import Region
from ultracluster.config.remedy import ask, beside, write
from ultracluster.config.storage import ExistingLustre, ExistingOpenZfs
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.sets import FSX


@FSX.error(
    8,
    "FSx for Lustre User Guide, Mounting from an Amazon EC2 instance: <id>.fsx.<region>.<suffix>",
    "2026-11-22",
    by_hand="aws fsx describe-file-systems --file-system-ids <id> --query 'FileSystems[].DNSName'",
)
def dns_name_of_file_system(system: ExistingLustre | ExistingOpenZfs, home: Region | None) -> Breaches:
    """The DNS name of an existing file system carries its id and the environment's Region."""
    own, _, rest = system.dns_name.partition(".fsx.")
    where, _, suffix = rest.partition(".")
    if own != system.id:
        yield at("dns_name").breach(
            f"the name is that of {own}, but id says {system.id}: nodes would mount the one, and "
            "everything else would be about the other.",
            write(f"{system.id}.fsx.{where}.{suffix}") | beside(id=own),
        )
    elif home and where != home.name:
        yield at("dns_name").breach(
            f"the file system is in {where}, and the environment in {home.name}: nodes mount "
            "file systems of their own VPC.",
            ask("fact", f"a file system in {home.name}, or region: {where}"),
        )
