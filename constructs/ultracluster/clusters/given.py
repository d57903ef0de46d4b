"""What a cluster's construct is given, completed and judged: the same for all orchestrators."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct
from pydantic import ValidationError

from ultracluster.clusters.cluster import ClusterConstruct
from ultracluster.config import Finding
from ultracluster.config.environment import Access
from ultracluster.config.findings import YamlPath
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.config.observability import ExistingWorkspace, Observability
from ultracluster.config.orchestrator import OrchestratorSettings
from ultracluster.guard import report_findings, same_region, same_zone, settings_of, unique_name, warn
from ultracluster.guard.judging import text
from ultracluster.guard.tokens import holds_token, speaks_of_token
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import ScriptConfigurations, script_configurations
from ultracluster.model.standalone import standalone
from ultracluster.network.admission import Admission
from ultracluster.network.efa_security_group import EfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.rules import check
from ultracluster.slurm.configuration import slurm_configuration
from ultracluster.storage.accounting_database import IAccountingDatabase
from ultracluster.storage.buckets import DataBucket, LogBucket
from ultracluster.storage.lustre_file_system import LustreFileSystem, mounts_of
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.open_zfs_file_system import IOpenZfsFileSystem

S = TypeVar("S", bound=OrchestratorSettings)

_GIVEN: Sequence[YamlPath] = (
    ("region",),
    ("orchestrator",),
    ("node_groups",),
    ("storage",),
    ("software",),
    ("instance_types",),
    ("access",),
    ("observability",),
)
"""Parts of an environment that a construct is told; of the others nothing is known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a caller said of a cluster, beside its orchestrator's settings."""

    node_groups: Mapping[str, NodeGroup] | None = None
    cluster_name: str | None = None
    lustre: ILustreFileSystem | None = None
    further_lustre: Mapping[str, ILustreFileSystem] | None = None
    open_zfs: IOpenZfsFileSystem | None = None
    accounting: IAccountingDatabase | None = None
    release: str | None = None
    mirror: str | None = None
    instance_types: Mapping[str, DeclaredInstanceType] | None = None
    tags: Mapping[str, str] | None = None
    access: Access | None = None
    metrics: MetricsDestination | None = None
    further_zones: Sequence[str] = ()
    """Zones of which a subnet is given, besides that of the nodes."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """The cluster that a construct makes."""

    cluster: Cluster
    from_file: bool
    """It is what an environment comes to, whose rules ran already."""
    findings: Sequence[Finding] = ()
    """Of the rules about what was given; none where a whole environment was judged."""
    path: str = ""
    """Of the construct that was given it."""

    @cached_property
    def configurations(self) -> ScriptConfigurations:
        """What its nodes read as `cluster.json`."""
        # a lock lies beside a file; without a file there is none
        slurm = slurm_configuration(self.cluster).for_controller if self.cluster.traits.slurm else None
        return script_configurations(self.cluster, locked=None if self.from_file else {}, slurm=slurm)

    @contextmanager
    def in_words_of_rules(self) -> Generator[None]:
        """Say what cannot be built in the words of the rules that are broken, where there are some.

        Raises:
            ValueError: instead of what was raised in it.
        """
        try:
            yield
        except (AssertionError, KeyError, ValueError) as error:
            told = [text(one) for one in self.findings if one.blocks]
            if errors := [f"[{self.path}] {words}" for words in told if not speaks_of_token(words)]:
                raise ValueError("\n".join(errors)) from error
            raise


def given_cluster(
    scope: Construct,
    *,
    resolved: Cluster | None,
    settings: OrchestratorSettings,
    parts: Parts,
    longest_name: int = 63,
    judged: Sequence[YamlPath] | None = None,
) -> Given:
    """The cluster that an environment comes to, or that follows from what a construct was given.

    In the latter case the rules run: an error makes the synth fail, a warning is one of the CDK's.

    Args:
        scope: the construct.
        resolved: what the environment comes to, whose rules ran already.
        settings: of the orchestrator; those of `resolved` where it is given.
        parts: everything else that was said.
        longest_name: of a cluster, if it gets one from the construct's path.
        judged: where findings are about what the caller said; by default wherever he can have said something.

    Raises:
        ValueError: neither, or both; or something has the wrong shape.
    """
    construct = type(scope).__name__
    if resolved:
        told = (
            *(parts.node_groups, parts.cluster_name, parts.release, parts.mirror, parts.instance_types),
            parts.access,
        )
        if any(one is not None for one in told):
            raise ValueError(
                f"{construct}: resolved= holds node groups, names, release, mirror, types and access; "
                "leave them out"
            )
        return Given(cluster=resolved, from_file=True)
    if parts.node_groups is None:
        raise ValueError(f"{construct}: node_groups= is missing: a mapping of names to NodeGroup")
    if parts.cluster_name and settings.cluster_name:
        raise ValueError(
            f"{construct}: cluster_name is given beside config=, which has one; give one of them"
        )
    if parts.cluster_name and not holds_token(parts.cluster_name):
        _check_name(settings, parts.cluster_name, construct)
    try:
        cluster = standalone(
            settings,
            parts.node_groups,
            cluster_name=parts.cluster_name
            or settings.cluster_name
            or unique_name(scope, max_length=longest_name),
            region=Stack.of(scope).region,
            lustre=parts.lustre.mount if parts.lustre else None,
            further_lustre=mounts_of(parts.further_lustre),
            open_zfs=parts.open_zfs.mount if parts.open_zfs else None,
            accounting=parts.accounting.accounting if parts.accounting else None,
            release=parts.release,
            mirror=parts.mirror,
            instance_types=parts.instance_types,
            tags=parts.tags,
            access=parts.access,
            observability=_observability(parts.metrics),
            further_zones=parts.further_zones,
        )
    except ValidationError as error:
        raise ValueError(f"{construct}: {_shape(error)}") from None
    findings = [
        one for one in check(cluster) if any(one.path[: len(place)] == place for place in judged or _GIVEN)
    ]
    report_findings(scope, findings)
    return Given(cluster=cluster, from_file=False, findings=findings, path=scope.node.path)


def _observability(metrics: MetricsDestination | None) -> Observability | None:
    if metrics is None:
        return None
    return Observability(workspace=ExistingWorkspace(arn=metrics.workspace_arn, role_arn=metrics.role_arn))


def _check_name(settings: OrchestratorSettings, name: str, construct: str) -> None:
    """Refuse a name that the service does not take, as a file's is."""
    given = {"kind": settings.kind, "cluster_name": name}
    settings_of(type(settings), None, given, construct=construct, place=("orchestrator",))


