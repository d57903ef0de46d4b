"""Metrics, logs, dashboards and alerts of every orchestrator."""
