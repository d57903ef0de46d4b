"""Single calls of AWS's API while a stack is deployed, for what CloudFormation's schemas do not have."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

from ultracluster.security.cluster_key import ClusterKey, allow_use
from ultracluster.security.principals import trusted


class SdkCalls(Construct):
    """Calls that the CDK's function makes, with a role and a log group that are written out.

    A stack has one such function, so one of these: `SdkCalls.of`.
    """

    @classmethod
    def of(cls, scope: Construct, *, key: kms.IKey | ClusterKey | None) -> SdkCalls:
        """That of the stack.

        Args:
            key: encrypts the log, if it is made now; by default a `ClusterKey`.
        """
        stack = Stack.of(scope)
        existing = stack.node.try_find_child("SdkCalls")
        if isinstance(existing, SdkCalls):
            return existing
        return cls(stack, "SdkCalls", key=ClusterKey.of(scope, key))

    def __init__(self, scope: Construct, construct_id: str, *, key: kms.IKey) -> None:
        super().__init__(scope, construct_id)
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=trusted(self, "lambda.amazonaws.com"),
            description="Calls of AWS's API that CloudFormation has no property for",
        )
        allow_use(self, key, "logs")
        self._logs = logs.LogGroup(
            self,
            "Logs",
            encryption_key=key,
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteLogs",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[self._logs.log_group_arn],
            )
        )

    def add(
        self,
        scope: Construct,
        construct_id: str,
        *,
        may: tuple[str, str],
        always: cr.AwsSdkCall,
        on_delete: cr.AwsSdkCall | None = None,
        sid: str | None = None,
    ) -> cr.AwsCustomResource:
        """Add the calls of one thing, below `scope`.

        Args:
            may: the action, and the ARN of what it changes.
            always: when it is made and whenever it changes.
            on_delete: when it goes.
            sid: id of the statement that allows it.

        Returns:
            What has the answer of the call, for those whose answer is read.
        """
        action, arn = may
        self._role.add_to_policy(iam.PolicyStatement(sid=sid, actions=[action], resources=[arn]))
        call = cr.AwsCustomResource(
            scope,
            construct_id,
            on_create=always,
            on_update=always,
            on_delete=on_delete,
            install_latest_aws_sdk=False,
            role=self._role.without_policy_updates(),
            log_group=self._logs,
        )
        call.node.add_dependency(self._role)
        return call
