"""Deletion protection of an EKS control plane and an RDS instance, switched on once they are there.

As a property it would hold from the first moment, and keep CloudFormation from taking back a creation that
failed (EKS User Guide, "Protect EKS clusters from accidental deletion"; RDS User Guide, "Deleting a DB
instance").
"""

from __future__ import annotations

from typing import Any, Protocol

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.sdk_calls import SdkCalls


class EksCluster(Protocol):
    """What has the name of an EKS cluster."""

    @property
    def cluster_name(self) -> str: ...


class Database(Protocol):
    """What has the name of an RDS instance."""

    @property
    def instance_identifier(self) -> str: ...


class DeletionProtection(Construct):
    """On when it is made, off when it is deleted. It belongs into a stack after that of what it protects."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        key: kms.IKey | None = None,
        cluster: EksCluster | None = None,
        database: Database | None = None,
    ) -> None:
        """Switch it on.

        Args:
            key: encrypts the log of what was switched; by default a `ClusterKey`.
            cluster: of EKS: one of the CDK, an `EksControlPlane`, or what else has its name.
            database: of RDS: one of the CDK, or an `AccountingDatabase`.

        Raises:
            ValueError: there is nothing to protect.
        """
        if not cluster and not database:
            raise ValueError(
                "DeletionProtection: give cluster=, database= or both: there is nothing to protect"
            )
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._calls = SdkCalls.of(self, key=key)
        if cluster:
            arn = stack.format_arn(service="eks", resource="cluster", resource_name=cluster.cluster_name)
            named = {"name": cluster.cluster_name}
            may = ("eks:UpdateClusterConfig", arn)
            self._switch("ControlPlane", "EKS", "updateClusterConfig", may, named, "deletionProtection")
        if database:
            arn = stack.format_arn(
                service="rds",
                resource="db",
                resource_name=database.instance_identifier,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            named = {"DBInstanceIdentifier": database.instance_identifier, "ApplyImmediately": True}
            may = ("rds:ModifyDBInstance", arn)
            self._switch("Database", "RDS", "modifyDBInstance", may, named, "DeletionProtection")

    def _switch(
        self, name: str, service: str, action: str, may: tuple[str, str], named: dict[str, Any], field: str
    ) -> None:
        def call(protected: bool, ignored: str | None = None) -> cr.AwsSdkCall:
            return cr.AwsSdkCall(
                service=service,
                action=action,
                parameters={**named, field: protected},
                physical_resource_id=cr.PhysicalResourceId.of(f"deletion-protection-{name}"),
                ignore_error_codes_matching=ignored,
            )

        self._calls.add(
            self,
            name,
            may=may,
            always=call(True),
            # what is gone needs none
            on_delete=call(False, "ResourceNotFoundException|DBInstanceNotFound.*"),
        )
