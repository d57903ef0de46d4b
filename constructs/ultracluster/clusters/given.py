"""What a cluster's construct is given, completed and judged: the same for all orchestrators."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
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
from ultracluster.config.environment import Access, Environment
from ultracluster.config.findings import YamlPath
from ultracluster.config.nodes import DeclaredInstanceType, NodeGroup
from ultracluster.config.observability import ExistingWorkspace, Observability
from ultracluster.config.orchestrator import OrchestratorSettings, Pcs
from ultracluster.config.shape_findings import refusal_of
from ultracluster.config.storage import FIRST_LUSTRE
from ultracluster.guard import report_findings, same_region, same_zone, settings_of, unique_name, warn
from ultracluster.guard.objects import plain_bucket, plain_groups, take_objects
from ultracluster.guard.tokens import holds_token, speaks_of_token
from ultracluster.model import Cluster
from ultracluster.model.cluster_json import ScriptConfigurations, script_configurations
from ultracluster.model.mounts import Mounts, told
from ultracluster.model.standalone import StandaloneStorage, standalone
from ultracluster.network.admission import Admission
from ultracluster.network.efa_security_group import EfaSecurityGroup, IEfaSecurityGroup
from ultracluster.observability.workspace import MetricsDestination
from ultracluster.rules import check
from ultracluster.security.cluster_key import ClusterKey
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
    """Arguments that constructors of clusters share, beside the orchestrator's settings."""

    node_groups: Mapping[str, NodeGroup] | None = None
    cluster_name: str | None = None
    subnet: ec2.ISubnet | None = None
    further_subnets: Mapping[str, ec2.ISubnet] | None = None
    lustre: ILustreFileSystem | None = None
    further_lustre: Mapping[str, ILustreFileSystem] | None = None
    open_zfs: IOpenZfsFileSystem | None = None
    accounting: IAccountingDatabase | None = None
    release: str | None = None
    mirror: str | None = None
    instance_types: Mapping[str, DeclaredInstanceType] | None = None
    node_tags: Mapping[str, str] | None = None
    access: Access | None = None
    metrics: MetricsDestination | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Parts:
        """Those of a constructor's arguments that are parts, by their names."""
        return cls(**{part.name: arguments[part.name] for part in fields(cls) if part.name in arguments})

    @property
    def lustres(self) -> dict[str, ILustreFileSystem]:
        """All of Lustre by name."""
        return {**({FIRST_LUSTRE: self.lustre} if self.lustre else {}), **(self.further_lustre or {})}


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
        except (AssertionError, KeyError, ValueError):
            blocking = [finding.sentence for finding in self.findings if finding.blocks]
            if errors := [f"[{self.path}] {words}" for words in blocking if not speaks_of_token(words)]:
                raise ValueError("\n".join(errors)) from None
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
        held = ("node_groups", "cluster_name", "release", "mirror", "instance_types", "access")
        if any(getattr(parts, name) is not None for name in held):
            raise ValueError(
                f"{construct}: resolved= holds node groups, names, release, mirror, types and access; "
                "leave them out"
            )
        return Given(cluster=resolved, from_file=True)
    cluster = _cluster_of(scope, settings, parts, longest_name=longest_name)
    findings = [
        finding
        for finding in check(cluster)
        if any(finding.path[: len(place)] == place for place in judged or _GIVEN)
    ]
    report_findings(scope, findings)
    return Given(cluster=cluster, from_file=False, findings=findings, path=scope.node.path)


def _cluster_of(
    scope: Construct, settings: OrchestratorSettings, parts: Parts, *, longest_name: int
) -> Cluster:
    """The cluster of parts, none of which is judged yet.

    Raises:
        ValueError: node groups are missing, the name is given twice, or something has the wrong shape.
    """
    construct = type(scope).__name__
    if not isinstance(parts.node_groups, Mapping):
        fault = "is missing" if parts.node_groups is None else "has the wrong form"
        raise ValueError(f"{construct}: node_groups= {fault}: give a mapping of names to NodeGroup")
    if parts.cluster_name and settings.cluster_name:
        raise ValueError(
            f"{construct}: cluster_name is given beside config=, which has one; give one of them"
        )
    if parts.cluster_name and not holds_token(parts.cluster_name):
        _check_name(settings, parts.cluster_name, construct)
    try:
        return standalone(
            settings,
            parts.node_groups,
            cluster_name=parts.cluster_name
            or settings.cluster_name
            or unique_name(scope, max_length=longest_name),
            region=Stack.of(scope).region,
            storage=StandaloneStorage(
                lustre=parts.lustre.mount if parts.lustre else None,
                further_lustre=mounts_of(parts.further_lustre),
                open_zfs=parts.open_zfs.mount if parts.open_zfs else None,
                accounting=parts.accounting.accounting if parts.accounting else None,
            ),
            release=parts.release,
            mirror=parts.mirror,
            instance_types=parts.instance_types,
            tags=parts.node_tags,
            access=parts.access,
            observability=_observability(parts.metrics),
            further_zones=tuple(parts.further_subnets or ()),
        )
    except ValidationError as error:
        data = {"node_groups": dict(parts.node_groups)}
        raise ValueError(refusal_of(Environment, data, error, name=construct)) from None


def _observability(metrics: MetricsDestination | None) -> Observability | None:
    if metrics is None:
        return None
    return Observability(workspace=ExistingWorkspace(arn=metrics.workspace_arn, role_arn=metrics.role_arn))


def _check_name(settings: OrchestratorSettings, name: str, construct: str) -> None:
    """Refuse a name that the service does not take, as a file's is."""
    settings_data = {"kind": settings.kind, "cluster_name": name}
    settings_of(type(settings), None, settings_data, construct=construct)


