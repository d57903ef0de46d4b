"""Where alerts, events and the budget are told: an SNS topic, and who may publish to it.

Amazon Managed Service for Prometheus User Guide, "Giving Amazon Managed Service for Prometheus permission to
send alert messages to your Amazon SNS topic"; SNS Developer Guide, "Key management"; EventBridge User Guide,
"Using resource-based policies"; CloudWatch User Guide, "Notifying users on alarm changes"; Cost Management
User Guide, "Creating an Amazon SNS topic for budget notifications".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultracluster.security.cluster_key import allow_use
from ultracluster.security.principals import service


class AlertTopic(Construct):
    """A topic with a customer's key: that of SNS itself lets no service publish.

    CloudWatch alarms, EventBridge rules and budgets of the account may publish, and those Prometheus
    workspaces that `let_workspace` names.

    Attributes:
        topic: the topic.
        topic_arn: its ARN.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, key: kms.IKey, emails: Sequence[str] = ()
    ) -> None:
        """Make the topic.

        Args:
            key: encrypts what is told; its policy must let the services use it, which is seen to where it is
                made in this app.
            emails: addresses that are told; each confirms once.
        """
        super().__init__(scope, construct_id)
        allow_use(self, key, "alerts")
        # the CDK's class and interface differ in names of arguments
        topic = sns.Topic(self, "Resource", master_key=key, enforce_ssl=True)
        self.topic = cast("sns.ITopic", topic)
        self.topic_arn = self.topic.topic_arn
        for address in emails:
            sns.Subscription(
                self,
                f"Mail-{address}",
                topic=self.topic,
                endpoint=address,
                protocol=sns.SubscriptionProtocol.EMAIL,
            )
        stack = Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        rules = stack.format_arn(service="events", resource="rule", resource_name="*")
        budgets = f"arn:{stack.partition}:budgets::{stack.account}:*"
        for sid, name, source in (
            ("Alarms", "cloudwatch.amazonaws.com", alarms),
            ("Budgets", "budgets.amazonaws.com", budgets),
            ("Events", "events.amazonaws.com", rules),
        ):
            self._let(sid, name, ["sns:Publish"], source)

    def let_workspace(self, workspace_arn: str) -> None:
        """Let the alert manager of a Prometheus workspace publish."""
        actions = ["sns:GetTopicAttributes", "sns:Publish"]
        self._let("Alerts", "aps.amazonaws.com", actions, workspace_arn)

    def _let(self, sid: str, name: str, actions: list[str], source_arn: str) -> None:
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid=sid,
                principals=[service(name)],
                actions=actions,
                resources=[self.topic_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": source_arn},
                    "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                },
            )
        )
