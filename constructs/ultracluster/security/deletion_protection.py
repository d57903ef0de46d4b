"""Deletion protection of an EKS control plane and an RDS instance, switched on once they are there.

As a property it would hold from the first moment, and keep CloudFormation from taking back a creation that
failed (EKS User Guide, "Protect EKS clusters from accidental deletion"; RDS User Guide, "Deleting a DB
instance").
"""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.acknowledgements import acknowledge_sdk_calls


class DeletionProtection(Construct):
    """On when it is made, off when it is deleted. It belongs into a stack after that of what it protects."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str | None = None,
        database_id: str | None = None,
    ) -> None:
        """Switch it on.

        Args:
            eks_cluster_name: of an EKS cluster.
            database_id: of an RDS instance.
        """
        super().__init__(scope, construct_id)
        if eks_cluster_name:
            self._switch(
                "ControlPlane",
                "EKS",
                "updateClusterConfig",
                {"name": eks_cluster_name},
                on={"deletionProtection": True},
                off={"deletionProtection": False},
                gone="ResourceNotFoundException",
                allowed=("eks:UpdateClusterConfig", self._arn("eks", "cluster", eks_cluster_name, "/")),
            )
        if database_id:
            self._switch(
                "Database",
                "RDS",
                "modifyDBInstance",
                {"DBInstanceIdentifier": database_id},
                on={"DeletionProtection": True, "ApplyImmediately": True},
                off={"DeletionProtection": False, "ApplyImmediately": True},
                gone="DBInstanceNotFound.*",
                allowed=("rds:ModifyDBInstance", self._arn("rds", "db", database_id, ":")),
            )
        acknowledge_sdk_calls(self)

    def _switch(
        self,
        name: str,
        service: str,
        action: str,
        what: dict[str, Any],
        *,
        on: dict[str, Any],
        off: dict[str, Any],
        gone: str,
        allowed: tuple[str, str],
    ) -> None:
        identity = cr.PhysicalResourceId.of(f"deletion-protection-{next(iter(what.values()))}")

        def call(values: dict[str, Any], ignored: str | None = None) -> cr.AwsSdkCall:
            return cr.AwsSdkCall(
                service=service,
                action=action,
                parameters=what | values,
                physical_resource_id=identity,
                ignore_error_codes_matching=ignored,
            )

        cr.AwsCustomResource(
            self,
            name,
            on_create=call(on),
            on_update=call(on),
            on_delete=call(off, gone),
            install_latest_aws_sdk=False,
            policy=cr.AwsCustomResourcePolicy.from_statements(
                [iam.PolicyStatement(actions=[allowed[0]], resources=[allowed[1]])]
            ),
        )

    def _arn(self, service: str, resource: str, name: str, separator: str) -> str:
        stack = Stack.of(self)
        return f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{resource}{separator}{name}"
