"""FSx for Lustre (FSx for Lustre User Guide).

Built on the L1, because the L2 has no fields for EFA, metadata, Intelligent-Tiering or logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

import jsii
from aws_cdk import Aws, Fn, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.catalog.fsx import lustre
from ultracluster.config.lustre import NewLustre, lustre_of
from ultracluster.config.storage import ExistingLustre, ScratchLustre
from ultracluster.guard import report, settings_of
from ultracluster.guard.objects import take_objects
from ultracluster.model.mounts import LustreMount
from ultracluster.network.admission import ALL_TRAFFIC, LUSTRE, Admission, isolated_group
from ultracluster.network.server_connections import Server
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.storage.data_repositories import DataRepositories
from ultracluster.storage.file_system_grants import grant_describe
from ultracluster.storage.lustre_interface import ILustreFileSystem
from ultracluster.storage.lustre_settings import (
    MODELS,
    USUAL_DEPLOYMENT,
    USUAL_THROUGHPUT,
    LustreArguments,
    lustre_configuration,
)
from ultracluster.storage.root_squash import RootSquashSetting


def mounts_of(file_systems: Mapping[str, ILustreFileSystem] | None) -> dict[str, LustreMount]:
    """What nodes must know of several, by name."""
    return {name: file_system.mount for name, file_system in (file_systems or {}).items()}


class _Lustre(Server):
    """What made and imported file systems have in common."""

    file_system_id: str
    dns_name: str
    mount_name: str
    mount_path: str
    efa: bool
    gds: bool
    capacity_gib: int | None

    @property
    def mount(self) -> LustreMount:
        """All that nodes must know to mount it."""
        return LustreMount(
            dns_name=self.dns_name,
            mount_name=self.mount_name,
            path=self.mount_path,
            efa=self.efa,
            gds=self.gds,
            file_system_id=self.file_system_id,
        )

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone ask FSx for file systems; nodes that may not, silently mount without EFA."""
        return grant_describe(grantee)

    def _connect(self, group: ec2.ISecurityGroup | None) -> None:
        self._connect_through(group, ALL_TRAFFIC if self.efa else LUSTRE, mutual=True)


