"""Rules on: The environment as a whole: Region, zone, instance types, tags, ARNs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator
from typing import Any, cast

from ultracluster.catalog import (
    Region,
    instance_type,
    nearest_instance_types,
    nearest_regions,
    region,
    zone_region,
)
from ultracluster.catalog.eks import refused_zones
from ultracluster.config import Environment
from ultracluster.config.findings import Path
from ultracluster.config.orchestrator import HYPERPOD
from ultracluster.config.remedy import DROP, Remedy, anywhere, ask, drop, either, rename, write
from ultracluster.model import Cluster
from ultracluster.rules.engine import Breach
from ultracluster.rules.sets import ENV

_ZONE_ID: Path = ("network", "zone_id")
_LIST_ZONES = (
    "aws ec2 describe-availability-zones --all-availability-zones --region <region> "
    "--query 'AvailabilityZones[].[ZoneName,ZoneId,OptInStatus]'"
)

TAGS_OF_OURS = ("ultracluster:environment", "Name")
"""Tags that the constructs put on resources beside the environment's."""
_MAX_TAGS = 50  # FSx, EC2, S3, IAM and HyperPod alike
_IN_TAGS = "_.:/=+-@"


@ENV.rule(
    1,
    "error",
    "The Region exists",
    source="botocore 1.44.5: partitions",
    by_hand="aws account list-regions",
)
def region_exists(environment: Environment) -> Iterator[Breach]:
    if region(environment.region) is None:
        near = nearest_regions(environment.region)
        yield Breach(
            ("region",),
            f"`{environment.region}` is not an AWS Region: no stack can be deployed to it.",
            moved_to(environment, *(near or ["us-east-1"])),
        )


@ENV.rule(
    2,
    "warning",
    "HyperPod is offered in the Region",
    source="cfn-lint 1.58.0: CloudFormation schemas by Region, AWS::SageMaker::Cluster",
    by_hand="aws sagemaker list-clusters --region <region>",
    kinds=HYPERPOD,
)
def region_has_hyperpod(environment: Environment) -> Iterator[Breach]:
    known = region(environment.region)
    if known and known.hyperpod is False:
        yield Breach(
            ("region",),
            f"CloudFormation was not seen to have AWS::SageMaker::Cluster in {known.name}. If that "
            "still holds, the cluster stack cannot be created. The table may be behind AWS.",
            ask(
                "action",
                "ask HyperPod in this Region with the command of this rule, or choose another Region",
            ),
        )


@ENV.rule(
    3,
    "error",
    "`zone_id` is the id of a zone in the Region",
    source="EC2 User Guide: Availability Zone IDs for your AWS resources",
    by_hand=_LIST_ZONES,
)
def zone_in_region(environment: Environment) -> Iterator[Breach]:
    known = region(environment.region)
    breach = known and not_a_zone_of(known, environment.network.zone_id, _ZONE_ID, _taken(environment))
    if breach:
        yield breach


@ENV.rule(
    4,
    "warning",
    "`zone_id` is among the zones seen in the Region",
    source="EC2 DescribeInstanceTypeOfferings as moto 5.2.5 ships it",
    by_hand=_LIST_ZONES,
)
def zone_known(environment: Environment) -> Iterator[Breach]:
    known = region(environment.region)
    breach = known and unknown_zone(known, environment.network.zone_id, _ZONE_ID, _taken(environment))
    if breach:
        yield breach


@ENV.rule(
    5,
    "warning",
    "A cluster in a Local or Wavelength Zone has what it needs there",
    source="EC2 User Guide: Local Zones; aravneelaws/hyperpod-local-zone-quickstart",
    by_hand=_LIST_ZONES,
)
def local_zone(environment: Environment) -> Iterator[Breach]:
    zone_id = environment.network.zone_id
    known = region(environment.region)
    if not known or not_a_zone_of(known, zone_id, _ZONE_ID) or not in_local_zone(known, zone_id):
        return
    nat = (
        " Some have no NAT gateway and each has its own network border group for Elastic IPs."
        if environment.network.egress == "nat" and not environment.network.vpc
        else ""
    )
    yield Breach(
        _ZONE_ID,
        f"`{zone_id}` is a Local or Wavelength Zone of {known.name}. The account must opt in to it "
        f"before a subnet can be made there, and it offers fewer services.{nat}",
        _zone(known, second_zones(environment)).noting("or opt in to it first"),
    )


