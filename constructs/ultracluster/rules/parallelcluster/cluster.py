"""Rules on: ParallelCluster. The cluster: name, release, storage, monitoring, directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlparse

from ultracluster.catalog.parallelcluster import parallelcluster, version
from ultracluster.config import Environment
from ultracluster.config.remedy import ask, beside, drop, rename, write
from ultracluster.model.types import instance_type_of
from ultracluster.rules.engine import Breach
from ultracluster.rules.environment.basics import moved_to
from ultracluster.rules.parallelcluster.groups import DATE, PACKAGE, asked
from ultracluster.rules.sets import PCL

OUR_TAGS = 1
"""`ultracluster:environment`."""


@PCL.rule(
    60,
    "error",
    "The cluster's name has room for its tables",
    source=f"{PACKAGE}, ClusterNameValidator",
    date=DATE,
)
def name_with_accounting(environment: Environment) -> Iterator[Breach]:
    longest = parallelcluster().names.longest_cluster_with_accounting
    name = environment.cluster_name
    if environment.storage.accounting_database and len(name) > longest:
        yield Breach(
            ("orchestrator", "cluster_name"),
            f"`{name}` has {len(name)} characters. With an accounting database {longest} are allowed: "
            "Slurm calls its tables after the cluster.",
            write(name[:longest].rstrip("-")),
        )


@PCL.rule(61, "error", "ParallelCluster runs in the Region", source=f"{PACKAGE}, RegionValidator", date=DATE)
def supported_region(environment: Environment) -> Iterator[Breach]:
    known = parallelcluster().regions
    if environment.region not in known:
        prefix = environment.region.split("-")[0]
        near = [name for name in known if name.startswith(f"{prefix}-")] or list(known)
        yield Breach(
            ("region",),
            f"ParallelCluster {asked(environment).version} does not support {environment.region}: it refuses "
            "to make a cluster there.",
            moved_to(environment, *near[:3]),
        )


@PCL.rule(
    62,
    "warning",
    "The release is one whose validators have judged what we write",
    source="aws/aws-parallelcluster releases; #7601 (8 CVEs in releases up to 3.16.0)",
    date=DATE,
)
def checked_release(environment: Environment) -> Iterator[Breach]:
    release = asked(environment).version
    checked = parallelcluster().checked_versions
    if release not in parallelcluster().judged_versions:
        older = (
            " Releases before 3.16.1 have security holes in Slurm." if version(release) < (3, 16, 1) else ""
        )
        yield Breach(
            ("orchestrator", "version"),
            f"what is written for {release} has only been checked with the schema and validators of "
            f"{', '.join(checked)}.{older}",
            write(parallelcluster().judged_versions[-1]),
        )


@PCL.rule(
    63,
    "error",
    "A cluster made by CloudFormation needs no fleet stopped by hand",
    source="aws/aws-parallelcluster#5675",
    date=DATE,
)
def fleet_stop(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    if orchestrator.deploy_with == "cloudformation" and orchestrator.queue_update == "compute-fleet-stop":
        yield Breach(
            ("orchestrator", "queue_update"),
            "ParallelCluster's custom resource cannot stop the fleet before an update: every `cdk deploy` "
            "that changes a queue would fail.",
            write("drain").noting("which waits for jobs; or deploy_with: pcluster"),
        )


@PCL.rule(
    73,
    "warning",
    "The cluster comes up within the hour that CloudFormation waits",
    source="CloudFormation User Guide, AWS::CloudFormation::CustomResource (ServiceTimeout: 3600 seconds)",
    date=DATE,
)
def slower_than_cloudformation(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    minutes = orchestrator.bootstrap_timeout_minutes
    if orchestrator.deploy_with == "cloudformation" and minutes > 30:
        yield Breach(
            ("orchestrator", "bootstrap_timeout_minutes"),
            f"{minutes} minutes for the head node and as many for compute nodes after it: CloudFormation "
            "gives the custom resource an hour, and rolls the stack back while nodes still come up.",
            write(30).noting("with images that hold the software release; or deploy_with: pcluster"),
        )


@PCL.rule(
    64,
    "error",
    "Logs are kept for a time that CloudWatch Logs offers",
    source=f"{PACKAGE}, schema (RetentionInDays)",
    date=DATE,
)
def log_retention(environment: Environment) -> Iterator[Breach]:
    days = asked(environment).monitoring.log_retention_days
    offered = parallelcluster().log_retention_days
    if days not in offered:
        nearest = min((one for one in offered if one >= days), default=offered[-1])
        yield Breach(
            ("orchestrator", "monitoring", "log_retention_days"),
            f"{days} days; offered are {', '.join(map(str, offered))} (0 is for ever).",
            write(nearest),
        )


@PCL.rule(
    65,
    "error",
    "Of an existing accounting database the user is named",
    source=f"{PACKAGE}, schema (Database UserName)",
    date=DATE,
)
def database_user(environment: Environment) -> Iterator[Breach]:
    database = environment.storage.accounting_database
    if database and database.kind == "existing" and not database.username:
        yield Breach(
            ("storage", "accounting_database", "username"),
            "ParallelCluster takes only the password from the secret and wants the user in its "
            "configuration.",
            ask("fact", "username: the `username` of the secret"),
        )


@PCL.rule(
    66,
    "error",
    "Of an existing OpenZFS file system the volume is named",
    source=f"{PACKAGE}, schema (FsxOpenZfsSettings VolumeId)",
    date=DATE,
    by_hand="aws fsx describe-file-systems --file-system-ids <fs> "
    "--query 'FileSystems[].OpenZFSConfiguration.RootVolumeId'",
)
def openzfs_volume(environment: Environment) -> Iterator[Breach]:
    openzfs = environment.storage.openzfs
    if openzfs and openzfs.deployment == "existing" and not openzfs.volume_id:
        yield Breach(
            ("storage", "openzfs", "volume_id"),
            f"ParallelCluster mounts a volume, not a file system, and {openzfs.id} has several.",
            ask("fact", "volume_id: fsvol-..., its RootVolumeId"),
        )


@PCL.rule(
    67,
    "error",
    "ParallelCluster has room for the tags",
    source=f"{PACKAGE}, ComputeResourceTagsValidator",
    date=DATE,
)
def tag_limit(environment: Environment) -> Iterator[Breach]:
    limit = parallelcluster().counts["tags"] - OUR_TAGS
    if len(environment.tags) > limit:
        yield Breach(
            ("tags",),
            f"{len(environment.tags)} tags: ParallelCluster takes {limit + OUR_TAGS} on its nodes, and one "
            "of ours is added to these.",
            ask("decision", f"at most {limit} tags"),
        )


@PCL.rule(
    68, "error", "No tag is called as ParallelCluster's own", source=f"{PACKAGE}, schema (Tags)", date=DATE
)
def reserved_tags(environment: Environment) -> Iterator[Breach]:
    prefix = parallelcluster().reserved_tag_prefix
    for key in environment.tags:
        if key.startswith(prefix):
            yield Breach(
                ("tags", key),
                f"`{key}` begins with `{prefix}`, which ParallelCluster keeps for itself.",
                rename(key.removeprefix(prefix)) if key != prefix else drop(),
            )


@PCL.rule(
    69,
    "error",
    "The release has the kind of EFA interfaces",
    source="release notes of ParallelCluster 3.15.0 (DevSettings EfaInterfaceType)",
    date=DATE,
)
def efa_interfaces(environment: Environment) -> Iterator[Breach]:
    orchestrator = asked(environment)
    since = parallelcluster().efa_only_since
    if version(orchestrator.version) >= version(since):
        return
    if orchestrator.efa_interface == "efa":
        yield Breach(
            ("orchestrator", "efa_interface"),
            f"ParallelCluster {orchestrator.version} attaches interfaces of this kind and knows no setting "
            f"for it: {since} is the first that has one.",
            beside(version=parallelcluster().judged_versions[-1]),
        )
    elif any(
        (known := instance_type_of(environment, group)) and known.efa_interfaces
        for group in environment.groups("compute").values()
    ):
        yield Breach(
            ("orchestrator", "efa_interface"),
            f"ParallelCluster attaches efa-only interfaces from {since} on; {orchestrator.version} takes an "
            "address of the subnet for each network card.",
            beside(version=parallelcluster().judged_versions[-1]),
        )


"""Reserved with everything below them; of the others only the folder itself is."""


@PCL.rule(
    80,
    "error",
    "The directory's domain is a name",
    source=f"{PACKAGE}, DomainNameValidator",
    date=DATE,
)
def domain_name(environment: Environment) -> Iterator[Breach]:
    directory = asked(environment).directory_service
    forms = (r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*", r"(DC|dc)=[a-zA-Z0-9_-]+(,(DC|dc)=[a-zA-Z0-9_-]+)*")
    if directory and not any(re.fullmatch(form, directory.domain_name) for form in forms):
        yield Breach(
            ("orchestrator", "directory_service", "domain_name"),
            f"`{directory.domain_name}` is neither a domain nor a distinguished name.",
            ask("fact", "corp.example.com, or DC=corp,DC=example,DC=com"),
        )


@PCL.rule(
    81,
    "warning",
    "The directory is reached over TLS",
    source=f"{PACKAGE}, DomainAddrValidator and LdapTlsReqCertValidator",
    date=DATE,
)
def directory_over_tls(environment: Environment) -> Iterator[Breach]:
    directory = asked(environment).directory_service
    if not directory:
        return
    for address in directory.domain_address.split(","):
        scheme = urlparse(address.strip()).scheme
        if scheme != "ldaps":
            yield Breach(
                ("orchestrator", "directory_service", "domain_address"),
                f"`{address.strip()}` "
                + (f"is reached over {scheme}: passwords cross the network in the clear." if scheme else
                   "says no protocol."),
                write(_over_tls(directory.domain_address)),
            )  # fmt: skip
    if directory.tls_require_certificate not in ("hard", "demand"):
        yield Breach(
            ("orchestrator", "directory_service", "tls_require_certificate"),
            f"`{directory.tls_require_certificate}` lets anybody answer as the directory.",
            write("hard").noting("with tls_ca_certificate where its authority is your own"),
        )


@PCL.rule(
    82,
    "error",
    "Settings of sssd are not ParallelCluster's own",
    source=f"{PACKAGE}, AdditionalSssdConfigsValidator",
    date=DATE,
)
def sssd_settings(environment: Environment) -> Iterator[Breach]:
    directory = asked(environment).directory_service
    if not directory:
        return
    wanted = dict(parallelcluster().sssd)
    if directory.access_filter is not None:
        wanted["access_provider"] = "ldap"
    for key, value in directory.sssd_settings.items():
        if key in wanted and value != wanted[key]:
            yield Breach(
                ("orchestrator", "directory_service", "sssd_settings", key),
                f"`{value}`: ParallelCluster takes `{wanted[key]}` only"
                + (" beside access_filter." if key == "access_provider" else "."),
                write(wanted[key]) | drop(),
            )


@PCL.rule(
    83,
    "error",
    "The directory's password is in Secrets Manager",
    source=f"{PACKAGE}, PasswordSecretArnValidator",
    date=DATE,
)
def directory_secret(environment: Environment) -> Iterator[Breach]:
    directory = asked(environment).directory_service
    if directory and directory.password_secret_arn.split(":")[2] != "secretsmanager":
        yield Breach(
            ("orchestrator", "directory_service", "password_secret_arn"),
            f"{directory.password_secret_arn} is not the ARN of a secret.",
            ask("fact", "arn:aws:secretsmanager:...:secret:..., whose text is the password alone"),
        )


def _over_tls(addresses: str) -> str:
    return ",".join(f"ldaps://{one.strip().split('://')[-1]}" for one in addresses.split(","))
