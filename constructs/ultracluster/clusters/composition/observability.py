"""Workspace, topic and Grafana of an environment that asks for them."""

from __future__ import annotations

from dataclasses import replace

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import Cross, ObservabilityParts, removal
from ultracluster.model import Cluster
from ultracluster.model.observability import observability_of
from ultracluster.observability.cluster_observability import ClusterObservability
from ultracluster.observability.events import add_events


def add_observability(
    scope: Construct, cluster: Cluster, *, key: kms.IKey, cross: Cross
) -> ObservabilityParts:
    """Add what the environment asks for, and does not have; what others must know of it."""
    settings = observability_of(cluster)
    assert settings
    cluster_observability = ClusterObservability(
        scope,
        "Observability",
        cluster_name=cluster.cluster_name,
        name=cluster.name,
        config=settings,
        key=key,
        logs_key=key_for(scope, cluster.environment, "logs", key),
        removal_policy=removal(cluster.environment),
    )
    cluster_observability.watch(cluster)
    add_events(scope, cluster, topic_arn=cluster_observability.topic_arn, key=key)
    metrics = cluster_observability.destination
    if metrics:
        metrics = replace(
            metrics,
            workspace_arn=cross(scope, "WorkspaceArn", metrics.workspace_arn),
            remote_write_url=cross(scope, "RemoteWriteUrl", metrics.remote_write_url),
        )
    grafana = cluster_observability.grafana_id
    if cluster_observability.grafana:
        cross(scope, "GrafanaEndpoint", cluster_observability.grafana.endpoint)
    return ObservabilityParts(
        topic_arn=cross(scope, "AlertTopicArn", cluster_observability.topic_arn),
        metrics=metrics,
        grafana_id=cross(scope, "GrafanaId", grafana) if grafana else None,
    )