@ENV.rule(
    6,
    "error",
    "Each instance type is known",
    source="EC2 DescribeInstanceTypes; botocore 1.44.5 sagemaker: ClusterInstanceType",
    by_hand="aws ec2 describe-instance-types --instance-types <type>",
)
def instance_type_known(environment: Environment) -> Iterator[Breach]:
    for name, group in environment.node_groups.items():
        wanted = group.instance_type
        if instance_type(wanted) or wanted in environment.instance_types:
            continue
        family = wanted.partition(".")[0]
        near = [name for name in environment.instance_types if name.partition(".")[0] == family]
        near += nearest_instance_types(wanted)
        if environment.orchestrator.kind in HYPERPOD:
            near = [one for one in near if not (known := instance_type(one)) or known.hyperpod]
        yield Breach(
            ("node_groups", name, "instance_type"),
            f"the catalogue has no instance type `{wanted}`: its network cards, addresses and "
            "place in HyperPod are unknown, and nothing about this group can be checked.",
            (write(*near) if near else ask("fact", "a type of the catalogue")).noting(
                f"one just announced is declared under instance_types: {{{wanted}: ...}}"
            ),
        )


@ENV.rule(
    7,
    "warning",
    "A declared instance type is one that the catalogue does not have",
    source="the catalogue: EC2 DescribeInstanceTypes",
)
def declaration_outdated(environment: Environment) -> Iterator[Breach]:
    for name in environment.instance_types:
        if instance_type(name):
            yield Breach(
                ("instance_types", name),
                f"the catalogue now has `{name}`. Its figures are compared with AWS's, so they are "
                "used and this declaration is not.",
                drop(),
            )


@ENV.rule(
    8,
    "warning",
    "A declared instance type is used",
    source="this file: `node_groups`",
)
def declaration_unused(environment: Environment) -> Iterator[Breach]:
    used = {group.instance_type for group in environment.node_groups.values()}
    for name in environment.instance_types:
        if name not in used and not instance_type(name):
            yield Breach(
                ("instance_types", name),
                f"`{name}` is declared and no node group uses it.",
                drop().noting(f"or write instance_type: {name} in a node group"),
            )


@ENV.rule(
    18,
    "warning",
    "What nodes need to know of an instance type is known",
    source="the catalogue: instances.json, `families` and `types`",
    date="2026-11-22",
    by_hand="nvidia-smi topo -m; lnetctl net show  (on a node of that type)",
)
def type_facts(cluster: Cluster) -> Iterator[Breach]:
    told: set[str] = set()
    for name, group in cluster.groups.items():
        known = group.type
        if known is None or known.name in told or not (unknown := known.unknown_facts):
            continue
        told.add(known.name)
        place = f"instance_types.{known.name}" if known.declared else "its row in the catalogue"
        yield Breach(
            ("instance_types", known.name) if known.declared else ("node_groups", name, "instance_type"),
            f"of {known.name} nobody has filled in {', '.join(unknown)}. Its nodes go by what they find in "
            "their hardware, and do without what cannot be found there; plans leave it out.",
            ask("fact", f"add {', '.join(unknown)} to {place}"),
        )


