"""Rules on: what exists already, where two fields of it cannot both be true."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ultracluster.config import Environment
from ultracluster.config.remedy import ask, beside, write
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import DATA, FSX

DATE = "2026-11-22"


@FSX.rule(
    8,
    "error",
    "A file system's DNS name is its own, and of the Region",
    source="FSx for Lustre User Guide, Mounting from an Amazon EC2 instance: <id>.fsx.<region>.<suffix>",
    date=DATE,
    by_hand="aws fsx describe-file-systems --file-system-ids <id> --query 'FileSystems[].DNSName'",
)
def name_and_id(environment: Environment) -> Iterator[Breach]:
    storage = environment.storage
    for key, made in (("lustre", storage.lustre), ("openzfs", storage.openzfs)):
        if not isinstance(made, ExistingLustre | ExistingOpenZfs):
            continue
        own, _, rest = made.dns_name.partition(".fsx.")
        where, _, suffix = rest.partition(".")
        if own != made.id:
            yield Breach(
                ("storage", key, "dns_name"),
                f"the name is that of {own}, and id says {made.id}: nodes would mount the one, and "
                "everything else be about the other.",
                write(f"{made.id}.fsx.{where}.{suffix}") | beside(id=own),
            )
        elif where != environment.region:
            yield Breach(
                ("storage", key, "dns_name"),
                f"the file system is in {where}, and the environment in {environment.region}: nodes mount "
                "file systems of their own VPC.",
                ask("fact", f"a file system in {environment.region}, or region: {where}"),
            )


@DATA.rule(
    26,
    "error",
    "A database that exists is in the Region of its security group",
    source="RDS User Guide, Controlling access with security groups; EC2 User Guide, security groups are of "
    "a VPC",
    date=DATE,
)
def endpoint_elsewhere(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if not isinstance(database, ExistingDatabase):
        return
    found = re.fullmatch(r".+\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com(?:\.cn)?", database.endpoint)
    if found and found[1] != environment.region:
        yield Breach(
            ("storage", "accounting_database", "endpoint"),
            f"the endpoint is in {found[1]}, and a rule is added to {database.security_group_id} in "
            f"{environment.region}: that cannot be the group of this database.",
            ask("fact", f"the endpoint of a database in {environment.region}, or region: {found[1]}"),
        )
