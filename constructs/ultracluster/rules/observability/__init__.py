"""Rules on what watches a cluster: workspace, alerts, Grafana, who collects, and what AWS tells of."""

from ultracluster.rules.observability import (
    alerts,
    collection,
    extension,
    grafana,
    kubernetes,
    told,
    workspace,
)

__all__ = ["alerts", "collection", "extension", "grafana", "kubernetes", "told", "workspace"]
