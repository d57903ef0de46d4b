"""What lets a cluster's nodes write metrics, and tells them where to."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import aws_iam as iam

from ultracluster.model import Cluster
from ultracluster.model.observability import collects_on_nodes, nodes_write, observability_of, uses_addon
from ultracluster.observability.workspace import MetricsDestination

METRICS = "metrics"
"""In `cluster.json`; `--metrics-url` among the arguments of PCS's entry."""
_URL = "remote_write_url"


def write_statements(cluster: Cluster, metrics: MetricsDestination | None) -> list[iam.PolicyStatement]:
    """What the policies of nodes have to say; none where no node writes as itself."""
    return [metrics.write_statement()] if metrics and nodes_write(cluster) else []


def let_write_metrics(
    cluster: Cluster, metrics: MetricsDestination | None, roles: Iterable[iam.IRole]
) -> None:
    """Let nodes with these roles write metrics of a cluster, where they do it themselves."""
    for role in dict.fromkeys(roles):
        for statement in write_statements(cluster, metrics):
            role.add_to_principal_policy(statement)


def deployed(cluster: Cluster, metrics: MetricsDestination | None) -> dict[str, dict[str, str]]:
    """What nodes are told of it when it is deployed, as a part of `cluster.json`."""
    if metrics is None or not collects_on_nodes(cluster):
        return {}
    return {METRICS: {_URL: metrics.remote_write_url}}


def arguments(cluster: Cluster, metrics: MetricsDestination | None) -> list[str]:
    """The same for the entry of PCS."""
    return [word for url in deployed(cluster, metrics).values() for word in ("--metrics-url", url[_URL])]


def addon_destination(cluster: Cluster, metrics: MetricsDestination | None) -> MetricsDestination | None:
    """Where HyperPod's observability add-on writes by `kind: hyperpod`; None with another kind."""
    settings = observability_of(cluster)
    return metrics if settings and settings.kind == "hyperpod" and uses_addon(cluster) else None
