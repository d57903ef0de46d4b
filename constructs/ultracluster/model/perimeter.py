"""What may be reached through the VPC endpoints of an environment: accounts, an organization, buckets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ultracluster.config import Environment
from ultracluster.config.base import is_token, s3_place
from ultracluster.config.findings import YamlPath
from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.network import Network
from ultracluster.config.parallelcluster import ParallelCluster
from ultracluster.config.storage import ExistingKey, JobBucket, KeysByPurpose
from ultracluster.model.cluster import Cluster
from ultracluster.model.endpoints import words_of

REGISTRY = re.compile(r"\b([0-9]{12})\.dkr[.-]ecr[.a-z0-9-]*\b")
"""Host of a registry in Amazon ECR; its first part is the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Perimeter:
    """Whose principals and resources pass; this account's always do."""

    organization: str | None = None
    """Id of an organization in AWS Organizations, whose principals and resources pass."""
    accounts: Sequence[str] = ()
    """Further accounts whose principals and resources pass."""
    buckets: tuple[str, ...] = ()
    """Names of buckets, of any account, that these principals may read and write."""
    read_buckets: tuple[str, ...] = ()
    """Names of buckets, of any account, that these principals may read."""
    readable_buckets: Sequence[str] = ()
    """Names of buckets that anybody may read."""
    reads_anywhere: bool = False
    """Every bucket may be read (`egress: nat`)."""
    words: frozenset[str] | None = None
    """Words of `endpoints.json` that hold of the cluster; None where the cluster is not known: then what any
    orchestrator needs of AWS passes."""


def perimeter_of(cluster: Cluster) -> Perimeter:
    """That of an environment, with every bucket that its file names."""
    environment = cluster.environment
    return perimeter_of_network(
        environment.network,
        buckets=tuple(named_buckets(environment)),
        read_buckets=tuple(read_only_buckets(environment)),
        words=words_of(cluster),
    )


def perimeter_of_network(
    network: Network,
    *,
    buckets: tuple[str, ...] = (),
    read_buckets: tuple[str, ...] = (),
    words: set[str] | None = None,
) -> Perimeter:
    """That of a network's settings, and of buckets that are named elsewhere."""
    asked = network.perimeter
    written = tuple(dict.fromkeys((*asked.buckets, *buckets)))
    return Perimeter(
        organization=asked.organization,
        accounts=asked.accounts,
        buckets=written,
        read_buckets=tuple(bucket for bucket in dict.fromkeys(read_buckets) if bucket not in written),
        readable_buckets=asked.readable_buckets,
        reads_anywhere=network.egress == "nat",
        words=None if words is None else frozenset(words),
    )


def named_buckets(environment: Environment) -> Iterator[str]:
    """Buckets that the file names: nodes read and write them, whoever owns them."""
    storage = environment.storage
    for existing in (storage.scripts_bucket, storage.log_bucket):
        if existing:
            yield existing.name
    for links in environment.all_data_repositories.values():
        yield from (link.bucket for link in links.values() if link.bucket)
    if environment.software.mirror and not is_token(environment.software.mirror):
        yield s3_place(environment.software.mirror)[0]
    yield from (asked.bucket for asked in _of_jobs(environment) if asked.write)
    for group in environment.node_groups.values():
        if group.restricted:
            yield from group.restricted.writes
    settings = environment.orchestrator
    if isinstance(settings, HyperPodEks) and settings.inference and settings.inference.certificate_bucket:
        yield settings.inference.certificate_bucket
    if isinstance(settings, HyperPodEks) and settings.checkpoint_tier:
        yield settings.checkpoint_tier.bucket


def read_only_buckets(environment: Environment) -> Iterator[str]:
    """Buckets that the file names and that are only read."""
    yield from (job.bucket for job in _of_jobs(environment) if not job.write)
    settings = environment.orchestrator
    if isinstance(settings, HyperPodEks) and settings.inference:
        yield from settings.inference.model_buckets
    for group in environment.node_groups.values():
        if group.restricted:
            yield from group.restricted.reads


def _of_jobs(environment: Environment) -> Iterator[JobBucket]:
    """List what jobs reach by a role of their own, and what pods mount."""
    yield from environment.storage.job_buckets
    if environment.kubernetes:
        yield from environment.kubernetes.mountpoint_s3.values()


def foreign_registries(environment: Environment) -> Iterator[tuple[YamlPath, str]]:
    """Registries in Amazon ECR that the file names and the perimeter does not let through: where, account."""
    settings = environment.kubernetes
    passing = _passing(environment)
    if settings is None or passing is None:
        return
    named: list[tuple[YamlPath, object]] = [
        (("orchestrator", "chart_repository"), settings.chart_repository),
        (("orchestrator", "mpi_operator_image"), settings.mpi_operator_image),
        *((("orchestrator", "chart_values", name), values) for name, values in settings.chart_values.items()),
    ]
    for path, value in named:
        for account in dict.fromkeys(REGISTRY.findall(str(value))):
            if account not in passing:
                yield path, account


def foreign_arns(environment: Environment) -> Iterator[tuple[YamlPath, str]]:
    """Keys, secrets and workspaces that nodes ask for, and the perimeter does not let through: where, ARN."""
    passing = _passing(environment)
    if passing is None:
        return
    for path, arn in _arns(environment):
        if not is_token(arn) and arn.split(":")[4] not in passing:
            yield path, arn


def _arns(environment: Environment) -> Iterator[tuple[YamlPath, str]]:
    storage, settings = environment.storage, environment.orchestrator
    keys: dict[str, ExistingKey | None] = {
        field: getattr(storage.keys, field) for field in KeysByPurpose.model_fields
    }
    if storage.key:
        yield ("storage", "key", "arn"), storage.key.arn
    for name, key in keys.items():
        if key:
            yield ("storage", "keys", name, "arn"), key.arn
    database = storage.accounting_database
    if database and database.kind == "existing":
        yield ("storage", "accounting_database", "secret_arn"), database.secret_arn
        if database.secret_key_arn:
            yield ("storage", "accounting_database", "secret_key_arn"), database.secret_key_arn
    if (wanted := environment.observability) and wanted.workspace:
        place = ("observability", "workspace")
        yield (*place, "arn"), wanted.workspace.arn
        if wanted.workspace.role_arn:
            yield (*place, "role_arn"), wanted.workspace.role_arn
    if isinstance(settings, HyperPodEks) and settings.observability:
        yield ("orchestrator", "observability", "workspace_arn"), settings.observability.workspace_arn
    if isinstance(settings, HyperPodEks) and settings.spaces and settings.spaces.web_ui:
        yield ("orchestrator", "spaces", "web_ui", "key_arn"), settings.spaces.web_ui.key_arn
    if isinstance(settings, ParallelCluster) and settings.directory_service:
        place = ("orchestrator", "directory_service", "password_secret_arn")
        yield place, settings.directory_service.password_secret_arn
        if settings.directory_service.password_key_arn:
            place = ("orchestrator", "directory_service", "password_key_arn")
            yield place, settings.directory_service.password_key_arn
    if environment.directory:
        yield ("directory", "password_secret_arn"), environment.directory.password_secret_arn
        if environment.directory.password_key_arn:
            yield ("directory", "password_key_arn"), environment.directory.password_key_arn


def _passing(environment: Environment) -> set[str] | None:
    """Accounts whose resources pass; None where that cannot be said: the environment's own account is not
    written, or an organization is, of which any account may be."""
    perimeter = environment.network.perimeter
    if environment.account is None or perimeter.organization:
        return None
    return {environment.account, *perimeter.accounts}
