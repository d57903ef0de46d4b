"""The stack of what watches the cluster: workspace of metrics, topic of alerts, Grafana.

It waits for the key and comes before the nodes, which write there from their first minute on.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.observability import add_observability
from ultracluster.model import Cluster
from ultracluster.stacks.part import PartStack, cross


class ObservabilityStack(PartStack):
    """Where metrics and alerts go. It holds metrics, and knows no resource of the cluster."""

    def __init__(self, scope: Construct, cluster: Cluster, *, env: cdk.Environment, key_arn: str) -> None:
        super().__init__(scope, cluster, "observability", env=env, holds="metrics, alerts and dashboards")
        key = kms.Key.from_key_arn(self, "Key", key_arn)
        self.parts = parts = add_observability(self, cluster, key=key, cross=cross)
        self.topic_arn = parts.topic_arn
        self.workspace_arn = parts.metrics.workspace_arn if parts.metrics else None
