"""Rules on keys, retention and the accounting database, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_table import Case, found, table_tests

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
VPC = {"network.vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}}
LOGS = {"storage.log_bucket": {"name": "logs"}}


def lustre(**more: Any) -> dict[str, Any]:
    return {L: P2 | more}


def linked(**more: Any) -> dict[str, Any]:
    """A file system whose /checkpoints is linked."""
    return lustre(data_repositories={"/checkpoints": more})


def database(**more: Any) -> dict[str, Any]:
    return {B: DATABASE | more}


CASES = [
    Case(
        "DATA040",
        {"storage.job_buckets": [{"bucket": "example-datasets"}]},
        "storage.job_buckets",
        "EKS Pod Identity",
        "remove job_buckets",
        {"storage.job_buckets": []},
        base="eks-p5en",
    ),
    Case(
        "DATA042",
        {"storage.job_buckets": [{"bucket": "example-data"}, {"bucket": "example-data", "write": True}]},
        "storage.job_buckets[1]",
        "overlap, and one of them may be written",
        "remove it",
        {"storage.job_buckets": [{"bucket": "example-data"}]},
    ),
    Case(
        "DATA002",
        {**ON, **linked(import_events=["new"])},
        L,
        "neither backups nor a folder that is exported",
        "data_repositories./checkpoints.export_events: [new, changed]",
        linked(export_events=["new"]),
    ),
    Case(
        "DATA004",
        {**ON, **lustre(backups={"retention_days": 6})},
        f"{L}.backups.retention_days",
        "kept for 6 days",
        "7",
        lustre(backups=WEEK),
    ),
    Case(
        "DATA004",
        {**ON, Z: HOMES | {"backups": {"retention_days": 1}}},
        f"{Z}.backups.retention_days",
        "kept for one day",
        "7",
        {Z: HOMES | {"backups": WEEK}},
    ),
    Case(
        "DATA010",
        {**LOGS, **linked(bucket="logs")},
        "storage.log_bucket.name",
        "logs is the bucket of `/checkpoints`, too",
        "a bucket that holds only logs",
        linked(bucket="theirs"),
    ),
    Case(
        "DATA020",
        database(second_zone_id="us-west-2b"),
        f"{B}.second_zone_id",
        "is the name of a zone, not its id",
        "usw2-az1",
        database(),
    ),
    Case(
        "DATA025",
        database(second_zone_id=None),
        f"{B}.second_zone_id",
        "subnets in two zones",
        "second_zone_id: usw2-az1",
        database(),
    ),
    Case(
        "DATA025",
        {**VPC, **database(second_zone_id=None, subnet_ids=["subnet-0123456789abcdef0"])},
        f"{B}.subnet_ids",
        "made elsewhere",
        "subnet_ids: [subnet-",
        database(second_zone_id=None, subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]),
    ),
    Case(
        "DATA025",
        {**VPC, **database()},
        f"{B}.second_zone_id",
        "no subnet is made",
        "remove second_zone_id",
        database(second_zone_id=None, subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]),
    ),
    Case(
        "DATA024",
        {
            **ON,
            "orchestrator.provisioning": "classic",
            "orchestrator.slurm_config_strategy": "managed",
        },
        "storage",
        "lost when the node is replaced",
        "accounting_database: {kind: rds-mysql, second_zone_id: usw2-az1} and",
        {"protect": False},
    ),
]


test_breaks_and_is_mended, test_advice_works = table_tests(cases=CASES)


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
