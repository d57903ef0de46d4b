"""Rules on: Keys, retention and the accounting database."""

from __future__ import annotations

from collections.abc import Iterator

from ultracluster.catalog import region
from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.rds import rds_families, rds_sizes
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.remedy import DROP, anywhere, ask, drop, whole, write
from ultracluster.config.storage import RdsMySql, ScratchLustre
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import (
    continuous,
    in_local_zone,
    new_database,
    not_a_zone_of,
    unknown_zone,
)
from ultracluster.rules.sets import DATA
from ultracluster.rules.storage.lustre import LUSTRE, new_lustre, other_deployment
from ultracluster.rules.storage.openzfs import OPENZFS, new_openzfs

_FOLDERS: Path = (*LUSTRE, "data_repositories")
_DATABASE: Path = ("storage", "accounting_database")
_SECOND_ZONE: Path = (*_DATABASE, "second_zone_id")
_DAYS = 7  # a mistake made before a weekend is noticed after it


@DATA.rule(
    1,
    "warning",
    "What is protected is not scratch storage",
    source="botocore 1.44.5 fsx: CreateFileSystemLustreConfiguration, DeploymentType",
)
def scratch_protected(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if environment.protect and isinstance(made, ScratchLustre):
        yield Breach(
            (*LUSTRE, "deployment"),
            f"protect is on and {made.deployment} keeps one copy of the data: FSx does not "
            "replace a file server that fails, and what it held is lost. Protection from "
            "deletion does not help.",
            other_deployment(made, "persistent-2-ssd").noting("or protect: false"),
        )


@DATA.rule(
    2,
    "warning",
    "A protected Lustre file system is kept somewhere else, too",
    source="FSx for Lustre User Guide: Protecting your data with backups",
)
def lustre_once(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if not environment.protect or made is None or isinstance(made, ScratchLustre):
        return
    links = environment.data_repositories
    if made.backups.retention_days or any(link.export_events for link in links.values()):
        return
    folder = next(iter(links), None)
    yield Breach(
        LUSTRE,
        "protect is on, and the file system has neither backups nor a folder that is exported to "
        "S3: checkpoints exist once, in one Availability Zone.",
        anywhere(
            {(*_FOLDERS, folder, "export_events"): ["new", "changed"]}
            if folder
            else {(*LUSTRE, "backups", "retention_days"): _DAYS}
        ),
    )


@DATA.rule(
    3,
    "warning",
    "Protected home directories have backups",
    source="FSx for OpenZFS User Guide: Protecting your data with backups",
)
def openzfs_once(environment: Environment) -> Iterator[Breach]:
    made = new_openzfs(environment)
    if environment.protect and made and made.backups.retention_days == 0:
        yield Breach(
            (*OPENZFS, "backups", "retention_days"),
            "protect is on and home directories have no backups: they exist once, in one zone.",
            write(_DAYS),
        )


@DATA.rule(
    4,
    "warning",
    "Protected backups are kept for a week",
    source="FSx and RDS User Guides: automatic backups are deleted after their retention",
)
def short_retention(environment: Environment) -> Iterator[Breach]:
    if not environment.protect:
        return
    for path, days in _retentions(environment):
        if 0 < days < _DAYS:
            yield Breach(
                path,
                f"protect is on and backups are kept for {_in_days(days)}: what was damaged "
                "before a long weekend has no good backup left when it is noticed.",
                write(_DAYS),
            )


@DATA.rule(
    5,
    "warning",
    "A scratch file system is not expected to use the key",
    source="botocore 1.44.5 fsx: CreateFileSystem, KmsKeyId",
)
def scratch_key(environment: Environment) -> Iterator[Breach]:
    made = new_lustre(environment)
    if environment.storage.key and isinstance(made, ScratchLustre):
        yield Breach(
            (*LUSTRE, "deployment"),
            f"storage.key is given, and FSx encrypts {made.deployment} with a key of its own: "
            "this file system is the one thing here that the key does not cover.",
            other_deployment(made, "persistent-2-ssd").noting("or acknowledge it"),
        )


@DATA.rule(
    6,
    "warning",
    "Deleting a protected file does not delete its last copy",
    source="botocore 1.44.5 fsx: AutoExportPolicy, EventType DELETED",
)
def deletes_exported(environment: Environment) -> Iterator[Breach]:
    if not environment.protect:
        return
    for folder, link in environment.data_repositories.items():
        if link.bucket and "deleted" in link.export_events:
            kept = [event for event in link.export_events if event != "deleted"]
            yield Breach(
                (*_FOLDERS, folder, "export_events"),
                f"protect is on, and deleting a file under `{folder}` deletes its object in "
                f"{link.bucket}. Unless that bucket keeps versions, one `rm -r` removes both "
                "copies.",
                write(kept).noting("or acknowledge that the bucket keeps versions"),
            )


@DATA.rule(
    8,
    "warning",
    "Access logs can be written to a log bucket that exists",
    source="S3 User Guide: Enabling Amazon S3 server access logging",
    by_hand="aws s3api get-bucket-policy --bucket <bucket>; "
    "aws s3api get-bucket-encryption --bucket <bucket>; "
    "aws s3api get-object-lock-configuration --bucket <bucket>",
)
def log_bucket_admits_s3(environment: Environment) -> Iterator[Breach]:
    bucket = environment.storage.log_bucket
    if bucket and (environment.makes_data_bucket or not environment.storage.scripts_bucket):
        yield Breach(
            ("storage", "log_bucket", "name"),
            f"{bucket.name} was made elsewhere: the guide wants a bucket of this Region and "
            "account that lets logging.s3.amazonaws.com put objects, is encrypted by S3 itself "
            "(SSE-S3) and has no Object Lock. With another, logs are missing without an error.",
            ask("action", "look with the commands of this rule, and acknowledge what you saw"),
        )


@DATA.rule(
    9,
    "warning",
    "A log bucket has something to log",
    source="this file: buckets that are made here",
)
def log_bucket_unused(environment: Environment) -> Iterator[Breach]:
    storage = environment.storage
    if storage.log_bucket and storage.scripts_bucket and not environment.makes_data_bucket:
        yield Breach(
            ("storage", "log_bucket"),
            f"no bucket is made here, so nothing logs to {storage.log_bucket.name}. Logging of "
            "buckets that exist is set where they are made.",
            drop(),
        )


@DATA.rule(
    10,
    "warning",
    "A log bucket is none of the buckets that hold data",
    source="S3 User Guide: Enabling Amazon S3 server access logging",
)
def log_bucket_apart(environment: Environment) -> Iterator[Breach]:
    storage = environment.storage
    if not storage.log_bucket:
        return
    name = storage.log_bucket.name
    users = [f"`{f}`" for f, link in environment.data_repositories.items() if link.bucket == name]
    users += ["scripts_bucket"] if storage.scripts_bucket == storage.log_bucket else []
    if users:
        yield Breach(
            ("storage", "log_bucket", "name"),
            f"{name} is the bucket of {' and '.join(users)}, too: logs would lie among the data, "
            "be imported with it, and the writing of each would be logged in turn.",
            whole(DROP).noting("one is then made; or a bucket for logs alone"),
        )


@DATA.rule(
    20,
    "error",
    "The second zone of the accounting database is a zone of the Region",
    source="RDS User Guide: Working with a DB instance in a VPC; EC2 User Guide: zone IDs",
    by_hand="aws ec2 describe-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId]'",
)
def second_zone_in_region(environment: Environment) -> Iterator[Breach]:
    home, database = region(environment.region), _rds(environment)
    if home and database and database.second_zone_id:
        breach = not_a_zone_of(home, database.second_zone_id, _SECOND_ZONE, (environment.network.zone_id,))
        if breach:
            yield breach


@DATA.rule(
    21,
    "warning",
    "The second zone of the accounting database is among the zones seen in the Region",
    source="EC2 DescribeInstanceTypeOfferings as moto 5.2.5 ships it",
    by_hand="aws ec2 describe-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId]'",
)
def second_zone_known(environment: Environment) -> Iterator[Breach]:
    home, database = region(environment.region), _rds(environment)
    if home and database and database.second_zone_id:
        breach = unknown_zone(home, database.second_zone_id, _SECOND_ZONE, (environment.network.zone_id,))
        if breach:
            yield breach


@DATA.rule(
    22,
    "error",
    "The second zone of the accounting database is another zone",
    source="RDS User Guide: Working with a DB instance in a VPC",
)
def second_zone_differs(environment: Environment) -> Iterator[Breach]:
    home, database = region(environment.region), _rds(environment)
    if database and database.second_zone_id == environment.network.zone_id:
        zones = [z for z in home.zone_ids if not in_local_zone(home, z)] if home else []
        others = [zone for zone in zones if zone != database.second_zone_id]
        yield Breach(
            _SECOND_ZONE,
            f"`{database.second_zone_id}` is network.zone_id, too: RDS wants subnets in two zones "
            "and refuses a subnet group in one.",
            write(*others[:2]) if others else ask("fact", "another zone of the Region"),
        )


@DATA.rule(
    23,
    "warning",
    "A protected accounting database has a standby",
    source="RDS User Guide: Configuring and managing a Multi-AZ deployment",
)
def database_standby(environment: Environment) -> Iterator[Breach]:
    database = _rds(environment)
    if environment.protect and database and not database.multi_az:
        yield Breach(
            (*_DATABASE, "multi_az"),
            "protect is on and the accounting database is in one zone: while RDS repairs or "
            "patches it, slurmdbd has no database and new users and limits cannot be set.",
            write(True).noting(f"a standby in {database.second_zone_id or 'the other subnet'}"),
        )


@DATA.rule(
    24,
    "warning",
    "Protected accounting is not kept on the controller's disk",
    source="botocore 1.44.5 sagemaker: ClusterSlurmConfig AccountingDatabase",
    kinds=frozenset({"hyperpod-slurm", "parallelcluster"}),
)
def accounting_on_controller(environment: Environment) -> Iterator[Breach]:
    if not environment.protect or environment.storage.accounting_database:
        return
    if not environment.groups("compute"):
        return
    orchestrator = environment.orchestrator
    classic = orchestrator.kind == "hyperpod-slurm" and orchestrator.provisioning == "classic"
    yield Breach(
        ("storage",),
        "protect is on, and without an accounting_database Slurm's accounting is kept on the "
        "disk of the controller: users, limits and the history of jobs are lost when the node is "
        "replaced.",
        new_database(environment) & continuous(environment) if classic else new_database(environment),
    )


@DATA.rule(
    25,
    "error",
    "An accounting database has subnets in two zones",
    source="RDS User Guide: Working with a DB instance in a VPC",
    by_hand="aws ec2 describe-subnets --filters Name=vpc-id,Values=<vpc>",
)
def database_subnets(environment: Environment) -> Iterator[Breach]:
    database, vpc = _rds(environment), environment.network.vpc
    if database is None:
        return
    if vpc and len(set(database.subnet_ids)) < 2:
        yield Breach(
            (*_DATABASE, "subnet_ids"),
            f"the database goes into {vpc.id}, which was made elsewhere; RDS wants subnets in two zones.",
            ask("fact", "subnet_ids: [subnet-..., subnet-...]"),
        )
    if vpc and database.second_zone_id:
        yield Breach(
            _SECOND_ZONE,
            f"{vpc.id} was made elsewhere: no subnet is made in a second zone.",
            drop().noting("subnet_ids names those that are used"),
        )
    if not vpc and database.subnet_ids:
        yield Breach(
            (*_DATABASE, "subnet_ids"),
            "the VPC is made here, and so are the subnets of the database.",
            drop().noting("or name network.vpc"),
        )
    if not vpc and database.second_zone_id is None:
        home = region(environment.region)
        zones = [z for z in home.zone_ids if not in_local_zone(home, z)] if home else []
        others = [zone for zone in zones if zone != environment.network.zone_id]
        yield Breach(
            _SECOND_ZONE,
            "RDS wants subnets in two zones and refuses a subnet group in one.",
            write(others[0]) if others else ask("fact", "second_zone_id: another zone of the Region"),
        )


@DATA.rule(
    27,
    "error",
    "RDS has the size of the instance class",
    source="cfn-lint 1.58.0, derived from AWS price lists: db classes of MySQL",
    date="2026-11-22",
    by_hand="aws rds describe-orderable-db-instance-options --engine mysql --region <region> "
    "--query 'OrderableDBInstanceOptions[].DBInstanceClass'",
)
def class_size(environment: Environment) -> Iterator[Breach]:
    database = _rds(environment)
    family, _, size = database.instance_class.partition(".") if database else ("", "", "")
    sizes = rds_sizes().get(family, ())
    if sizes and size not in sizes:
        near = nearest(size, sizes, "", 1) or [sizes[0]]
        yield Breach(
            (*_DATABASE, "instance_class"),
            f"RDS for MySQL has no db.{family}.{size}: it has {', '.join(sizes)}.",
            write(f"{family}.{near[0]}"),
        )


@DATA.rule(
    28,
    "warning",
    "RDS has the family of the instance class in the Region",
    source="cfn-lint 1.58.0, derived from AWS price lists: a missing Region proves nothing",
    date="2026-11-22",
    by_hand="aws rds describe-orderable-db-instance-options --engine mysql --region <region> "
    "--query 'OrderableDBInstanceOptions[].DBInstanceClass'",
)
def class_family(environment: Environment) -> Iterator[Breach]:
    database, there = _rds(environment), rds_families(environment.region)
    family, _, size = database.instance_class.partition(".") if database else ("", "", "")
    if not database or not there or family in there:
        return
    fitting = [one for one in there if size in rds_sizes()[one]] or list(there)
    near = nearest(family, fitting, "", 1) or [fitting[0]]
    yield Breach(
        (*_DATABASE, "instance_class"),
        f"no price of db.{family} for MySQL is known in {environment.region}.",
        write(f"{near[0]}.{size if size in rds_sizes()[near[0]] else rds_sizes()[near[0]][0]}"),
    )


def _in_days(days: int) -> str:
    return "one day" if days == 1 else f"{days} days"


def _rds(environment: Environment) -> RdsMySql | None:
    database = environment.storage.accounting_database
    return database if isinstance(database, RdsMySql) else None


def _retentions(environment: Environment) -> Iterator[tuple[Path, int]]:
    made = new_lustre(environment)
    if made and not isinstance(made, ScratchLustre):
        yield (*LUSTRE, "backups", "retention_days"), made.backups.retention_days
    if homes := new_openzfs(environment):
        yield (*OPENZFS, "backups", "retention_days"), homes.backups.retention_days
    if database := _rds(environment):
        yield (*_DATABASE, "backup_retention_days"), database.backup_retention_days
