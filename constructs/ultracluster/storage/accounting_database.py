"""Slurm's accounting in RDS for MySQL (Slurm documentation, "Accounting and Resource Limits")."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, TypedDict, Unpack, cast

import jsii
from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from ultracluster.config.storage import ExistingDatabase, RdsMySql
from ultracluster.guard import Figure, holds_token, report, settings_of
from ultracluster.guard.objects import take_objects
from ultracluster.model.mounts import SLURMDBD_USER, Accounting
from ultracluster.network.admission import MYSQL, Traffic, isolated_group
from ultracluster.network.server_connections import IServer, Server
from ultracluster.security.acknowledgements import acknowledge
from ultracluster.security.cdk_tree import below
from ultracluster.security.cluster_key import ClusterKey
from ultracluster.storage.accounting_user import AccountingUser

_PORT = 3306
_USER = "slurm"
_MASTER = "slurm"
"""Of a database that is made here. It was also slurmdbd's until that got a user of its own, and can never be
another: RDS would replace the database."""


class AccountingArguments(TypedDict, total=False):
    """Fields of the configuration's model for a new database, which says what each means."""

    instance_class: str
    engine_version: str
    storage_gib: Figure
    multi_az: bool
    backup_retention_days: int
    database_name: str
    require_tls: bool | None


class IAccountingDatabase(IServer, Protocol):
    """A MySQL-compatible database for slurmdbd, made here or elsewhere."""

    @property
    def endpoint(self) -> str:
        """Host name."""
        ...

    @property
    def port(self) -> int: ...
    @property
    def database_name(self) -> str:
        """Schema that slurmdbd creates."""
        ...

    @property
    def username(self) -> str:
        """The secret's `username`; ParallelCluster asks for it."""
        ...

    @property
    def secret(self) -> secretsmanager.ISecret:
        """Secret with `username` and `password` of slurmdbd's user."""
        ...

    @property
    def accounting(self) -> Accounting:
        """All that a controller must know to use it."""
        ...

    def grant_read_secret(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone read user and password, and decrypt them with the secret's key if it has its own."""
        ...


class _Database(Server):
    """What made and imported databases have in common."""

    endpoint: str
    port: int
    database_name: str
    username: str
    secret: secretsmanager.ISecret

    @property
    def accounting(self) -> Accounting:
        """All that a controller must know to use it."""
        key = self.secret.encryption_key
        return Accounting(
            endpoint=self.endpoint,
            secret_arn=self.secret.secret_arn,
            port=self.port,
            database_name=self.database_name,
            secret_key_arn=key.key_arn if key else None,
            username=self.username,
        )

    def grant_read_secret(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let someone read user and password, and decrypt them with the secret's key if it has its own."""
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["secretsmanager:GetSecretValue"],
            resource_arns=[self.secret.secret_arn],
        )
        if self.secret.encryption_key:
            decrypt = iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["kms:Decrypt"],
                resource_arns=[self.secret.encryption_key.key_arn],
            )
            return grant.combine(decrypt)
        return grant