def settings_for(
    scope: Construct,
    model: type[S],
    config: S | None,
    keywords: Mapping[str, Any],
    resolved: Cluster | None,
) -> S:
    """The orchestrator's settings, from an environment, a model or keywords.

    Raises:
        ValueError: from two of them, or of the wrong shape.
    """
    construct = type(scope).__name__
    if resolved is None:
        if config is None:  # the kind tells which keys there are
            keywords = {"kind": model.model_fields["kind"].default, **keywords}
        return settings_of(model, config, keywords, construct=construct)
    if config is not None or keywords:
        raise ValueError(f"{construct}: resolved= holds the settings; leave them out")
    if not isinstance(resolved.settings, model):
        raise ValueError(f"{construct}: resolved= is of orchestrator {resolved.traits.kind}")
    return resolved.settings


class MadeCluster(ClusterConstruct):
    """A cluster that an app makes: what those of all orchestrators do with the arguments that they share.

    Attributes:
        cluster: what it comes to, as rules and plans take it.
        security_groups: of its nodes.
        key: encrypts what belongs to it.
    """

    cluster: Cluster
    security_groups: list[ec2.ISecurityGroup]
    key: kms.IKey
    _parts: Parts

    def _take(
        self, model: type[OrchestratorSettings], arguments: Mapping[str, Any], *, longest_name: int = 63
    ) -> Given:
        """Complete and judge the arguments, and make the security group and the key that are not given.

        Args:
            model: of the orchestrator's settings.
            arguments: all of the constructor, by name: `locals()`.
            longest_name: of a cluster, if it gets one from the construct's path.

        Raises:
            ValueError: what is given contradicts itself, or has the wrong shape.
        """
        take_objects(self, arguments)
        self._parts = parts = Parts.of(arguments)
        plane, resolved = arguments.get("control_plane"), arguments["resolved"]
        settings = settings_for(self, model, arguments["config"], arguments["settings"], resolved)
        inputs = given_cluster(
            self,
            resolved=resolved,
            settings=settings,
            parts=parts,
            longest_name=longest_name,
            judged=None if plane is None else [("node_groups", name) for name in parts.node_groups or {}],
        )
        self.cluster, self.cluster_name = inputs.cluster, inputs.cluster.cluster_name
        groups = arguments["security_groups"]
        if plane is not None and not groups:
            groups = list(plane.security_groups) or None
        ipv6 = isinstance(settings, Pcs) and settings.network_type == "ipv6"
        self.security_groups = nodes_groups(self, groups, arguments["vpc"], arguments["subnet"], ipv6=ipv6)
        self._connections = ec2.Connections(security_groups=self.security_groups)
        self.key = ClusterKey.of(self, arguments["key"] or (plane.key if plane else None))
        return inputs

    def _mounts(self) -> Mounts:
        """The key `mounts` of `cluster.json`."""
        parts = self._parts
        return told(
            parts.lustre.mount if parts.lustre else None,
            parts.open_zfs.mount if parts.open_zfs else None,
            mounts_of(parts.further_lustre),
        )

    def _admitted(self) -> list[Admission]:
        """The rules that let nodes reach what the cluster is given, where its security groups are known.

        A warning names a file system with EFA in another zone than the nodes.
        """
        parts = self._parts
        for file_system in parts.lustres.values():
            if parts.subnet and isinstance(file_system, LustreFileSystem) and file_system.efa:
                same_zone(self, parts.subnet, lustre=file_system.subnet)
        rules: list[Admission] = []
        for construct_id, server in (
            ("LustreClients", parts.lustre),
            *(
                (f"{name.capitalize()}LustreClients", lustre)
                for name, lustre in (parts.further_lustre or {}).items()
            ),
            ("OpenZfsClients", parts.open_zfs),
            ("AccountingClients", parts.accounting),
        ):
            if server:
                rules += server.admit(self, construct_id, clients=self)
        return rules


def nodes_groups(
    scope: Construct,
    security_groups: Sequence[ec2.ISecurityGroup | IEfaSecurityGroup] | None,
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
    groups = plain_groups(security_groups)
    same_region(scope, vpc=vpc, subnet=subnet, security_groups=next(iter(groups), None))
    if groups:
        for group in groups:
            _ask_for_self_rules(scope, group)
        return list({group.security_group_id: group for group in groups}.values())
    if vpc is None or security_groups is not None:
        raise ValueError(
            f"{type(scope).__name__}: give vpc=, in which a security group for EFA is made, or "
            "security_groups= with one group or more that let everything in from, and out to, themselves"
        )
    return [EfaSecurityGroup(scope, "SecurityGroup", vpc=vpc, ipv6=ipv6).security_group]


def control_plane_subnets_of(
    scope: Construct, chosen: Sequence[ec2.ISubnet] | None, vpc: ec2.IVpc
) -> Sequence[ec2.ISubnet]:
    """Subnets of a Kubernetes control plane: those that were given, else the private ones of the VPC.

    Raises:
        ValueError: none are known.
    """
    if subnets := chosen or vpc.private_subnets:
        return subnets
    raise ValueError(
        f"{type(scope).__name__}: the VPC has no private subnets that are known here. Instead: give "
        "subnets in two zones, or import the VPC with private_subnet_ids="
    )


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
        "Instead: EfaSecurityGroup(...)",
    )


def scripts_bucket_of(
    scope: Construct, bucket: s3.IBucket | DataBucket | None, key: kms.IKey, cluster_name: str
) -> s3.IBucket:
    """Where lifecycle scripts go: the bucket that was given, else one that is made."""
    if bucket:
        return plain_bucket(bucket)
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
