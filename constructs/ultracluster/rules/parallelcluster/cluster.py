"""Rules on: ParallelCluster. The cluster: name, release, Region, storage that exists, monitoring, tags."""

from __future__ import annotations

from ultracluster.catalog.parallelcluster import parallelcluster, version
from ultracluster.config import Environment
from ultracluster.config.parallelcluster import ParallelCluster, ParallelClusterMonitoring
from ultracluster.config.remedy import ask, beside, drop, rename, write
from ultracluster.config.storage import ExistingDatabase, ExistingOpenZfs
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breaches, at
from ultracluster.rules.parallelcluster.groups import DATE
from ultracluster.rules.remedies import moved_to
from ultracluster.rules.sets import PCL
from ultracluster.rules.sources import PCLUSTER

OUR_TAGS = 1
"""`ultracluster:environment`."""


@PCL.error(60, f"{PCLUSTER}, ClusterNameValidator", DATE)
def name_with_accounting(settings: ParallelCluster, environment: Environment) -> Breaches:
    """The cluster name is short enough for accounting tables."""
    longest = parallelcluster().names.longest_cluster_with_accounting
    name = environment.cluster_name
    if environment.storage.accounting_database and len(name) > longest:
        yield at("cluster_name").breach(
            f"`{name}` has {len(name)} characters. With an accounting database at most {longest} are "
            "allowed, because Slurm names its tables after the cluster.",
            write(name[:longest].rstrip("-")),
        )


@PCL.error(61, f"{PCLUSTER}, RegionValidator", DATE)
def supported_region(cluster: Cluster, settings: ParallelCluster) -> Breaches:
    """ParallelCluster supports the Region."""
    supported = parallelcluster().regions
    if cluster.region not in supported:
        prefix = cluster.region.split("-")[0]
        near = [name for name in supported if name.startswith(f"{prefix}-")] or list(supported)
        yield at("region").breach(
            f"ParallelCluster {settings.version} does not support {cluster.region} and refuses to create a "
            "cluster there.",
            moved_to(cluster, *near[:3]),
        )


@PCL.warning(
    62,
    "aws/aws-parallelcluster releases; #7601 (8 CVEs in releases up to 3.16.0)",
    DATE,
)
def release_checked(settings: ParallelCluster) -> Breaches:
    """The release is one whose validators have checked our configuration."""
    release = settings.version
    checked = parallelcluster().checked_versions
    if release not in parallelcluster().judged_versions:
        older = (
            " Releases before 3.16.1 have security holes in Slurm." if version(release) < (3, 16, 1) else ""
        )
        yield at("version").breach(
            f"the configuration for {release} is only checked with the schema and validators of "
            f"{', '.join(checked)}.{older}",
            write(parallelcluster().judged_versions[-1]),
        )


@PCL.error(
    63,
    "aws/aws-parallelcluster#5675",
    DATE,
)
def queue_update_strategy(settings: ParallelCluster) -> Breaches:
    """Updates by CloudFormation do not require a stopped compute fleet."""
    if settings.deploy_with == "cloudformation" and settings.queue_update == "compute-fleet-stop":
        yield at("queue_update").breach(
            "ParallelCluster's custom resource cannot stop the fleet before an update: every `cdk deploy` "
            "that changes a queue would fail.",
            write("drain").noting("which waits for jobs; or deploy_with: pcluster"),
        )


@PCL.warning(
    73, "CloudFormation User Guide, AWS::CloudFormation::CustomResource (ServiceTimeout: 3600 seconds)", DATE
)
def creation_timeout(settings: ParallelCluster) -> Breaches:
    """The cluster starts within the hour that CloudFormation waits."""
    minutes = settings.bootstrap_timeout_minutes
    if settings.deploy_with == "cloudformation" and minutes > 30:
        yield at("bootstrap_timeout_minutes").breach(
            f"the head node may take {minutes} minutes, and compute nodes as many after it. CloudFormation "
            "gives the custom resource an hour, and would roll the stack back while nodes still start.",
            write(30).noting("with images that contain the software release; or deploy_with: pcluster"),
        )


