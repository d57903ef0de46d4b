"""Alarms on what an environment has: its file system, its database, its Prometheus workspace, its logs."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import ObservabilityParts, StorageParts
from ultracluster.model import Cluster
from ultracluster.model.observability import observability_of
from ultracluster.observability.alarms import add_alarms
from ultracluster.observability.log_groups import add_database_logs


def add_cluster_alarms(
    scope: Construct,
    cluster: Cluster,
    *,
    storage: StorageParts,
    observability: ObservabilityParts,
    key: kms.IKey,
) -> None:
    """Add them, and settle the logs of the database, which is there by then.

    A workspace that exists is watched by its owner: it has metrics of others, too.

    Args:
        key: of the environment.
    """
    settings, files = observability_of(cluster), storage.file_systems
    metrics = observability.metrics if settings and settings.makes_workspace else None
    add_alarms(
        scope,
        cluster,
        topic_arn=observability.topic_arn,
        lustre_ids={name: mount.file_system_id for name, mount in files.lustres.items()},
        database_id=files.database_id,
        workspace_arn=metrics.workspace_arn if metrics else None,
    )
    logs_key = key_for(scope, cluster.environment, "logs", key)
    add_database_logs(scope, cluster, key=logs_key, database_id=files.database_id)
