"""Rules on keys, retention and the accounting database, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_table import found

from ultracluster.rules.sets import DATA

L = "storage.lustre"
Z = "storage.openzfs"
B = "storage.accounting_database"
ON: dict[str, Any] = {"protect": True}
WEEK = {"retention_days": 7}
P2: dict[str, Any] = {
    "deployment": "persistent-2-ssd",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}
SCRATCH = {L: {"deployment": "scratch-2", "capacity_gib": 1200}}
HOMES = {"deployment": "single-az-ha-2", "capacity_gib": 64, "throughput_mbps": 160}
DATABASE = {
    "kind": "rds-mysql",
    "second_zone_id": "usw2-az1",
    "multi_az": True,
}
KEY = {"storage.key": {"arn": "arn:aws:kms:us-west-2:111122223333:key/0f6d"}}


def lustre(**more: Any) -> dict[str, Any]:
    return {L: P2 | more}


def linked(**more: Any) -> dict[str, Any]:
    """A file system whose /checkpoints is linked."""
    return lustre(data_repositories={"/checkpoints": more})


def database(**more: Any) -> dict[str, Any]:
    return {B: DATABASE | more}


def codes(changes: dict[str, Any]) -> list[str]:
    return [one.code for one in found(DATA, changes)]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_shipped_environments_have_no_error(name: str) -> None:
    findings = [one for one in found(DATA, {}, name) if one.code.startswith(DATA.prefix)]
    assert not [one for one in findings if one.blocks]
    assert all(one.acknowledged for one in findings), findings


def test_nothing_is_said_where_nothing_is_protected() -> None:
    loose = {**lustre(), Z: HOMES | {"backups": {"retention_days": 1}}}
    assert codes({**loose, **database(multi_az=False, backup_retention_days=1)}) == []
    assert codes(SCRATCH) == []


def test_a_protected_cluster_can_be_clean() -> None:
    assert codes({**ON, **lustre(backups=WEEK), Z: HOMES, **database(), **KEY}) == []


def test_our_own_bucket_keeps_versions() -> None:
    exported = linked(export_events=["new", "changed", "deleted"])
    assert codes({**ON, **exported, **database()}) == []


def test_zones_of_an_unknown_region_are_not_judged() -> None:
    assert codes({"region": "us-west-22", **database()}) == []
    same = {"region": "us-west-22", **database(second_zone_id="usw2-az2")}
    assert [one.instead for one in found(DATA, same)] == ["another zone of the Region"]


def test_what_exists_is_not_judged() -> None:
    group = "sg-0123456789abcdef0"
    dns = "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com"
    there = {
        "deployment": "existing",
        "id": "fs-0123456789abcdef0",
        "dns_name": dns,
        "security_group_id": group,
    }
    their_database = {
        "kind": "existing",
        "endpoint": "db.example.com",
        "secret_arn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm",
        "security_group_id": group,
    }
    changes = {L: {**there, "mount_name": "abcdefgh"}, Z: there, B: their_database}
    assert codes({**ON, **changes}) == []