def _shape(error: ValidationError) -> str:
    faults: list[str] = []
    for one in error.errors(include_url=False):
        place = ".".join(str(part) for part in one["loc"] if part != "[key]")
        faults.append(f"{place}: {one['msg']}")
    return "; ".join(faults)


def settings_for(
    scope: Construct,
    model: type[S],
    config: S | None,
    given: Mapping[str, Any],
    resolved: Cluster | None,
) -> S:
    """The orchestrator's settings, from an environment, a model or keywords.

    Raises:
        ValueError: from two of them, or of the wrong shape.
    """
    construct = type(scope).__name__
    if resolved is None:
        if config is None:  # the kind tells which keys there are
            given = {"kind": model.model_fields["kind"].default, **given}
        return settings_of(model, config, given, construct=construct, place=("orchestrator",))
    if config is not None or given:
        raise ValueError(f"{construct}: resolved= holds the settings; leave them out")
    if not isinstance(resolved.settings, model):
        raise ValueError(f"{construct}: resolved= is of orchestrator {resolved.traits.kind}")
    return resolved.settings


def admitted(
    clients: ClusterConstruct,
    *,
    subnet: ec2.ISubnet,
    lustre: ILustreFileSystem | None = None,
    further_lustre: Mapping[str, ILustreFileSystem] | None = None,
    open_zfs: IOpenZfsFileSystem | None = None,
    accounting: IAccountingDatabase | None = None,
) -> list[Admission]:
    """The rules that let nodes reach what the cluster is given, where its security groups are known.

    Of a file system with EFA in another zone than the nodes a warning tells.
    """
    further = further_lustre or {}
    for one in (lustre, *further.values()):
        if isinstance(one, LustreFileSystem) and one.efa:
            same_zone(clients, subnet, lustre=one.subnet)
    rules: list[Admission] = []
    for construct_id, server in (
        ("LustreClients", lustre),
        *((f"{name.capitalize()}LustreClients", one) for name, one in further.items()),
        ("OpenZfsClients", open_zfs),
        ("AccountingClients", accounting),
    ):
        if server:
            rules += server.admit(clients, construct_id, clients=clients)
    return rules


