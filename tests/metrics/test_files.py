"""Rules, routes and boards as files for a Prometheus of one's own."""

from __future__ import annotations

from metrics_fleet import observed

from ultracluster.config.observability import Observability
from ultracluster.metrics.files import TOPIC, observability_files
from ultracluster.model.cluster import resolve


def test_rules_routes_and_boards_are_files() -> None:
    files = observability_files(observed("prod"), runbooks="https://example.org/runbooks")

    assert {"rules/prod-alerts.yaml", "rules/prod-records.yaml", "alertmanager.yaml"} < set(files)
    assert any(name.startswith("dashboards/") for name in files)
    assert "runbook: https://example.org/runbooks/GpuXidReboot.md" in files["rules/prod-alerts.yaml"]
    assert TOPIC in files["alertmanager.yaml"]


def test_who_collects_nothing_gets_none() -> None:
    environment = observed("prod").environment
    for told in (None, Observability(kind="cloudwatch")):
        cluster = resolve(environment.model_copy(update={"observability": told}))
        assert observability_files(cluster, runbooks="docs/runbooks") == {}
