"""A workspace of Amazon Managed Service for Prometheus, and the right to write to one.

Amazon Managed Service for Prometheus User Guide: "Encryption at rest", "CloudWatch Logs", "Query insights",
"Service quotas".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Fn, RemovalPolicy, Stack, Token
from aws_cdk import aws_aps as aps
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.config.observability import remote_write_url
from ultracluster.security.cluster_key import allow_use

DEAR_QUERY_SAMPLES = 10_000_000
"""Queries that look at more samples are logged: a fifth of what the service takes for one day of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsDestination:
    """Where metrics are written to: a workspace, made here or elsewhere."""

    workspace_arn: str
    remote_write_url: str
    role_arn: str | None = None
    """Role to assume first, for a workspace of another account."""

    @property
    def workspace_id(self) -> str:
        """`ws-...`"""
        return Fn.select(1, Fn.split("/", self.workspace_arn))

    def write_statement(self) -> iam.PolicyStatement:
        """What a role that writes may do: this, and nothing else of the workspace."""
        if self.role_arn:
            return iam.PolicyStatement(
                sid="AssumeMetricsWriter", actions=["sts:AssumeRole"], resources=[self.role_arn]
            )
        return iam.PolicyStatement(
            sid="SendMetrics", actions=["aps:RemoteWrite"], resources=[self.workspace_arn]
        )

    def query_statement(self) -> iam.PolicyStatement:
        """What a role that shows metrics may do; of a foreign workspace through the same role."""
        if self.role_arn:
            return iam.PolicyStatement(
                sid="AssumeMetricsReader", actions=["sts:AssumeRole"], resources=[self.role_arn]
            )
        return iam.PolicyStatement(sid="QueryMetrics", actions=list(_QUERIES), resources=[self.workspace_arn])

    @staticmethod
    def of(workspace_arn: str, *, role_arn: str | None = None) -> MetricsDestination:
        """A workspace that exists, by its ARN, which may be a token."""
        if not Token.is_unresolved(workspace_arn):
            return MetricsDestination(
                workspace_arn=workspace_arn,
                remote_write_url=remote_write_url(workspace_arn),
                role_arn=role_arn,
            )
        region, workspace = (
            Fn.select(3, Fn.split(":", workspace_arn)),
            Fn.select(1, Fn.split("/", workspace_arn)),
        )
        return MetricsDestination(
            workspace_arn=workspace_arn, remote_write_url=_url(region, workspace), role_arn=role_arn
        )


_QUERIES = ("aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:ListRules", "aps:QueryMetrics")


class MetricsWorkspace(Construct):
    """A workspace with a customer's key, its own logs, a retention, and limits.

    Attributes:
        workspace_arn: its ARN.
        workspace_id: `ws-...`
        destination: where metrics are written to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        key: kms.IKey,
        logs_key: kms.IKey | None = None,
        retention_days: int = 150,
        limits: Mapping[str, int] | None = None,
        log_retention: logs.RetentionDays = logs.RetentionDays.THREE_MONTHS,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """Make the workspace.

        Args:
            name: its alias, and in the names of its log groups: unique in account and Region.
            key: encrypts metrics; a workspace with another key is another workspace.
            logs_key: encrypts its logs; `key` by default.
            retention_days: until metrics are dropped, 1-1095.
            limits: active series at the most, by the name of a cluster (the label `cluster`).
            log_retention: of what the service writes about rules, alerts and dear queries.
            removal_policy: what happens to the metrics when the workspace leaves the stack.
        """
        super().__init__(scope, construct_id)
        allow_use(self, key, "metrics")
        allow_use(self, logs_key or key, "logs")
        groups = {
            log: logs.LogGroup(
                self,
                f"{log.title()}Logs",
                # below this prefix the account's policy for deliveries does not grow with each group
                log_group_name=f"/aws/vendedlogs/ultracluster/{name}/prometheus-{log}",
                encryption_key=logs_key or key,
                retention=log_retention,
                removal_policy=RemovalPolicy.DESTROY,
            )
            for log in ("alerts", "queries")
        }
        workspace = aps.CfnWorkspace
        self.resource = workspace(
            self,
            "Resource",
            alias=name,
            kms_key_arn=key.key_arn,
            logging_configuration=workspace.LoggingConfigurationProperty(
                log_group_arn=groups["alerts"].log_group_arn
            ),
            query_logging_configuration=workspace.QueryLoggingConfigurationProperty(
                destinations=[
                    workspace.LoggingDestinationProperty(
                        cloud_watch_logs=workspace.CloudWatchLogDestinationProperty(
                            log_group_arn=groups["queries"].log_group_arn
                        ),
                        filters=workspace.LoggingFilterProperty(qsp_threshold=DEAR_QUERY_SAMPLES),
                    )
                ]
            ),
            workspace_configuration=workspace.WorkspaceConfigurationProperty(
                retention_period_in_days=retention_days,
                limits_per_label_sets=[_limit(cluster, most) for cluster, most in (limits or {}).items()]
                or None,
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        self.workspace_arn, self.workspace_id = self.resource.attr_arn, self.resource.attr_workspace_id
        self.destination = MetricsDestination(
            workspace_arn=self.workspace_arn,
            remote_write_url=_url(Stack.of(self).region, self.workspace_id),
        )

    def add_rules(self, namespaces: Mapping[str, str]) -> list[aps.CfnRuleGroupsNamespace]:
        """Evaluate rules in the workspace: text of a Prometheus rule file, by namespace."""
        return [
            aps.CfnRuleGroupsNamespace(
                self, f"Rules-{name}", name=name, workspace=self.workspace_arn, data=text
            )
            for name, text in namespaces.items()
        ]

    def set_alert_manager(self, definition: str) -> None:
        """Route alerts by a definition of the service: `alertmanager_config: |` and its text."""
        self.resource.alert_manager_definition = definition


def _url(region: str, workspace: str) -> str:
    return f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{workspace}/api/v1/remote_write"


def _limit(cluster: str, most: int) -> aps.CfnWorkspace.LimitsPerLabelSetProperty:
    return aps.CfnWorkspace.LimitsPerLabelSetProperty(
        label_set=[aps.CfnWorkspace.LabelProperty(name="cluster", value=cluster)],
        limits=aps.CfnWorkspace.LimitsPerLabelSetEntryProperty(max_series=most),
    )
