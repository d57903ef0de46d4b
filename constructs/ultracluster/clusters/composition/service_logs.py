"""The log group of a cluster's service: its key, how long it is kept, and what is counted in it."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.clusters.cluster import ICluster
from ultracluster.clusters.composition.keys import key_for
from ultracluster.clusters.composition.parts import removal
from ultracluster.model import Cluster
from ultracluster.observability.log_groups import add_service_logs


def add_cluster_logs(scope: Construct, cluster: Cluster, *, source: ICluster, key: kms.IKey) -> None:
    """Add it in the stack of the cluster, for services that have such a group or deliver to one.

    Args:
        source: the cluster; those of HyperPod and PCS have `cluster_id` and `cluster_arn`.
        key: of the environment.
    """
    if not cluster.traits.hyperpod and not cluster.traits.delivered_logs:
        return
    add_service_logs(
        scope,
        cluster,
        key=key_for(scope, cluster.environment, "logs", key),
        service_id=getattr(source, "cluster_id"),  # noqa: B009 - ICluster has none: ParallelCluster has no id
        service_arn=getattr(source, "cluster_arn"),  # noqa: B009
        removal_policy=removal(cluster.environment),
    )
