"""Slurm's accounting in RDS for MySQL (Slurm documentation, "Accounting and Resource Limits")."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from constructs import Construct

from ultracluster.config.storage import RdsMySql
from ultracluster.network.admission import MYSQL, Admission, isolated_group
from ultracluster.security.acknowledgements import acknowledge


class AccountingDatabase(Construct):
    """A MySQL instance for slurmdbd, with user and password in Secrets Manager.

    Attributes:
        endpoint: host name.
        instance_id: name of the instance.
        port: TCP port.
        secret_arn: secret with `username` and `password`.
        security_group_id: the database's own group.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet_ids: Sequence[str],
        config: RdsMySql,
        key: kms.IKey,
        retain: bool,
    ) -> None:
        """Make the database.

        Args:
            vpc: VPC of the controller.
            subnet_ids: two subnets in two zones.
            config: what was asked for.
            key: encrypts data, backups, insights and the secret.
            retain: it stays, with its secret and its groups, when it leaves the stack, but for a creation
                that is rolled back; otherwise a final snapshot is taken. `DeletionProtection` protects it,
                once it is there.
        """
        super().__init__(scope, construct_id)
        stays = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else RemovalPolicy.DESTROY
        group = isolated_group(
            self,
            "SecurityGroup",
            vpc_id=vpc.vpc_id,
            description="Slurm accounting database",
            removal_policy=stays,
        )
        subnets = rds.CfnDBSubnetGroup(
            self, "Subnets", db_subnet_group_description="Slurm accounting", subnet_ids=list(subnet_ids)
        )
        engine = rds.DatabaseInstanceEngine.mysql(version=rds.MysqlEngineVersion.VER_8_4_10)
        instance = rds.DatabaseInstance(
            self,
            "Resource",
            engine=engine,
            instance_type=ec2.InstanceType(config.instance_class),
            vpc=vpc,
            subnet_group=rds.SubnetGroup.from_subnet_group_name(self, "SubnetGroup", subnets.ref),
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(self, "Group", group.attr_group_id, mutable=False)
            ],
            multi_az=config.multi_az,
            allocated_storage=config.storage_gib,
            max_allocated_storage=config.storage_gib * 4,
            storage_type=rds.StorageType.GP3,
            storage_encrypted=True,
            storage_encryption_key=key,
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
            credentials=rds.Credentials.from_generated_secret("slurm", encryption_key=key),
            backup_retention=Duration.days(config.backup_retention_days),
            copy_tags_to_snapshot=True,
            removal_policy=stays if retain else RemovalPolicy.SNAPSHOT,
            cloudwatch_logs_exports=["error", "slowquery"],
            parameter_group=rds.ParameterGroup(
                self,
                "Parameters",
                engine=engine,
                description="slurmdbd",
                parameters={
                    # lock wait and packet size that roll-ups and archives need
                    "innodb_lock_wait_timeout": "900",
                    "max_allowed_packet": "16777216",
                    # slurmdbd on managed images offers no TLS setting to us; traffic stays in the VPC
                    "require_secure_transport": "OFF",
                },
            ),
        )
        assert instance.secret is not None
        self.endpoint = instance.db_instance_endpoint_address
        self.port = 3306
        self.secret_arn = instance.secret.secret_arn
        self.instance_id = instance.instance_identifier
        self.security_group_id = group.attr_group_id
        self.database_name = config.database_name
        if retain:  # its groups cannot go while it is there, and without its secret it is of no use
            for child in self.node.find_all():
                if isinstance(child, CfnResource):
                    child.apply_removal_policy(stays)
        acknowledge(self, ACCEPTED | {"AwsSolutions-RDS10": LATER if retain else UNPROTECTED})
        if not config.multi_az:
            acknowledge(self, {"AwsSolutions-RDS3": "multi_az is off: a stop of accounting holds no job up."})

    def admit(self, scope: Construct, construct_id: str, *, clients: str) -> Admission:
        """Let the members of a security group connect."""
        return Admission(scope, construct_id, clients=clients, servers=self.security_group_id, traffic=MYSQL)


LATER = "Deletion protection is switched on in a later stack: from the start it would block a rollback."
UNPROTECTED = "The environment is not protected: it is meant to be deleted; a final snapshot is taken."
ACCEPTED = {
    "AwsSolutions-SMG4": "slurmdbd is given the password when the controller is configured; a rotation "
    "behind its back would cut accounting off.",
    "AwsSolutions-RDS11": "A port other than 3306 hides nothing from the one group that may connect.",
}
