"""What exists of file systems, buckets, key and secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

from ultracluster.account.aws import AWS_ERRORS, code, existing
from ultracluster.account.preflight.rows import ALLOW, Question, Row, Situation
from ultracluster.config.base import s3_place
from ultracluster.config.storage import ExistingDatabase, ExistingLustre, ExistingOpenZfs
from ultracluster.model.addresses import subnets


def questions(situation: Situation) -> Iterator[Question]:
    storage = situation.environment.storage
    lustres = (("Lustre", lustre.settings) for lustre in situation.environment.lustres.values())
    for what, file_system in (*lustres, ("OpenZFS", storage.openzfs)):
        if isinstance(file_system, ExistingLustre | ExistingOpenZfs):
            yield Question(
                "storage", f"{what} {file_system.id}",
                lambda what=what, one=file_system: _file_system(situation, what, one),
            )  # fmt: skip
    for bucket, use in _buckets(situation).items():
        yield Question(
            "storage", f"bucket {bucket}", lambda bucket=bucket, use=use: _bucket(situation, bucket, use)
        )
    for bucket in _linked(situation):
        yield Question(
            "storage", f"bucket {bucket} and FSx", lambda bucket=bucket: _lets_fsx_in(situation, bucket)
        )
    keys = {"storage.key": storage.key.arn if storage.key else None}
    keys |= {f"storage.keys.{name}": key.arn for name, key in storage.keys if key}
    if isinstance(storage.accounting_database, ExistingDatabase):
        secret = storage.accounting_database.secret_arn
        keys["the database's secret"] = storage.accounting_database.secret_key_arn
        yield Question("storage", "secret of the database", lambda: _secret(situation, secret))
    for use, arn in keys.items():
        if arn:
            yield Question("storage", f"key of {use}", lambda use=use, arn=arn: _key(situation, use, arn))


def _file_system(situation: Situation, what: str, wanted: ExistingLustre | ExistingOpenZfs) -> Iterator[Row]:
    name = f"{what} {wanted.id}"
    fsx = situation.client("fsx")
    answer = existing(lambda: fsx.describe_file_systems(FileSystemIds=[wanted.id]), "FileSystemNotFound")
    if answer is None:
        yield Row(name, "red", f"is not in {situation.environment.region}", "check id, account and Region")
        return
    system = answer["FileSystems"][0]
    life = str(system.get("Lifecycle", ""))
    if life == "AVAILABLE":
        yield Row(name, "green", "is available")
    elif life in ("CREATING", "UPDATING", "MISCONFIGURED"):
        yield Row(name, "yellow", f"is {life}", "wait until it is AVAILABLE, or see the FSx console")
    elif life in ("FAILED", "DELETING", "MISCONFIGURED_UNAVAILABLE"):
        yield Row(name, "red", f"is {life}", "name another one")
    else:
        yield Row(name, "unknown", f"is {life or 'without a state'}, unknown to this release")
    yield from _values(name, wanted, system)
    yield from _place(situation, name, system)


def _values(name: str, wanted: ExistingLustre | ExistingOpenZfs, found: dict[str, Any]) -> Iterator[Row]:
    lustre = found.get("LustreConfiguration", {})
    pairs: list[tuple[str, Any, Any]] = [("dns_name", wanted.dns_name, found.get("DNSName"))]
    if isinstance(wanted, ExistingLustre):
        pairs.append(("mount_name", wanted.mount_name, lustre.get("MountName")))
        pairs.append(("efa", wanted.efa, bool(lustre.get("EfaEnabled", False))))
    elif wanted.volume_id:
        root = found.get("OpenZFSConfiguration", {}).get("RootVolumeId")
        pairs.append(("volume_id", wanted.volume_id, root))
    for field, said, is_ in pairs:
        if is_ is not None and said != is_:
            shown = str(is_).lower() if isinstance(is_, bool) else is_
            yield Row(
                f"{name} {field}", "red", f"is {shown}, the file says {said}", f"write `{field}: {shown}`"
            )


def _place(situation: Situation, name: str, found: dict[str, Any]) -> Iterator[Row]:
    """Clients of a file system are in its zone, VPC and /16 (FSx for Lustre User Guide)."""
    ids = found.get("SubnetIds", [])
    if not ids:
        return
    subnet = situation.client("ec2").describe_subnets(SubnetIds=ids[:1])["Subnets"][0]
    network = situation.environment.network
    zone = subnet.get("AvailabilityZoneId", "")
    if network.vpc is None or found.get("VpcId") not in (None, network.vpc.id):
        here = network.vpc.id if network.vpc else "a VPC that is made"
        yield Row(
            f"{name} VPC", "red", f"is in {found.get('VpcId')}, the nodes in {here}",
            "nodes mount file systems of their own VPC: write `network.vpc`",
        )  # fmt: skip
    if zone != network.zone_id:
        yield Row(
            f"{name} zone", "red", f"is in {zone}, the nodes in {network.zone_id}",
            "EFA does not leave a zone, and traffic between zones is billed: use one zone",
        )  # fmt: skip
    else:
        yield Row(f"{name} zone", "green", zone)
    if network.vpc:
        nodes, servers = subnets(situation.cluster).nodes, IPv4Network(subnet["CidrBlock"])
        if not nodes.overlaps(servers.supernet(new_prefix=min(16, servers.prefixlen))):
            yield Row(
                f"{name} network", "red", f"is in {servers}, the nodes in {nodes}",
                "EFA clients and file system share a /16: use a subnet of the same one",
            )  # fmt: skip


def _buckets(situation: Situation) -> dict[str, str]:
    """Buckets that exist: name to what they are for."""
    environment, storage = situation.environment, situation.environment.storage
    found: dict[str, str] = {}
    if storage.scripts_bucket:
        found[storage.scripts_bucket.name] = "lifecycle scripts"
    if storage.log_bucket:
        found[storage.log_bucket.name] = "access logs"
    for links in environment.all_data_repositories.values():
        for folder, repository in links.items():
            if repository.bucket:
                found.setdefault(repository.bucket, f"data repository {folder}")
    if environment.software.mirror:
        found.setdefault(s3_place(environment.software.mirror)[0], "software mirror")
    return found


def _bucket(situation: Situation, name: str, use: str) -> Iterator[Row]:
    what, region = f"bucket {name}", situation.environment.region
    try:
        answer = situation.client("s3").head_bucket(Bucket=name)
    except AWS_ERRORS as error:
        match code(error):
            case "404" | "NoSuchBucket":
                yield Row(what, "red", f"does not exist ({use})", "make it, or name another one")
            case "403" | "AccessDenied":
                yield Row(
                    what, "unknown", f"these credentials may not see it ({use}): s3:ListBucket",
                    f"if it belongs to another account that is right; otherwise {ALLOW}",
                )  # fmt: skip
            case "301":
                yield Row(what, "red", f"is in another Region ({use})", f"name one in {region}")
            case _:
                raise
        return
    there = answer.get("BucketRegion") or region
    if there != region:
        yield Row(what, "red", f"is in {there} ({use})", f"name one in {region}")
    else:
        yield Row(what, "green", use)


def _linked(situation: Situation) -> list[str]:
    """Buckets of others that Lustre file systems are tied to."""
    links = situation.environment.all_data_repositories.values()
    return list(dict.fromkeys(link.bucket for own in links for link in own.values() if link.bucket))


def _lets_fsx_in(situation: Situation, name: str) -> Iterator[Row]:
    """FSx's role for S3 reads and writes the bucket, by its policy and its key; else the association fails or
    ends as MISCONFIGURED (FSx for Lustre User Guide, Linking your file system to an S3 bucket)."""
    s3 = situation.client("s3")
    answer = existing(lambda: s3.get_bucket_policy(Bucket=name), "NoSuchBucketPolicy")
    policy: dict[str, Any] = json.loads(answer["Policy"]) if answer else {}
    statements: list[dict[str, Any]] = policy.get("Statement", [])
    denials = [
        statement
        for statement in statements
        if statement.get("Effect") == "Deny" and not _only_tls(statement)
    ]
    what = f"bucket {name} policy"
    if denials:
        named = ", ".join(str(denial.get("Sid") or "one without a Sid") for denial in denials)
        yield Row(
            what, "yellow", f"denies something: {named}",
            "see that it does not mean FSx's role for S3 (AWSServiceRoleForFSxS3Access_<file system>)",
        )  # fmt: skip
    else:
        yield Row(what, "green", "shuts no one out")
    rules: list[dict[str, Any]] = []
    try:
        rules = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"]
    except AWS_ERRORS as error:
        if code(error) != "ServerSideEncryptionConfigurationNotFoundError":
            raise
    keys = [rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID", "") for rule in rules]
    if any(keys):
        yield Row(
            f"bucket {name} key", "yellow", f"objects are encrypted with {', '.join(filter(None, keys))}",
            "its policy must let FSx's role for S3 use it (kms:Decrypt, kms:GenerateDataKey)",
        )  # fmt: skip


def _only_tls(statement: dict[str, Any]) -> bool:
    """The usual denial of requests without TLS, which FSx does not make."""
    return statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport") in ("false", False)


def _key(situation: Situation, use: str, arn: str) -> Iterator[Row]:
    what = f"key of {use}"
    key = situation.client("kms").describe_key(KeyId=arn)["KeyMetadata"]
    state = key.get("KeyState", "")
    if key.get("KeyManager") == "AWS":
        yield Row(
            what, "red", "is managed by AWS: its policy cannot admit FSx and the nodes", "name one of yours"
        )
    elif key.get("KeyUsage", "ENCRYPT_DECRYPT") != "ENCRYPT_DECRYPT":
        yield Row(what, "red", f"is for {key['KeyUsage']}", "name one for ENCRYPT_DECRYPT")
    elif state != "Enabled":
        yield Row(what, "red", f"is {state}", f"aws kms enable-key --key-id {arn}")
    else:
        yield Row(what, "green", "is enabled")


def _secret(situation: Situation, arn: str) -> Iterator[Row]:
    what = "secret of the database"
    secret = situation.client("secretsmanager").describe_secret(SecretId=arn)
    if secret.get("DeletedDate"):
        yield Row(
            what, "red", f"is deleted on {secret['DeletedDate']:%Y-%m-%d}", "restore it, or name another"
        )
    else:
        yield Row(what, "green", str(secret.get("Name", arn)))