def nodes_groups(
    scope: Construct,
    given: Sequence[ec2.ISecurityGroup] | None,
    vpc: ec2.IVpc | None,
    subnet: ec2.ISubnet | None = None,
    *,
    ipv6: bool = False,
) -> list[ec2.ISecurityGroup]:
    """The security groups of nodes: those that were given, else one that is made for EFA, of dual-stack nodes
    with `ipv6`.

    What is of another Region than the stack is refused by the CDK's validation.

    Raises:
        ValueError: there is none, and no VPC to make one in.
    """
    if isinstance(given, EfaSecurityGroup) or any(isinstance(one, EfaSecurityGroup) for one in given or ()):
        raise ValueError(
            f"{type(scope).__name__}: security_groups= takes a list of the CDK's groups, and an "
            "EfaSecurityGroup holds one: security_groups=[nodes.security_group]"
        )
    same_region(scope, vpc=vpc, subnet=subnet, security_groups=next(iter(given or ()), None))
    if given:
        for group in given:
            _ask_for_self_rules(scope, group)
        return list({group.security_group_id: group for group in given}.values())
    if vpc is None or given is not None:
        raise ValueError(
            f"{type(scope).__name__}: give vpc=, in which a security group for EFA is made, or "
            "security_groups= with one group or more that let everything in from, and out to, themselves"
        )
    return [EfaSecurityGroup(scope, "SecurityGroup", vpc=vpc, ipv6=ipv6).security_group]


def _ask_for_self_rules(scope: Construct, group: ec2.ISecurityGroup) -> None:
    """A warning about a group of the CDK's own that is made in this app: without self rules EFA does not come
    up, and jobs fall back to TCP. Of an imported one nothing is known."""
    if group.node.default_child is None:
        return
    drops = ", and drops the egress rule, since it allows all outbound" if group.allow_all_outbound else ""
    warn(
        scope,
        "efa-self-rules",
        f"security group {group.node.path}: EFA requires that it lets all traffic in from, and out to, "
        f"itself. The CDK's SecurityGroup does not do so by itself{drops}. "
        "Instead: EfaSecurityGroup(...).security_group",
    )


def scripts_bucket_of(
    scope: Construct, given: s3.IBucket | None, key: kms.IKey, cluster_name: str
) -> s3.IBucket:
    """Where lifecycle scripts go: the bucket that was given, else one that is made."""
    if given:
        return given
    logs = LogBucket(scope, "LogBucket").bucket
    return DataBucket(
        scope,
        "ScriptsBucket",
        key=key,
        log_bucket=logs,
        log_prefix="scripts/",
        scripts_of=cluster_name,
    ).bucket


def waits_of_nodes(
    subnet: ec2.ISubnet, security_groups: Sequence[ec2.ISecurityGroup], *more: Any
) -> list[Any]:
    """What must be there before the first node: rules of its groups, routes out of its subnet, and more."""
    return [*security_groups, subnet.internet_connectivity_established, *more]


def use_bucket_key(bucket: s3.IBucket, key: kms.IKey, scope: Any) -> None:
    """Let nodes decrypt what is in a bucket with a key of its own."""
    own = bucket.encryption_key
    if own and own.key_arn != key.key_arn:
        own.grant_decrypt(scope)


__all__ = [
    "Given",
    "Parts",
    "admitted",
    "given_cluster",
    "nodes_groups",
    "scripts_bucket_of",
    "settings_for",
    "use_bucket_key",
    "waits_of_nodes",
]