@jsii.implements(ec2.IConnectable)
class LustreFileSystem(_Lustre):
    """A Lustre file system with a security group of its own.

    That group never changes: changing a file system's list of groups replaces the file system and loses the
    data. Clients are admitted by rules: `connections`, or `admit` where these live elsewhere.

    Attributes:
        resource: the L1.
        config: its settings.
        file_system_id: `fs-...`.
        dns_name: host name for mounting.
        mount_name: the name behind the slash when mounting; never assume "fsx".
        mount_path: where nodes mount it.
        subnet: where its servers are.
        security_group: the file system's own group.
        security_group_id: its id.
        efa: whether clients can reach it over EFA.
        gds: whether clients read it straight into GPU memory.
        capacity_gib: its storage; None where it grows with what is in it.
        key: encrypts it; None for scratch file systems, which use a key of AWS.
        log_group: what data repositories have to say; None unless `log_level` asks for it.
        data_repositories: its associations with S3; None without any.
    """

    @classmethod
    def from_lustre_attributes(
        cls,
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        dns_name: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup | None = None,
        mount_path: str = "/fsx",
        efa: bool = False,
        gds: bool = False,
        capacity_gib: int | None = None,
    ) -> ILustreFileSystem:
        """A Lustre file system made elsewhere.

        Args:
            file_system_id: `fs-...`.
            dns_name: host name for mounting.
            mount_name: as FSx gave it.
            security_group: the file system's own group, to which rules for clients are added. Without it
                nobody is admitted: the nodes must be able to reach it already. By default none.
            mount_path: where nodes mount it; by default `/fsx`.
            efa: it was made with EFA; by default False.
            gds: clients read it straight into GPU memory (GPUDirect Storage); by default False.
            capacity_gib: its storage; by default it is not known.
        """
        return _ImportedLustre(
            scope,
            construct_id,
            mount=LustreMount(
                dns_name=dns_name,
                mount_name=mount_name,
                path=mount_path,
                efa=efa,
                gds=gds,
                file_system_id=file_system_id,
            ),
            group=security_group,
            capacity_gib=capacity_gib,
        )

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        config: NewLustre | None = None,
        key: kms.IKey | ClusterKey | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        data_bucket: s3.IBucket | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        **settings: Unpack[LustreArguments],
    ) -> None:
        """Make the file system.

        Args:
            vpc: VPC of the clients.
            subnet: the one subnet it is in: that of the clients, for EFA.
            config: its settings as an environment file has them, instead of `settings`; by default the
                keywords say them.
            key: encrypts it; by default a `ClusterKey`. Scratch file systems use a key of AWS.
            security_group: its group; by default one of its own that nothing else is in. Who else is in it is
                reached by the same clients.
            data_bucket: the bucket of those data repositories that name none; by default none.
            removal_policy: what happens to it, and to the group without which it cannot be reached, when it
                leaves the stack. By default it stays, but for a creation that is rolled back.
            settings: `capacity_gib`, and the other fields of the deployment's model; the deployment is
                `persistent-2-ssd` by default, at 125 MB/s per TiB.

        Raises:
            ValueError: settings of the wrong shape. What FSx would refuse is reported when the app is
                synthesised.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        self.subnet = subnet
        self.config = config = _made(config, settings)
        report(self, config)
        facts = lustre_of(config)
        self.efa, self.gds, self.capacity_gib = facts.efa, facts.gds, facts.capacity_gib
        self.mount_path = config.mount_path
        group = security_group or self._own_group(vpc, removal_policy)
        itself = Admission(
            self, "Itself", clients=group, servers=group, traffic=ALL_TRAFFIC if self.efa else LUSTRE
        )
        scratch = isinstance(config, ScratchLustre)
        needs_key = not scratch or config.log_level != "disabled" or config.root_squash
        self.key = ClusterKey.of(self, key) if needs_key else None
        self.log_group = self._log_group(config, removal_policy)
        self.resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=config.version,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[group.security_group_id],
            storage_capacity=facts.capacity_gib,
            storage_type=lustre(config.deployment).storage_type,
            kms_key_id=self.key.key_arn if self.key and not scratch else None,
            lustre_configuration=lustre_configuration(config, self.log_group),
        )
        self.resource.apply_removal_policy(removal_policy)
        Tags.of(self.resource).add("Name", self.node.path)
        for rule in itself.rules:  # else FSx finds port 988 closed and refuses the group
            rule.apply_removal_policy(removal_policy)
            self.resource.add_resource_dependency(rule)
        self.file_system_id = self.resource.ref
        self.dns_name = self.resource.attr_dns_name
        self.mount_name = self.resource.attr_lustre_mount_name
        self.security_group_id = group.security_group_id
        self._connect(group)
        if config.root_squash and self.key:
            RootSquashSetting(
                self, "RootSquash", file_system=self.resource, squash=config.root_squash, key=self.key
            )
        self.data_repositories = None
        if facts.data_repositories:
            self.data_repositories = DataRepositories(
                self,
                "DataRepositories",
                file_system=self,
                repositories=facts.data_repositories,
                bucket=data_bucket,
            )

    def _own_group(self, vpc: ec2.IVpc, removal_policy: RemovalPolicy) -> ec2.ISecurityGroup:
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="FSx for Lustre, own group",
            removal_policy=removal_policy,
        )
        return ec2.SecurityGroup.from_security_group_id(
            self, "Group", group.attr_group_id, allow_all_outbound=False
        )

    def _log_group(self, config: NewLustre, removal_policy: RemovalPolicy) -> logs.LogGroup | None:
        if config.log_level == "disabled" or self.key is None:
            return None
        allow_use(self, self.key, "logs")
        made_once = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        return logs.LogGroup(
            self,
            "Logs",
            # FSx accepts only names that begin so; one that was retained must not stand in the way of a new
            # one
            log_group_name=f"/aws/fsx/{Stack.of(self).stack_name}-{self.node.addr[-8:]}-{made_once}",
            encryption_key=self.key,
            retention=logs.RetentionDays.SIX_MONTHS,
            removal_policy=removal_policy,
        )


@jsii.implements(ec2.IConnectable)
class _ImportedLustre(_Lustre):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        mount: LustreMount,
        group: ec2.ISecurityGroup | None,
        capacity_gib: int | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.file_system_id = mount.file_system_id
        self.dns_name = mount.dns_name
        self.mount_name = mount.mount_name
        self.mount_path = mount.path
        self.efa = mount.efa
        self.gds = mount.gds
        self.capacity_gib = capacity_gib
        self._connect(group)
        if ".fsx." in mount.dns_name:  # not a name that someone else gave it
            settings = ExistingLustre.model_construct(
                deployment="existing", id=mount.file_system_id, dns_name=mount.dns_name,
                mount_name=mount.mount_name, mount_path=mount.path, efa=mount.efa, gds=mount.gds,
            )  # fmt: skip
            report(self, settings)


def _made(config: NewLustre | None, settings: LustreArguments) -> NewLustre:
    keywords = cast("dict[str, Any]", settings)
    if config is not None:
        return settings_of(type(config), config, keywords, construct="LustreFileSystem")
    deployment = settings.get("deployment", USUAL_DEPLOYMENT)
    model = MODELS.get(deployment)
    if model is None:
        raise ValueError(f"LustreFileSystem: deployment {deployment!r} is none of {', '.join(MODELS)}")
    usual: dict[str, Any] = {"deployment": deployment}
    if deployment in USUAL_THROUGHPUT:
        usual["throughput_mbps_per_tib"] = USUAL_THROUGHPUT[deployment]
    return settings_of(model, None, {**usual, **keywords}, construct="LustreFileSystem")
