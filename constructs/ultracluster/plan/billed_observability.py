"""What watching a cluster is billed for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ultracluster.model import Cluster
from ultracluster.model.observability import observability_of, writes_metrics
from ultracluster.plan.billed_item import Item, standing
from ultracluster.plan.observability import ObservabilityPlan, observability_plan, stored_gb

BATCH = 10_000_000
"""Samples that a price is of."""
TIERS: tuple[tuple[str, str, float], ...] = (
    ("amp.samples", "first 2 bn", 2e9),
    ("amp.samples-2", "next 250 bn", 252e9),
    ("amp.samples-3", "beyond 252 bn", float("inf")),
)
"""Prices of samples taken in, with the month's samples up to which each counts (AWS Price List, offer
AmazonPrometheus). They are counted over all workspaces of an account in a Region."""
_STORED = "2 bytes a sample, once the first ones reach the end of their retention"


def observability_items(cluster: Cluster) -> Iterator[Item]:
    """Workspace, Grafana and what use decides; nothing where the environment has no observability."""
    plan, wanted = observability_plan(cluster), observability_of(cluster)
    if plan is None or wanted is None:
        return
    if plan.samples_per_month:
        yield from _samples(plan)
        if wanted.collector == "managed" and cluster.traits.kubernetes:
            yield from _collector(plan)
    if wanted.grafana is not None:
        note = "billed even where nobody logs in; every further active user is billed, a service account, too"
        if wanted.grafana.workspace_id:
            yield _use("active users of the existing Grafana", "amg.editor", "user")
        else:
            item = standing("observability", "Managed Grafana, one editor", "amg.editor", "user")
            yield replace(item, note=note)
            yield _use("further editors of Grafana", "amg.editor", "user")
            yield _use("further viewers of Grafana", "amg.viewer", "user")
    if writes_metrics(cluster):
        if not plan.samples_per_month:
            yield _use("samples of HyperPod's collection, 10 million", "amp.samples", "10M samples")
        yield _use("samples that rules and dashboards read, a billion", "amp.query", "billion samples")
    yield _use("CloudWatch alarms, each", "cloudwatch.alarm", "alarm")
    yield _use("notifications and events")
    if wanted.monthly_budget_usd:
        yield _use("AWS Budgets")


def _samples(plan: ObservabilityPlan) -> Iterator[Item]:
    below = 0.0
    for key, words, above in TIERS:
        at, most = (
            max(0.0, min(samples, above) - below) / BATCH
            for samples in (plan.samples_per_month, plan.most_samples_per_month)
        )
        if most:
            item = standing("observability", f"Prometheus samples, {words}", key, "x 10M", round(at, 1))
            yield replace(item, greatest=round(most, 1), note=_elsewhere(plan))
        below = above
    stored, most_stored = (
        stored_gb(samples, plan.retention_days)
        for samples in (plan.samples_per_month, plan.most_samples_per_month)
    )
    item = standing("observability", "Prometheus storage", "amp.storage", "GB", round(stored, 1))
    yield replace(item, greatest=round(most_stored, 1), note=_STORED)


def _collector(plan: ObservabilityPlan) -> Iterator[Item]:
    yield standing("observability", "Prometheus managed collector", "amp.collector", "collector")
    at, most = (round(one / BATCH, 1) for one in (plan.samples_per_month, plan.most_samples_per_month))
    item = standing("observability", "samples that it collects", "amp.collected", "x 10M", at)
    yield replace(item, greatest=most)


def _elsewhere(plan: ObservabilityPlan) -> str:
    if plan.workspace == "made":
        return ""
    return f"billed to the account of {plan.workspace}, at the prices of {plan.workspace_region}"


def _use(what: str, key: str = "", unit: str = "GB") -> Item:
    return Item(area="by use", what=what, key=key, purchase="usage", unit=unit)
