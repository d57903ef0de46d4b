"""Deletion protection of an EKS control plane and an RDS instance, switched on once they are there.

As a property it would hold from the first moment, and keep CloudFormation from taking back a creation that
failed (EKS User Guide, "Protect EKS clusters from accidental deletion"; RDS User Guide, "Deleting a DB
instance").
"""

from __future__ import annotations

from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.sdk_calls import SdkCalls


class DeletionProtection(Construct):
    """On when it is made, off when it is deleted. It belongs into a stack after that of what it protects."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        key: kms.IKey,
        eks_cluster_name: str | None = None,
        database_id: str | None = None,
    ) -> None:
        """Switch it on.

        Args:
            key: encrypts the log of what was switched.
            eks_cluster_name: of an EKS cluster.
            database_id: of an RDS instance.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._calls = SdkCalls.of(self, key=key)
        if eks_cluster_name:
            arn = stack.format_arn(service="eks", resource="cluster", resource_name=eks_cluster_name)
            named = {"name": eks_cluster_name}
            may = ("eks:UpdateClusterConfig", arn)
            self._switch("ControlPlane", "EKS", "updateClusterConfig", may, named, "deletionProtection")
        if database_id:
            arn = stack.format_arn(
                service="rds",
                resource="db",
                resource_name=database_id,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            named = {"DBInstanceIdentifier": database_id, "ApplyImmediately": True}
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