@ENV.rule(
    9,
    "error",
    "There is room for our tags",
    source="botocore 1.44.5 fsx: Tags; EC2 User Guide: tag restrictions",
)
def tag_count(environment: Environment) -> Iterator[Breach]:
    most = _MAX_TAGS - len(TAGS_OF_OURS)
    if len(environment.tags) > most:
        yield Breach(
            ("tags",),
            f"{len(environment.tags)} tags. AWS takes {_MAX_TAGS} on a resource, and "
            f"{' and '.join(f'`{tag}`' for tag in TAGS_OF_OURS)} are added to these.",
            ask("decision", f"at most {most} tags"),
        )


@ENV.rule(
    10,
    "error",
    "Tag keys differ in more than case",
    source="IAM User Guide: Tags for IAM resources",
)
def tag_case(environment: Environment) -> Iterator[Breach]:
    seen = {TAGS_OF_OURS[0].lower(): TAGS_OF_OURS[0]}
    for key in environment.tags:
        first = seen.setdefault(key.lower(), key)
        if first == key and key != TAGS_OF_OURS[0]:
            continue
        whose = "which we set on every resource" if first == TAGS_OF_OURS[0] else "which stands above"
        yield Breach(
            ("tags", key),
            f"`{key}` is the same key as `{first}`, {whose}. IAM does not tell tag keys apart by "
            "case and refuses the role that carries both.",
            drop().noting("or rename it"),
        )


@ENV.rule(
    11,
    "error",
    "Tags hold only characters that AWS takes",
    source="botocore 1.44.5 fsx: TagKey, TagValue",
)
def tag_characters(environment: Environment) -> Iterator[Breach]:
    for key, value in environment.tags.items():
        for what, text in (("key", key), ("value", value)):
            wrong = {sign for sign in text if not _in_tags(sign)}
            if wrong:
                mended = "".join("-" if sign in wrong else sign for sign in text)
                yield Breach(
                    ("tags", key),
                    f"the {what} `{text}` has {' '.join(sorted(wrong))}; FSx and others refuse the "
                    f"resource. Letters, digits, spaces and {' '.join(_IN_TAGS)} are taken.",
                    rename(mended) if what == "key" else write(mended),
                )


@ENV.rule(
    16,
    "error",
    "No tag's key begins with `aws:`",
    source="EC2 User Guide, Tag your Amazon EC2 resources (tag restrictions); S3, FSx and IAM have the same",
    date="2026-11-22",
)
def reserved_tags(environment: Environment) -> Iterator[Breach]:
    for key in environment.tags:
        if key.lower().startswith("aws:"):
            own = key[4:].lstrip(": ")
            yield Breach(
                ("tags", key),
                f"`{key}` begins with `aws:`, in whatever case, which AWS keeps for tags of its own.",
                rename(own) if own and own not in environment.tags else drop(),
            )


@ENV.rule(
    17,
    "error",
    "A bucket has a name that S3 gives",
    source="Amazon S3 User Guide, General purpose bucket naming rules",
    date="2026-11-22",
)
def bucket_names(environment: Environment) -> Iterator[Breach]:
    for path, name in _buckets(environment):
        why = ""
        if ".." in name:
            why = "two dots stand together"
        elif re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", name):
            why = "it is an IP address"
        elif begin := next((one for one in _RESERVED_BEGINNINGS if name.startswith(one)), ""):
            why = f"S3 keeps names that begin with `{begin}` for itself"
        elif end := next((one for one in _RESERVED_ENDINGS if name.endswith(one)), ""):
            why = f"names that end in `{end}` are not of general purpose buckets: {_RESERVED_ENDINGS[end]}"
        if why:
            yield Breach(
                path,
                f"`{name}` cannot be the name of a bucket: {why}.",
                ask("fact", "the name of the bucket, as `aws s3 ls` prints it"),
            )


