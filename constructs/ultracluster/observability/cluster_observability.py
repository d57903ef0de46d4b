"""Metrics, alerts and dashboards of one cluster, in one construct."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.config.base import is_token
from ultracluster.config.observability import Observability
from ultracluster.metrics.routing import alert_manager
from ultracluster.metrics.rules import rule_groups
from ultracluster.model import Cluster
from ultracluster.model.observability import collects
from ultracluster.observability.alerting import AlertTopic
from ultracluster.observability.grafana import GrafanaWorkspace
from ultracluster.observability.workspace import MetricsDestination, MetricsWorkspace
from ultracluster.security.cluster_key import ClusterKey


class ClusterObservability(Construct):
    """A Prometheus workspace with rules and alert manager, a topic for its alerts, and a Grafana if asked.

    `watch` adds the rules of a cluster. What exists is used instead:
    `config=Observability(workspace=ExistingWorkspace(arn=...))`. Nodes and pods write to `destination`, which
    clusters take as `metrics=`. Grafana's data source and dashboards are no part of CloudFormation:
    `ultracluster apply observability` makes those of an environment.

    Attributes:
        destination: where metrics are written to; None with `kind: cloudwatch`.
        topic_arn: SNS topic of the alerts, made or given.
        workspace: the Prometheus workspace; None where it exists already.
        grafana: the Grafana workspace; None where none is made.
        grafana_id: `g-...` of the Grafana workspace, made or given; None where there is none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        name: str | None = None,
        config: Observability | None = None,
        key: kms.IKey | ClusterKey | None = None,
        logs_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """Make what is asked for and does not exist.

        Args:
            cluster_name: as its series say it, in the label `cluster`.
            name: of the workspaces and their logs, unique in account and Region; the cluster's by default.
            config: what is asked for: an `Observability`; by default Prometheus with a topic, and no Grafana.
            key: encrypts metrics and alerts; made by default.
            logs_key: encrypts logs; `key` by default.
            removal_policy: what happens to metrics and dashboards when they leave the stack; by default it is
                destroyed.
        """
        super().__init__(scope, construct_id)
        settings, name = config or Observability(), name or cluster_name
        self.key = ClusterKey.of(self, key)
        topic = (
            AlertTopic(self, "Topic", key=self.key, emails=settings.alerts.emails)
            if settings.makes_topic
            else None
        )
        self.topic_arn = topic.topic_arn if topic else str(settings.alerts.topic_arn)
        self.workspace: MetricsWorkspace | None = None
        self.destination: MetricsDestination | None = None
        if settings.makes_workspace:
            self.workspace = MetricsWorkspace(
                self,
                "Workspace",
                name=name,
                key=self.key,
                logs_key=logs_key,
                retention_days=settings.retention_days,
                limits={cluster_name: settings.max_series} if settings.max_series else None,
                removal_policy=removal_policy,
            )
            self.destination = self.workspace.destination
            if topic:
                topic.let_workspace(self.workspace.workspace_arn)
        elif settings.kind != "cloudwatch" and settings.workspace:
            self.destination = MetricsDestination.of(
                settings.workspace.arn, role_arn=settings.workspace.role_arn
            )
        self.grafana: GrafanaWorkspace | None = None
        self.grafana_id = settings.grafana.workspace_id if settings.grafana else None
        if settings.makes_grafana:
            self.grafana = GrafanaWorkspace(
                self,
                "Grafana",
                name=name,
                config=settings.grafana,
                metrics=self.destination,
                key=self.key if self.workspace else None,
                removal_policy=removal_policy,
            )
            self.grafana_id = self.grafana.workspace_id

    def watch(self, cluster: Cluster) -> None:
        """Evaluate our rules for a cluster in the workspace that is made, and route its alerts to the topic.

        Nothing where the workspace exists: its rules and alert manager are its owner's. HyperPod's own
        collection has other names and labels than the rules ask for, and gets none.

        Args:
            cluster: attribute `cluster` of a cluster's construct.
        """
        if self.workspace is None:
            return
        self.workspace.add_rules(rule_groups(cluster) if collects(cluster) else {})
        topic = self.topic_arn
        region = Stack.of(self).region if is_token(topic) else topic.split(":")[3]
        self.workspace.set_alert_manager(alert_manager(cluster, topic_arn=topic, region=region))
