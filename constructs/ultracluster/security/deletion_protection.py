"""Deletion protection of an EKS control plane and an RDS instance, switched on once they are there.

As a property it would hold from the first moment, and keep CloudFormation from taking back a creation that
failed (EKS User Guide, "Protect EKS clusters from accidental deletion"; RDS User Guide, "Deleting a DB
instance").
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from aws_cdk import ArnFormat, CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.model.stack_guards import EKS_SWITCH
from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.principals import trusted
from ultracluster.security.sdk_calls import SdkCalls

_FUNCTIONS = Path(__file__).parent / "custom_resource"
ANSWER = _FUNCTIONS / "answer.py"
"""A module for functions of custom resources, which answers CloudFormation."""
LIMIT = Duration.minutes(15)
"""Facts of Lambda: how long the function tries, less a minute for its answer."""


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
        key: kms.IKey | ClusterKey | None = None,
        cluster: EksCluster | None = None,
        database: Database | None = None,
    ) -> None:
        """Switch it on.

        Args:
            key: encrypts the log of what was switched; by default a `ClusterKey`.
            cluster: of EKS: one of the CDK, an `EksControlPlane`, or what else has its name. By default none.
            database: of RDS: one of the CDK, or an `AccountingDatabase`. By default none.

        Raises:
            ValueError: there is nothing to protect.
        """
        if not cluster and not database:
            raise ValueError(
                "DeletionProtection: give cluster=, database= or both: there is nothing to protect"
            )
        super().__init__(scope, construct_id)
        if cluster:
            self._protect_cluster(cluster.cluster_name, ClusterKey.of(self, key))
        if database:
            self._protect_database(database.instance_identifier, key)

    def _protect_cluster(self, name: str, key: kms.IKey) -> None:
        log = logs.LogGroup(
            self,
            "SwitchLogs",
            encryption_key=key,
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
        )
        allow_use(self, key, "logs")
        arn = Stack.of(self).format_arn(service="eks", resource="cluster", resource_name=name)
        rights = [
            iam.PolicyStatement(sid=sid, actions=actions, resources=[resource])
            for sid, actions, resource in (
                ("WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log.log_group_arn),
                ("Switch", ["eks:DescribeCluster", "eks:DescribeUpdate", "eks:UpdateClusterConfig"], arn),
            )
        ]
        # the last stack of a deploy: a policy beside the role would come after it, and take as long again
        role = iam.Role(
            self,
            "SwitchRole",
            assumed_by=trusted(self, "lambda.amazonaws.com"),
            description="Switches the deletion protection of an EKS cluster",
            inline_policies={"Switch": iam.PolicyDocument(statements=rights)},
        )
        with tempfile.TemporaryDirectory() as folder:  # the CDK copies it at once
            for code in (_FUNCTIONS / "switch.py", ANSWER):
                shutil.copyfile(code, Path(folder) / code.name)
            function = lambda_.Function(
                self,
                "Switch",
                runtime=lambda_.Runtime.PYTHON_3_14,
                handler="switch.handler",
                code=lambda_.Code.from_asset(folder),
                description="Switches the deletion protection of an EKS cluster, and waits for it",
                role=role.without_policy_updates(),
                timeout=LIMIT,
                log_group=log,
            )
        CustomResource(
            self,
            "Cluster",
            resource_type=EKS_SWITCH,
            service_token=function.function_arn,
            service_timeout=LIMIT.plus(Duration.minutes(1)),
            properties={"ClusterName": name},
        )

    def _protect_database(self, name: str, key: kms.IKey | ClusterKey | None) -> None:
        def call(protected: bool, ignored: str | None = None) -> cr.AwsSdkCall:
            return cr.AwsSdkCall(
                service="RDS",
                action="modifyDBInstance",
                parameters={
                    "DBInstanceIdentifier": name,
                    "ApplyImmediately": True,
                    "DeletionProtection": protected,
                },
                physical_resource_id=cr.PhysicalResourceId.of("deletion-protection-Database"),
                ignore_error_codes_matching=ignored,
            )

        arn = Stack.of(self).format_arn(
            service="rds", resource="db", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        SdkCalls.of(self, key=key).add(
            self,
            "Database",
            may=("rds:ModifyDBInstance", arn),
            always=call(True),
            # what is gone needs none
            on_delete=call(False, "ResourceNotFoundException|DBInstanceNotFound.*"),
        )