@jsii.implements(ec2.IConnectable)
class AccountingDatabase(_Database):
    """A MySQL instance for slurmdbd, which has a user of its own there, with its password in Secrets Manager.

    The user is made over TLS by a function in the database's subnets that reaches nothing but the database; a
    function outside of the VPC hands it the secrets. It has all rights on its schema, and none elsewhere. No
    grant here gives anyone the master user's secret.

    Attributes:
        resource: the CDK's `DatabaseInstance`.
        config: its settings.
        endpoint: host name.
        instance_identifier: name of the instance.
        port: TCP port.
        database_name: schema that slurmdbd creates.
        username: slurmdbd's user.
        secret: holds `username` and `password` of slurmdbd's user.
        secret_arn: its ARN.
        master_secret: the master user's, for administrators only.
        user: the functions and the custom resource that make slurmdbd's user.
        security_group: the database's own group.
        security_group_id: its id.
        key: encrypts data, backups, insights and the secret.
    """

    @classmethod
    def from_accounting_attributes(
        cls,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: str,
        secret: secretsmanager.ISecret,
        port: int = _PORT,
        database_name: str = "slurm_acct_db",
        username: str = _USER,
        security_group: ec2.ISecurityGroup | None = None,
    ) -> IAccountingDatabase:
        """A MySQL-compatible database made elsewhere.

        Args:
            endpoint: host name.
            secret: holds `username` and `password`; import it with its `encryption_key` if it has its own.
            port: TCP port; by default 3306.
            database_name: schema that slurmdbd creates; by default `slurm_acct_db`.
            username: the secret's `username`; ParallelCluster asks for it; by default `slurm`.
            security_group: the database's group, to which rules for clients are added. Without it nobody is
                admitted: the controller must be able to reach it already. By default none.
        """
        return _ImportedDatabase(
            scope,
            construct_id,
            endpoint=endpoint,
            secret=secret,
            port=port,
            database_name=database_name,
            username=username,
            group=security_group,
        )

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet] | None = None,
        config: RdsMySql | None = None,
        key: kms.IKey | ClusterKey | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        **settings: Unpack[AccountingArguments],
    ) -> None:
        """Make the database.

        Args:
            vpc: VPC of the controller.
            subnets: two or more in two zones or more; by default the private ones of the VPC.
            config: its settings as an environment file has them, instead of `settings`; subnets and zones
                that it names are not read; by default the keywords say them.
            key: encrypts data, backups, insights and the secret; by default a `ClusterKey`.
            security_group: its group; by default one of its own.
            removal_policy: what happens to it when it leaves the stack. By default it stays, with its secret
                and its groups, but for a creation that is rolled back; `SNAPSHOT` takes a last snapshot.
                `DeletionProtection` protects it, once it is there.
            settings: fields of the configuration's model, e.g. `instance_class`, `storage_gib`. `require_tls`
                is off unless it is asked for: slurmdbd has to speak TLS then.

        Raises:
            ValueError: settings of the wrong shape, or the VPC has no private subnets in two zones.
        """
        super().__init__(scope, construct_id)
        take_objects(self, locals())
        keywords = cast("dict[str, Any]", settings)
        self.config = config = settings_of(
            RdsMySql,
            config,
            keywords if config else {"kind": "rds-mysql", **keywords},
            construct="AccountingDatabase",
        )
        report(self, config)
        self.key = key = ClusterKey.of(self, key)
        leaves = removal_policy in (RemovalPolicy.DESTROY, RemovalPolicy.SNAPSHOT)
        stays = RemovalPolicy.DESTROY if leaves else removal_policy
        group = security_group or self._own_group(vpc, stays)
        within = list(_private(vpc) if subnets is None else subnets)
        require_tls = config.require_tls is True
        self.resource = instance = self._instance(vpc, within, group, removal_policy)
        assert instance.secret is not None
        self.endpoint = instance.db_instance_endpoint_address
        self.port = _PORT
        self.username = SLURMDBD_USER
        self.master_secret = instance.secret
        self.secret = self._user_secret()
        self.secret_arn = self.secret.secret_arn
        self.instance_identifier = instance.instance_identifier
        self.security_group_id = group.security_group_id
        self.database_name = config.database_name
        self._connect_through(group, MYSQL)
        if not leaves:  # its groups cannot go while it is there, and without its secret it is of no use
            for child in self.node.find_all():
                if isinstance(child, CfnResource):
                    child.apply_removal_policy(stays)
        self.user = self._own_user(vpc, within, instance, require_tls)
        acknowledge(self, ACCEPTED | {"AwsSolutions-RDS10": UNPROTECTED if leaves else LATER})
        if not config.multi_az:
            acknowledge(self, {"AwsSolutions-RDS3": "multi_az is off: a stop of accounting holds no job up."})

    def _instance(
        self,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        group: ec2.ISecurityGroup,
        removal_policy: RemovalPolicy,
    ) -> rds.DatabaseInstance:
        config = self.config
        subnet_group = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description="Slurm accounting",
            subnet_ids=[subnet.subnet_id for subnet in subnets],
        )
        version = config.engine_version
        engine = rds.DatabaseInstanceEngine.mysql(
            version=rds.MysqlEngineVersion.of(version, version.rpartition(".")[0])
        )
        return rds.DatabaseInstance(
            self,
            "Resource",
            engine=engine,
            instance_type=ec2.InstanceType(config.instance_class),
            vpc=vpc,
            subnet_group=rds.SubnetGroup.from_subnet_group_name(self, "SubnetGroup", subnet_group.ref),
            security_groups=[group],
            multi_az=config.multi_az,
            allocated_storage=config.storage_gib,
            max_allocated_storage=None if holds_token(config.storage_gib) else config.storage_gib * 4,
            storage_type=rds.StorageType.GP3,
            storage_encrypted=True,
            storage_encryption_key=self.key,
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
            credentials=rds.Credentials.from_generated_secret(_MASTER, encryption_key=self.key),
            backup_retention=Duration.days(config.backup_retention_days),
            copy_tags_to_snapshot=True,
            removal_policy=removal_policy,
            cloudwatch_logs_exports=["error", "slowquery"],  # observability.log_groups settles their groups
            parameter_group=rds.ParameterGroup(
                self,
                "Parameters",
                engine=engine,
                description="slurmdbd",
                parameters={
                    # lock wait and packet size that roll-ups and archives need
                    "innodb_lock_wait_timeout": "900",
                    "max_allowed_packet": "16777216",
                    # TLS is always offered; `Traits.slurmdbd_tls` says whose slurmdbd is known to use it
                    "require_secure_transport": "ON" if config.require_tls is True else "OFF",
                },
            ),
        )

    def _user_secret(self) -> secretsmanager.ISecret:
        secret = secretsmanager.Secret(
            self,
            "UserSecret",
            description="User and password of slurmdbd in the Slurm accounting database",
            encryption_key=self.key,
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template=json.dumps({"username": SLURMDBD_USER}),
                generate_string_key="password",
                # in slurmdbd.conf a `#` begins a comment, and ParallelCluster's script does not quote it
                exclude_punctuation=True,
                password_length=40,
            ),
        )
        # the CDK's class and interface differ in names of arguments
        return cast("secretsmanager.ISecret", secret)

    def _own_user(
        self, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet], instance: rds.DatabaseInstance, require_tls: bool
    ) -> AccountingUser:
        user = AccountingUser(
            self,
            "User",
            vpc=vpc,
            subnets=subnets,
            host=self.endpoint,
            port=self.port,
            schema=self.database_name,
            require_tls=require_tls,
            # the secret itself: whoever waits for its attachment to the database waits for the database
            master=cast("secretsmanager.ISecret", below(instance, secretsmanager.Secret, "Secret")),
            user=self.secret,
            key=self.key,
        )
        admitted = self.admit(self, "AdmitUser", clients=user.security_group)
        user.wait_for(instance, self.master_secret, self.secret, *admitted)
        return user

    def _own_group(self, vpc: ec2.IVpc, stays: RemovalPolicy) -> ec2.ISecurityGroup:
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="Slurm accounting database",
            removal_policy=stays,
        )
        return ec2.SecurityGroup.from_security_group_id(self, "Group", group.attr_group_id, mutable=False)