@PCL.error(64, f"{PCLUSTER}, schema (RetentionInDays)", DATE)
def log_retention(monitoring: ParallelClusterMonitoring) -> Breaches:
    """log_retention_days is a value that CloudWatch Logs offers."""
    days = monitoring.log_retention_days
    offered = parallelcluster().log_retention_days
    if days not in offered:
        nearest = min((other for other in offered if other >= days), default=offered[-1])
        yield at("log_retention_days").breach(
            f"CloudWatch Logs does not offer {days} days; it offers {', '.join(map(str, offered))} (0 keeps "
            "logs forever).",
            write(nearest),
        )


@PCL.error(65, f"{PCLUSTER}, schema (Database UserName)", DATE)
def database_user(database: ExistingDatabase) -> Breaches:
    """The user of an existing accounting database is given."""
    if not database.username:
        yield at("username").breach(
            "ParallelCluster reads only the password from the secret and requires the user in its "
            "configuration.",
            ask("fact", "username: the `username` in the secret"),
        )


@PCL.error(
    66,
    f"{PCLUSTER}, schema (FsxOpenZfsSettings VolumeId)",
    DATE,
    by_hand="aws fsx describe-file-systems --file-system-ids <fs> "
    "--query 'FileSystems[].OpenZFSConfiguration.RootVolumeId'",
)
def openzfs_volume(openzfs: ExistingOpenZfs) -> Breaches:
    """The volume of an existing OpenZFS file system is given."""
    if not openzfs.volume_id:
        yield at("volume_id").breach(
            f"ParallelCluster mounts a volume, not a file system, and {openzfs.id} may have several.",
            ask("fact", "volume_id: fsvol-..., its RootVolumeId"),
        )


@PCL.error(67, f"{PCLUSTER}, ComputeResourceTagsValidator", DATE)
def tag_limit(environment: Environment) -> Breaches:
    """The tags fit into ParallelCluster's limit of 40."""
    limit = parallelcluster().counts["tags"] - OUR_TAGS
    if len(environment.tags) > limit:
        yield at("tags").breach(
            f"there are {len(environment.tags)} tags. ParallelCluster takes {limit + OUR_TAGS} on its nodes, "
            "and this package adds one.",
            ask("decision", f"at most {limit} tags"),
        )


@PCL.error(68, f"{PCLUSTER}, schema (Tags)", DATE)
def reserved_tags(environment: Environment) -> Breaches:
    """No tag key begins with ParallelCluster's own prefix."""
    prefix = parallelcluster().reserved_tag_prefix
    for key in environment.tags:
        if key.startswith(prefix):
            yield at("tags", key).breach(
                f"`{key}` begins with `{prefix}`, which ParallelCluster reserves for itself.",
                rename(key.removeprefix(prefix)) if key != prefix else drop(),
            )


@PCL.error(69, "release notes of ParallelCluster 3.15.0 (DevSettings EfaInterfaceType)", DATE)
def efa_interfaces(settings: ParallelCluster, cluster: Cluster) -> Breaches:
    """The release can attach EFA interfaces of this kind."""
    since = parallelcluster().efa_only_since
    if version(settings.version) >= version(since):
        return
    if settings.efa_interface == "efa":
        yield at("efa_interface").breach(
            f"ParallelCluster {settings.version} always attaches interfaces of this kind and has no setting "
            f"for it: {since} is the first release that has one.",
            beside(version=parallelcluster().judged_versions[-1]),
        )
    elif any(group.type and group.type.efa_interfaces for group in cluster.with_role("compute").values()):
        yield at("efa_interface").breach(
            f"ParallelCluster attaches efa-only interfaces from {since} on; {settings.version} uses an "
            "address of the subnet for each network card.",
            beside(version=parallelcluster().judged_versions[-1]),
        )
