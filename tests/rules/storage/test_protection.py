"""Rules on keys, retention and the accounting database, each broken and mended."""

from __future__ import annotations

from typing import Any

import pytest
from project import ENVIRONMENTS
from rules_support import EXISTING_DATABASE
from rules_table import Case, found, table_tests

from ultracluster.rules.sets import DATA

L = "storage.lustre"
Z = "storage.openzfs"
R = f"{L}.data_repositories"
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
SCRIPTS = {"storage.scripts_bucket": {"name": "scripts"}}
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
        "DATA041",
        {
            "storage.scripts_bucket": {"name": "example-cluster"},
            "storage.job_buckets": [{"bucket": "example-cluster", "write": True}],
        },
        "storage.job_buckets[0].write",
        "the lifecycle scripts, which nodes run as root",
        "write: false",
        {"storage.job_buckets": [{"bucket": "example-cluster", "prefix": "runs", "write": True}]},
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
        "DATA001",
        {**ON, **SCRATCH},
        f"{L}.deployment",
        "scratch-2 keeps one copy of the data",
        "persistent-2-ssd",
        lustre(),
    ),
    Case(
        "DATA002",
        ON,
        L,
        "checkpoints exist once",
        "backups.retention_days: 7",
        lustre(backups=WEEK),
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
        "DATA003",
        {**ON, Z: HOMES | {"backups": {"retention_days": 0}}},
        f"{Z}.backups.retention_days",
        "home directories have no backups",
        "retention_days: 7",
        {Z: HOMES},
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
        "DATA004",
        {**ON, **database(backup_retention_days=3)},
        f"{B}.backup_retention_days",
        "kept for 3 days",
        "7",
        database(backup_retention_days=7),
    ),
    Case(
        "DATA005",
        {**KEY, **SCRATCH},
        f"{L}.deployment",
        "FSx encrypts scratch-2 with a key of its own",
        "persistent-2-ssd",
        lustre(),
    ),
    Case(
        "DATA006",
        {**ON, **linked(bucket="theirs", export_events=["new", "deleted"])},
        f"{R}./checkpoints.export_events",
        "deleting a file in this folder deletes its object in theirs",
        "export_events: [new]",
        linked(bucket="theirs", export_events=["new"]),
    ),
    Case(
        "DATA026",
        {
            "storage.accounting_database": {
                **EXISTING_DATABASE,
                "endpoint": "db.abc.us-east-1.rds.amazonaws.com",
            }
        },
        "storage.accounting_database.endpoint",
        "the endpoint is in us-east-1",
        "region: us-east-1",
        {"storage.accounting_database.endpoint": "db.abc.us-west-2.rds.amazonaws.com"},
    ),
    Case(
        "DATA027",
        database(instance_class="m7g.larg"),
        "storage.accounting_database.instance_class",
        "has no db.m7g.larg",
        "m7g.large",
        database(instance_class="m7g.large"),
    ),
    Case(
        "DATA028",
        {"region": "af-south-1", **database(instance_class="m7g.large")},
        "storage.accounting_database.instance_class",
        "no price of db.m7g",
        ".large",
        {"region": "us-west-2"},
    ),
    Case(
        "DATA029",
        database(require_tls=True),
        "storage.accounting_database.require_tls",
        "whether this slurmdbd logs in over TLS is unknown",
        "remove require_tls",
        database(),
    ),
    Case(
        "DATA008",
        LOGS,
        "storage.log_bucket.name",
        "lets logging.s3.amazonaws.com put objects",
        "acknowledge what you saw",
        SCRIPTS,
    ),
    Case(
        "DATA009",
        {**LOGS, **SCRIPTS},
        "storage.log_bucket",
        "nothing logs to logs",
        "remove log_bucket",
        linked(),
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
        "DATA010",
        {**LOGS, **linked(), "storage.scripts_bucket": {"name": "logs"}},
        "storage.log_bucket.name",
        "the bucket of scripts_bucket",
        "a bucket that holds only logs",
        SCRIPTS,
    ),
    Case(
        "DATA020",
        database(second_zone_id="use1-az1"),
        f"{B}.second_zone_id",
        "a zone of us-east-1, and the environment is in us-west-2",
        "second_zone_id: usw2-az1 or usw2-az3 or usw2-az4",
        database(),
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
        "DATA021",
        database(second_zone_id="usw2-az8"),
        f"{B}.second_zone_id",
        "not among the zones seen in us-west-2",
        "usw2-az1",
        database(),
    ),
    Case(
        "DATA022",
        database(second_zone_id="usw2-az2"),
        f"{B}.second_zone_id",
        "`usw2-az2` is network.zone_id, too",
        "usw2-az1 or usw2-az3",
        database(second_zone_id="usw2-az3"),
    ),
    Case(
        "DATA023",
        {**ON, **database(multi_az=False)},
        f"{B}.multi_az",
        "slurmdbd has no database",
        "multi_az: true",
        database(),
    ),
    Case(
        "DATA024",
        ON,
        "storage",
        "on the disk of the controller",
        "accounting_database: {kind: rds-mysql, second_zone_id: usw2-az1}",
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
        "DATA025",
        database(subnet_ids=["subnet-0123456789abcdef0"]),
        f"{B}.subnet_ids",
        "the VPC is made here",
        "remove subnet_ids",
        database(),
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


test_broken, test_mended, test_advice_works, test_every_rule_is_broken_once = table_tests(DATA, cases=CASES)


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
