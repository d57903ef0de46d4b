"""How many series and samples an environment's metrics are, beside what is allowed for them."""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster.catalog.prices import HOURS_PER_MONTH
from ultracluster.config.observability import Observability
from ultracluster.model import Cluster
from ultracluster.model.metric_series import cluster_series, samples_per_month, series_of_node
from ultracluster.model.observability import (
    collects,
    observability_of,
    scrapes_slurm,
    series_budget,
    workspace_region,
)

BYTES_PER_SAMPLE = 2
"""Stored, at the most: "typically 1 or 2 bytes" (aws.amazon.com/prometheus/pricing)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeries:
    """One node group's share."""

    group: str
    nodes: int
    most_nodes: int
    series_per_node: int
    """The most that a node at work has, on paper: metrics times what the instance type has of each thing."""
    budget_per_node: int
    """What a node may send; beyond it the agent refuses a scrape, and an alert says so."""

    @property
    def within_budget(self) -> bool:
        return self.series_per_node <= self.budget_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityPlan:
    """What is collected, and how much of it. Figures are zero where nothing of ours collects."""

    kind: str
    """`prometheus`, `hyperpod` or `cloudwatch`."""
    workspace: str
    """ARN of an existing Prometheus workspace, `made`, or empty."""
    workspace_region: str
    scrape_seconds: int
    retention_days: int
    grafana: str
    """`made`, id of an existing workspace, or empty."""
    alerts_to: tuple[str, ...]
    groups: tuple[GroupSeries, ...]
    cluster_series: int
    """What there is once: of Slurm or Kubernetes."""
    series: int
    """Of all nodes that are always there."""
    most_series: int
    """Of all nodes that there may be."""
    max_series: int | None
    """What the workspace takes; None for its service's default."""
    samples_per_month: int
    most_samples_per_month: int

    @property
    def within_budget(self) -> bool:
        """Whether every node and the workspace have room for all of it."""
        fits = self.max_series is None or self.most_series <= self.max_series
        return fits and all(group.within_budget for group in self.groups)


def observability_plan(cluster: Cluster) -> ObservabilityPlan | None:
    """None where the environment asks for no observability."""
    wanted = observability_of(cluster)
    if wanted is None:
        return None
    ours = collects(cluster)
    groups = tuple(
        GroupSeries(
            group=group.name,
            nodes=group.settings.count,
            most_nodes=group.most_nodes,
            series_per_node=series_of_node(cluster, group, asks_slurm=scrapes_slurm(cluster, group)).of_node,
            budget_per_node=series_budget(cluster, group),
        )
        for group in cluster.groups.values()
        if ours and group.most_nodes
    )
    once = cluster_series(cluster) if ours else 0
    each = {one.group: series_of_node(cluster, cluster.groups[one.group]).of_node for one in groups}
    series = once + sum(one.nodes * each[one.group] for one in groups)
    most = once + sum(one.most_nodes * each[one.group] for one in groups)
    return ObservabilityPlan(
        kind=wanted.kind,
        workspace=_workspace(wanted),
        workspace_region=workspace_region(cluster) if wanted.kind != "cloudwatch" else "",
        scrape_seconds=wanted.scrape_seconds,
        retention_days=wanted.retention_days,
        grafana=_grafana(wanted),
        alerts_to=(*wanted.alerts.emails, *filter(None, [wanted.alerts.topic_arn])),
        groups=groups,
        cluster_series=once,
        series=series,
        most_series=most,
        max_series=wanted.max_series,
        samples_per_month=samples_per_month(series, wanted.scrape_seconds),
        most_samples_per_month=samples_per_month(most, wanted.scrape_seconds),
    )


def stored_gb(samples: int, retention_days: int) -> float:
    """GB that a workspace holds once its first samples have reached the end of their retention.

    Args:
        samples: of a month.
        retention_days: how long each is kept.
    """
    return samples / HOURS_PER_MONTH * 24 * retention_days * BYTES_PER_SAMPLE / 2**30


def observability_lines(plan: ObservabilityPlan) -> list[str]:
    """In words: where it goes, how much it is, and what is too much."""
    if plan.kind == "cloudwatch":
        return ["alarms and events of AWS only: no metrics of nodes, GPUs or jobs", _alerts(plan)]
    place = "a workspace of its own" if plan.workspace == "made" else plan.workspace or "a workspace"
    if plan.kind == "hyperpod":
        return [f"HyperPod's own collection, to {place}: its series are not reckoned here", _alerts(plan)]
    lines = [
        f"every {plan.scrape_seconds} s to {place}, kept for {plan.retention_days} days; {_alerts(plan)}"
    ]
    lines += [
        f"{one.group}: {one.series_per_node:,} series a node, {one.budget_per_node:,} allowed"
        + ("" if one.within_budget else ": TOO MANY, its scrapes would be refused")
        for one in plan.groups
    ]
    total = f"{plan.series:,} series in all"
    if plan.most_series > plan.series:
        total += f", up to {plan.most_series:,}"
    if plan.max_series is not None:
        over = " (TOO MANY, new ones would be refused)" * (plan.most_series > plan.max_series)
        total += f", {plan.max_series:,} allowed{over}"
    return [*lines, f"{total}; {_billions(plan.samples_per_month)} samples a month"]


def _alerts(plan: ObservabilityPlan) -> str:
    return (
        f"alerts to {', '.join(plan.alerts_to)}"
        if plan.alerts_to
        else "alerts to a topic that nobody reads yet"
    )


def _billions(samples: int) -> str:
    return f"{samples / 1e9:,.2f} billion" if samples >= 1e7 else f"{samples:,}"


def _workspace(wanted: Observability) -> str:
    if wanted.kind == "cloudwatch":
        return ""
    return wanted.workspace.arn if wanted.workspace else "made"


def _grafana(wanted: Observability) -> str:
    if wanted.grafana is None:
        return ""
    return wanted.grafana.workspace_id or "made"


__all__ = [
    "GroupSeries",
    "ObservabilityPlan",
    "observability_lines",
    "observability_plan",
    "stored_gb",
]
