"""Rules on: the database that keeps Slurm's accounting."""

from __future__ import annotations

import re

from ultracluster.catalog import Region
from ultracluster.catalog._nearest import nearest
from ultracluster.catalog.rds import rds_families, rds_sizes
from ultracluster.config import Environment
from ultracluster.config.network import Network
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.config.remedy import ask, drop, write
from ultracluster.config.storage import ExistingDatabase, RdsMySql
from ultracluster.model import Cluster
from ultracluster.model.parent_zone import parent_zone
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.hyperpod.groups import continuous
from ultracluster.rules.remedies import new_database
from ultracluster.rules.sets import DATA, kinds_with
from ultracluster.rules.sources import BOTOCORE, CFN_LINT, MOTO
from ultracluster.rules.zones import not_a_zone_of, unknown_zone, usual_zones

_IN_A_VPC = "RDS User Guide: Working with a DB instance in a VPC"
_LIST_ZONES = (
    "aws ec2 describe-availability-zones --region <region> --query 'AvailabilityZones[].[ZoneName,ZoneId]'"
)
_LIST_CLASSES = (
    "aws rds describe-orderable-db-instance-options --engine mysql --region <region> "
    "--query 'OrderableDBInstanceOptions[].DBInstanceClass'"
)
_DATE = "2026-11-22"


@DATA.error(20, f"{_IN_A_VPC}; EC2 User Guide: zone IDs", by_hand=_LIST_ZONES)
def second_zone_in_region(database: RdsMySql, home: Region, network: Network) -> Breaches:
    """The second zone of the accounting database is a zone of the Region."""
    if zone_id := database.second_zone_id:
        breach = not_a_zone_of(home, zone_id, ("second_zone_id",), (network.zone_id,))
        if breach:
            yield breach


@DATA.warning(21, f"{MOTO} ships it", by_hand=_LIST_ZONES)
def second_zone_known(database: RdsMySql, home: Region, network: Network) -> Breaches:
    """The second zone of the accounting database is among the zones seen in the Region."""
    if zone_id := database.second_zone_id:
        breach = unknown_zone(home, zone_id, ("second_zone_id",), (network.zone_id,))
        if breach:
            yield breach


@DATA.error(22, _IN_A_VPC)
def second_zone_differs(database: RdsMySql, network: Network, home: Region | None) -> Breaches:
    """The second zone of the accounting database is not the zone of the nodes."""
    first = parent_zone(network) or network.zone_id
    if database.second_zone_id == first:
        others = usual_zones(home, (first,)) if home else []
        where = "network.zone_id" if first == network.zone_id else "the first of network.further_zones"
        yield at("second_zone_id").breach(
            f"`{database.second_zone_id}` is {where}, too: RDS requires subnets in two zones "
            "and refuses a subnet group in one.",
            write(*others[:2]) if others else ask("fact", "another zone of the Region"),
        )


@DATA.warning(23, "RDS User Guide: Configuring and managing a Multi-AZ deployment")
def database_standby(database: RdsMySql, environment: Environment) -> Breaches:
    """A protected accounting database has a standby."""
    if environment.protect and not database.multi_az:
        yield at("multi_az").breach(
            "protect is on and the accounting database is in one zone: while RDS repairs or "
            "patches it, slurmdbd has no database and new users and limits cannot be set.",
            write(True).noting(f"a standby in {database.second_zone_id or 'the other subnet'}"),
        )


@DATA.warning(
    24,
    f"{BOTOCORE} sagemaker: ClusterSlurmConfig AccountingDatabase; ParallelCluster User Guide, "
    "Slurm accounting with AWS ParallelCluster",
    kinds=kinds_with(lambda traits: "controller" in traits.roles),
)
def accounting_on_controller(cluster: Cluster) -> Breaches:
    """Protected accounting is not kept on the controller's disk."""
    environment, settings = cluster.environment, cluster.settings
    if not environment.protect or environment.storage.accounting_database:
        return
    if not cluster.with_role("compute"):
        return
    remedy = new_database(cluster)
    if isinstance(settings, HyperPodSlurm) and settings.provisioning == "classic":
        remedy &= continuous(settings)
    yield at("storage").breach(
        "protect is on, and without an accounting_database Slurm's accounting is kept on the "
        "disk of the controller: users, limits and the history of jobs are lost when the node is "
        "replaced.",
        remedy,
    )


