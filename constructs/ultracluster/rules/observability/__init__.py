"""Rules on what watches a cluster: workspace, alerts, Grafana, who collects, and what AWS tells of."""