@jsii.implements(ec2.IConnectable)
class _ImportedDatabase(_Database):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: str,
        secret: secretsmanager.ISecret,
        port: int,
        database_name: str,
        username: str,
        group: ec2.ISecurityGroup | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.endpoint = endpoint
        self.secret = secret
        self.port = port
        self.database_name = database_name
        self.username = username
        self._connect_through(group, (Traffic("MySql", "tcp", port, port),))
        if group:  # which says where the database has to be
            report(
                self,
                ExistingDatabase.model_construct(
                    kind="existing", endpoint=endpoint, security_group_id=group.security_group_id
                ),
            )


def _private(vpc: ec2.IVpc) -> Sequence[ec2.ISubnet]:
    """Private subnets of the VPC, in two zones at least."""
    subnets = [*vpc.private_subnets, *vpc.isolated_subnets]
    if len(subnets) < 2:
        raise ValueError(
            "AccountingDatabase: RDS requires subnets in two zones, and the VPC has "
            f"{len(subnets) or 'no'} private one{'' if len(subnets) == 1 else 's'}. Instead: "
            "subnets=[...] with two private subnets in two zones"
        )
    return subnets


LATER = "Deletion protection is switched on in a later stack: from the start it would block a rollback."
UNPROTECTED = "The environment is not protected: it is meant to be deleted; a final snapshot is taken."
ACCEPTED = {
    "AwsSolutions-SMG4": "slurmdbd is given its password when the controller is configured: a rotation "
    "behind its back would cut accounting off. The master's no node can read. docs/security.md says how to "
    "rotate both.",
    "AwsSolutions-RDS11": "All nodes may connect, and slurmdbd.conf tells them the port; who may log in is "
    "decided by passwords, of which the controller reads slurmdbd's and no node the master's.",
}