@ENV.rule(
    12,
    "error",
    "Each ARN is of the environment's Region",
    source="IAM User Guide: Amazon Resource Names (ARNs)",
)
def arn_region(environment: Environment) -> Iterator[Breach]:
    home = region(environment.region)
    if not home:
        return
    for path, arn in arns(environment):
        _, partition, service, where, *_ = arn.split(":")
        if partition != home.partition:
            yield Breach(
                path,
                f"the ARN is of the partition `{partition}`, and {home.name} belongs to "
                f"`{home.partition}`. Partitions share neither accounts nor resources.",
                ask("fact", f"an ARN that begins with arn:{home.partition}:{service}:{home.name}:"),
            )
        elif where and where != home.name:
            yield Breach(
                path,
                f"the ARN is of {where}, and the environment is in {home.name}. What is deployed "
                f"in one Region cannot use what {service} has in another.",
                ask("fact", f"an ARN that begins with arn:{partition}:{service}:{home.name}:"),
            )


@ENV.rule(
    13,
    "warning",
    "Each ARN is of the environment's account",
    source="IAM User Guide: Amazon Resource Names (ARNs)",
)
def arn_account(environment: Environment) -> Iterator[Breach]:
    if not environment.account:
        return
    for path, arn in arns(environment):
        owner = arn.split(":")[4]
        if owner and owner != environment.account:
            yield Breach(
                path,
                f"the ARN is of account {owner}, and the environment is deployed to "
                f"{environment.account}. AWS denies the use unless {owner} shares the resource: by "
                "the policy of the key or secret, or by AWS Resource Access Manager.",
                ask("fact", f"an ARN of {environment.account}, or acknowledge with where it is shared"),
            )


def not_a_zone_of(home: Region, zone_id: str, path: Path, avoid: Container[str] = ()) -> Breach | None:
    """The breach at `path` if `zone_id` cannot be a zone of `home`; no zone of `avoid` is advised."""
    zones = _zones(home, avoid)
    found = zone_region(zone_id)
    if found and zone_id.startswith(found.name):
        return Breach(
            path,
            f"`{zone_id}` is a zone's name. AWS deals names out anew in each account; reservations "
            "and training plans are matched by the zone's id.",
            ask("fact", f"the id that this account has for it, one of {', '.join(zones) or 'its zones'}"),
        )
    if found and found.name != home.name:
        return Breach(
            path,
            f"`{zone_id}` is a zone of {found.name}, and the environment is in {home.name}: a "
            "subnet cannot be made there.",
            _zone(home, avoid).noting(f"or region: {found.name}"),
        )
    if not found and home.zone_prefix:
        return Breach(
            path, f"`{zone_id}` does not have the form of a zone id of {home.name}.", _zone(home, avoid)
        )
    return None


def unknown_zone(home: Region, zone_id: str, path: Path, avoid: Container[str] = ()) -> Breach | None:
    """The breach at `path` if `zone_id` has the form of a zone of `home` and nobody has seen it."""
    if not home.zone_ids or zone_id in home.zone_ids:
        return None
    if not_a_zone_of(home, zone_id, path) or in_local_zone(home, zone_id):
        return None
    return Breach(
        path,
        f"`{zone_id}` is not among the zones seen in {home.name}. If this account does not have "
        "it, the subnet cannot be made.",
        _zone(home, avoid),
    )


def in_local_zone(home: Region, zone_id: str) -> bool:
    """Whether a zone of `home` is a Local Zone or a Wavelength Zone, by the form of its id."""
    mine = bool(home.zone_prefix) and zone_id.startswith(f"{home.zone_prefix}-")
    return mine and not re.fullmatch(rf"{home.zone_prefix}-az\d+", zone_id)


def _in_tags(sign: str) -> bool:
    return sign in _IN_TAGS or unicodedata.category(sign)[0] in "LNZ"


def arns(environment: Environment) -> Iterator[tuple[Path, str]]:
    """Each ARN of the environment with its path."""
    yield from _arns(environment.model_dump(), ())


