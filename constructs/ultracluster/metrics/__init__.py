"""Texts for Prometheus, its alert manager and Grafana: rules, routes, dashboards. No CDK."""
