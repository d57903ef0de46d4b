"""What `observability:` comes to: who collects, what nodes are told of it, which stacks and rights follow."""

from __future__ import annotations

from typing import Literal

from ultracluster.config.kubernetes import HyperPodEks
from ultracluster.config.observability import Observability, workspace_place
from ultracluster.config.orchestrator import HyperPodSlurm
from ultracluster.model.cluster import Cluster, Group
from ultracluster.model.metric_series import default_budget
from ultracluster.model.node_price import usd_per_hour

OBSERVABILITY_ADDON = "amazon-sagemaker-hyperpod-observability"
"""HyperPod's own collection on EKS."""


def observability_of(cluster: Cluster) -> Observability | None:
    """What the environment asks for; None where nothing is made."""
    return cluster.environment.observability


def collects(cluster: Cluster) -> bool:
    """Whether exporters and agents of ours run on the nodes."""
    wanted = observability_of(cluster)
    return wanted is not None and wanted.kind == "prometheus"


def collects_on_nodes(cluster: Cluster) -> bool:
    """Whether they are services of the nodes themselves: under Kubernetes they are pods."""
    return collects(cluster) and cluster.traits.slurm


def uses_addon(cluster: Cluster) -> bool:
    """Whether HyperPod's observability add-on is installed: asked for here, or by `orchestrator`."""
    wanted, settings = observability_of(cluster), cluster.settings
    if not isinstance(settings, HyperPodEks):
        return False
    return settings.observability is not None or (wanted is not None and wanted.kind == "hyperpod")


def uses_extension(cluster: Cluster) -> bool:
    """Whether HyperPod's cluster extension collects on its Slurm nodes."""
    wanted = observability_of(cluster)
    return wanted is not None and wanted.kind == "hyperpod" and isinstance(cluster.settings, HyperPodSlurm)


def writes_metrics(cluster: Cluster) -> bool:
    """Whether anything in the cluster's network writes to a Prometheus workspace."""
    wanted = observability_of(cluster)
    return uses_addon(cluster) or (wanted is not None and wanted.kind != "cloudwatch")


def nodes_write(cluster: Cluster) -> bool:
    """Whether the nodes' own roles write: our agent on Slurm nodes, or HyperPod's extension."""
    return collects_on_nodes(cluster) or uses_extension(cluster)


def workspace_region(cluster: Cluster) -> str:
    """Region of the workspace: the cluster's own, or that of the ARN in the file."""
    wanted = observability_of(cluster)
    workspace = wanted.workspace if wanted else None
    return workspace_place(workspace.arn)[0] if workspace and ":" in workspace.arn else cluster.region


def key_uses(cluster: Cluster) -> list[Literal["alerts", "metrics"]]:
    """What the environment's key is used for besides data, volumes and logs."""
    wanted = observability_of(cluster)
    uses: list[Literal["alerts", "metrics"]] = []
    if wanted and wanted.makes_topic:
        uses.append("alerts")
    if wanted and wanted.makes_workspace:
        uses.append("metrics")
    return uses


def assumed_role(cluster: Cluster) -> str | None:
    """IAM role that nodes assume to write; None where they write as themselves."""
    wanted = observability_of(cluster)
    return wanted.workspace.role_arn if wanted and wanted.workspace else None


def series_budget(cluster: Cluster, group: Group | None = None) -> int:
    """Series that one node may have: the environment's number, else those of its type, with head room.

    Args:
        cluster: what the environment comes to.
        group: of the node; by default that whose nodes have most.
    """
    wanted = observability_of(cluster)
    if wanted and wanted.budget_series_per_node:
        return wanted.budget_series_per_node
    groups = [group] if group else cluster.groups.values()
    return max(default_budget(cluster, one, asks_slurm=scrapes_slurm(cluster, one)) for one in groups)


def scrapes_slurm(cluster: Cluster, group: Group) -> bool:
    """Whether nodes of this group ask slurmctld: those that run it, else login nodes (PCS runs its own)."""
    if not cluster.traits.slurm:
        return False
    roles = {one.role for one in cluster.groups.values()}
    return group.role == ("controller" if "controller" in roles else "login")


def metrics_settings(cluster: Cluster, *groups: str) -> dict[str, object]:
    """`metrics` of `cluster.json`, as far as it is known before a deploy; empty where no node collects.

    `labels` are on every series; a node adds `node`, `instance_type`, `instance_id` and, where it knows it,
    `rack`. Where the workspace is, is written at deploy: `remote_write_url`.

    Args:
        cluster: what the environment comes to.
        groups: the groups whose nodes read it; all by default.
    """
    wanted = observability_of(cluster)
    if wanted is None or not collects_on_nodes(cluster):
        return {}
    read_by = [cluster.groups[name] for name in groups] or list(cluster.groups.values())
    labels = {"cluster": cluster.environment.cluster_name}
    if len(groups) == 1:
        labels["node_group"] = groups[0]
    told: dict[str, object] = {
        "scrape_seconds": wanted.scrape_seconds,
        "max_series_per_node": max(series_budget(cluster, group) for group in read_by),
        "labels": labels,
        "region": workspace_region(cluster),
    }
    if role := assumed_role(cluster):
        told["role_arn"] = role
    if len(read_by) == 1 and (price := usd_per_hour(cluster, read_by[0])):
        told["usd_per_hour"] = round(price, 6)
    if groups and any(scrapes_slurm(cluster, group) for group in read_by):
        told["slurm"] = True
    return told


__all__ = [
    "OBSERVABILITY_ADDON",
    "assumed_role",
    "collects",
    "collects_on_nodes",
    "key_uses",
    "metrics_settings",
    "nodes_write",
    "observability_of",
    "scrapes_slurm",
    "series_budget",
    "uses_addon",
    "uses_extension",
    "workspace_region",
    "writes_metrics",
]