def _arns(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield from _arns(part, (*path, key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast("tuple[Any, ...]", value)):
            yield from _arns(part, (*path, index))
    elif isinstance(value, str) and str(path[-1]).endswith("arn") and value.startswith("arn:"):
        yield path, value


def _zones(home: Region, avoid: Container[str] = ()) -> list[str]:
    return [zone for zone in home.zone_ids if zone not in avoid and not in_local_zone(home, zone)]


def _zone(home: Region, avoid: Container[str] = ()) -> Remedy:
    zones = _zones(home, avoid)
    return write(*zones) if zones else ask("fact", f"{home.zone_prefix or '<prefix>'}-az1, -az2 ...")


def _taken(environment: Environment) -> tuple[str, ...]:
    """Zones that nodes cannot be sent to: those beside them, and where EKS takes no control plane."""
    refused = refused_zones() if environment.orchestrator.kind in ("eks", "hyperpod-eks") else ()
    return (*second_zones(environment), *refused)


def second_zones(environment: Environment) -> list[str]:
    """Zones that a control plane or a database has beside that of the nodes."""
    database = environment.storage.accounting_database
    parts = (environment.orchestrator, database)
    return [zone for part in parts if (zone := getattr(part, "second_zone_id", None))]


def moved_to(environment: Environment, *names: str) -> Remedy:
    """The environment in one of these Regions, with zones that are there; ARNs and ids cannot move."""
    if any(True for _ in arns(environment)) or environment.network.vpc:
        return ask("decision", f"region: {' or '.join(names)}, with what exists there")
    return either(*(_moved_to(environment, name) for name in names))


def _moved_to(environment: Environment, name: str) -> Remedy:
    home = region(name)
    zones = _zones(home, refused_zones()) if home else []
    changes: dict[Path, Any] = {("region",): name}
    if zones and home and not environment.network.zone_id.startswith(f"{home.zone_prefix}-"):
        changes[_ZONE_ID] = zones[0]
        if getattr(environment.orchestrator, "second_zone_id", None):
            changes["orchestrator", "second_zone_id"] = zones[-1]
        if getattr(environment.storage.accounting_database, "second_zone_id", None):
            changes["storage", "accounting_database", "second_zone_id"] = zones[-1]
    return anywhere(changes)


def new_database(environment: Environment) -> Remedy:
    """An accounting database of our own, where its second zone is known."""
    home, network = region(environment.region), environment.network
    zones = _zones(home, (network.zone_id,)) if home else []
    if network.vpc or not zones:
        return ask("fact", "storage.accounting_database: {kind: rds-mysql, ...} with its zone or subnets")
    database = {"kind": "rds-mysql", "second_zone_id": zones[0]}
    return anywhere({("storage", "accounting_database"): database})


def continuous(environment: Environment) -> Remedy:
    """HyperPod's continuous provisioning, which takes no strategy."""
    changes: dict[Path, Any] = {("orchestrator", "provisioning"): "continuous"}
    if getattr(environment.orchestrator, "slurm_config_strategy", None):
        changes["orchestrator", "slurm_config_strategy"] = DROP
    return anywhere(changes)


_RESERVED_BEGINNINGS = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_ENDINGS = {
    "-s3alias": "it is the alias of an access point",
    "--ol-s3": "it is the alias of an Object Lambda access point",
    ".mrap": "it is the alias of a Multi-Region access point",
    "--x-s3": "it is a directory bucket, which FSx does not link",
    "--table-s3": "it is a table bucket",
}


def _buckets(environment: Environment) -> Iterator[tuple[Path, str]]:
    """Each bucket that is named, and where."""
    storage = environment.storage
    for folder, link in environment.data_repositories.items():
        if link.bucket:
            yield ("storage", "lustre", "data_repositories", folder, "bucket"), link.bucket
    for key, bucket in (("scripts_bucket", storage.scripts_bucket), ("log_bucket", storage.log_bucket)):
        if bucket:
            yield ("storage", key, "name"), bucket.name
    if environment.software.mirror:
        yield ("software", "mirror"), environment.software.mirror.removeprefix("s3://").partition("/")[0]