@DATA.error(25, _IN_A_VPC, by_hand="aws ec2 describe-subnets --filters Name=vpc-id,Values=<vpc>")
def database_subnets(database: RdsMySql, network: Network, home: Region | None) -> Breaches:
    """An accounting database has subnets in two zones."""
    vpc = network.vpc
    if vpc and len(set(database.subnet_ids)) < 2:
        yield at("subnet_ids").breach(
            f"the database goes into {vpc.id}, which was made elsewhere; RDS requires subnets in two zones.",
            ask("fact", "subnet_ids: [subnet-..., subnet-...]"),
        )
    if vpc and database.second_zone_id:
        yield at("second_zone_id").breach(
            f"{vpc.id} was made elsewhere: no subnet is made in a second zone.",
            drop().noting("subnet_ids names those that are used"),
        )
    if not vpc and database.subnet_ids:
        yield at("subnet_ids").breach(
            "the VPC is made here, and so are the subnets of the database.",
            drop().noting("or name network.vpc"),
        )
    if not vpc and database.second_zone_id is None:
        others = usual_zones(home, (network.zone_id,)) if home else []
        yield at("second_zone_id").breach(
            "RDS requires subnets in two zones and refuses a subnet group in one.",
            write(others[0]) if others else ask("fact", "second_zone_id: another zone of the Region"),
        )


@DATA.error(
    26,
    "RDS User Guide, Controlling access with security groups; EC2 User Guide, security groups are of a VPC",
    _DATE,
)
def endpoint_elsewhere(database: ExistingDatabase, home: Region) -> Breaches:
    """An existing database is in the Region of its security group."""
    found = re.fullmatch(r".+\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com(?:\.cn)?", database.endpoint)
    if found and found[1] != home.name:
        yield at("endpoint").breach(
            f"the endpoint is in {found[1]}, and a rule is added to {database.security_group_id} in "
            f"{home.name}: that cannot be the group of this database.",
            ask("fact", f"the endpoint of a database in {home.name}, or region: {found[1]}"),
        )


@DATA.error(
    27, f"{CFN_LINT}, derived from AWS price lists: db classes of MySQL", _DATE, by_hand=_LIST_CLASSES
)
def class_size(database: RdsMySql) -> Breaches:
    """The instance class of the database has a size that RDS sells."""
    family, _, size = database.instance_class.partition(".")
    sizes = rds_sizes().get(family, ())
    if sizes and size not in sizes:
        near = nearest(size, sizes, "", 1) or [sizes[0]]
        yield at("instance_class").breach(
            f"RDS for MySQL has no db.{family}.{size}: it has {', '.join(sizes)}.",
            write(f"{family}.{near[0]}"),
        )


@DATA.warning(
    28,
    f"{CFN_LINT}, derived from AWS price lists: a missing Region proves nothing",
    _DATE,
    by_hand=_LIST_CLASSES,
)
def class_family(database: RdsMySql, home: Region) -> Breaches:
    """RDS sells the family of the database's instance class in the Region."""
    offered = rds_families(home.name)
    family, _, size = database.instance_class.partition(".")
    if not offered or family in offered:
        return
    fitting = [other for other in offered if size in rds_sizes()[other]] or list(offered)
    near = nearest(family, fitting, "", 1) or [fitting[0]]
    yield at("instance_class").breach(
        f"no price of db.{family} for MySQL is known in {home.name}.",
        write(f"{near[0]}.{size if size in rds_sizes()[near[0]] else rds_sizes()[near[0]][0]}"),
    )


@DATA.warning(
    29,
    "SageMaker Developer Guide, Using an external accounting database with SageMaker HyperPod Slurm "
    "clusters (says nothing of TLS); RDS User Guide, Requiring SSL/TLS for all connections",
    _DATE,
    by_hand="on the controller: ldd /opt/slurm/lib/slurm/accounting_storage_mysql.so; "
    "grep StorageParameters /opt/slurm/etc/slurmdbd.conf",
)
def slurmdbd_tls(database: RdsMySql, cluster: Cluster) -> Breaches:
    """TLS is required of a slurmdbd that is known to speak it."""
    why = cluster.traits.slurmdbd_unknown
    if database.require_tls and why:
        yield at("require_tls").breach(
            f"whether this slurmdbd logs in over TLS is unknown: {why}. If it does not, the database refuses "
            "it, and there is no accounting.",
            drop().noting("TLS stays on offer, and is used by who can"),
        )
