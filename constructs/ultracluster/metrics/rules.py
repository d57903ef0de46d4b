"""Rules of Prometheus for one cluster: what Amazon Managed Service for Prometheus or any other one takes.

Limits of AMP (AMP User Guide, quotas, read 2026-11-22): a rule interval of 30 seconds at least, 2,000 rules,
a file of 1 MB. Fields that not every Prometheus knows are left out (`keep_firing_for` came with 2.42; whether
AMP takes it is not documented): what must not flap looks back over a window instead.
"""

from __future__ import annotations

from ultracluster.metrics.alert import GROUPS, Alert, Record, alerts, records
from ultracluster.metrics.expressions import scoped
from ultracluster.metrics.facts import Facts, facts_of
from ultracluster.metrics.text import yaml_text
from ultracluster.model.cluster import Cluster

RUNBOOKS = "docs/runbooks"
"""Where runbooks are, from the root of this repository."""
_SCOPES = {
    "rack": "{{ if $labels.rack }}rack {{ $labels.rack }}{{ else if $labels.node_group }}group"
    " {{ $labels.node_group }}{{ else if $labels.node }}node {{ $labels.node }}{{ else }}cluster{{ end }}",
    "job": "{{ if $labels.job_id }}job {{ $labels.job_id }}{{ else if $labels.rack }}rack {{ $labels.rack }}"
    "{{ else if $labels.node_group }}group {{ $labels.node_group }}{{ else }}cluster{{ end }}",
    "cluster": "cluster",
}
"""The label by which alerts become one message: a rack that fails is one, and so is the fabric of a job."""


def rule_groups(cluster: Cluster, *, runbooks: str = RUNBOOKS) -> dict[str, str]:
    """Rule files of Prometheus by the namespace that AMP keeps each in.

    Rules read the series of this cluster only, so that clusters may share a workspace.

    Args:
        cluster: what the environment comes to.
        runbooks: what stands before `/<alert>.md`: a folder of the repository, or the URL of a copy.
    """
    facts = facts_of(cluster, runbooks=runbooks)
    return {
        f"{facts.environment}-records": rule_file([_records(facts)]),
        f"{facts.environment}-alerts": rule_file([one for name in GROUPS if (one := _alerts(facts, name))]),
    }


def rule_file(groups: list[dict[str, object]]) -> str:
    return yaml_text({"groups": groups})


def all_groups(facts: Facts) -> list[dict[str, object]]:
    """Every group of rules, that of the records first."""
    return [_records(facts), *(one for name in GROUPS if (one := _alerts(facts, name)))]


def _records(facts: Facts) -> dict[str, object]:
    wanted = [one for one in records() if one.needs <= facts.haves]
    return _group(facts, "records", [_record(facts, one) for one in wanted])


def _alerts(facts: Facts, name: str) -> dict[str, object] | None:
    wanted = [one for one in alerts() if one.group == name and one.needs <= facts.haves]
    return _group(facts, name, [_alert(facts, one) for one in wanted]) if wanted else None


def _group(facts: Facts, name: str, rules: list[dict[str, object]]) -> dict[str, object]:
    return {
        "name": f"{facts.environment}-{name}",
        "interval": f"{facts.evaluation_seconds}s",
        "rules": rules,
    }


def _record(facts: Facts, record: Record) -> dict[str, object]:
    return {
        "record": record.name,
        "expr": _expression(facts, record.expr),
        "labels": {"cluster": facts.cluster},
    }


def _alert(facts: Facts, alert: Alert) -> dict[str, object]:
    return {
        "alert": alert.name,
        "expr": _expression(facts, alert.expr),
        "for": alert.lasts,
        "labels": {
            "cluster": facts.cluster,
            "severity": alert.severity,
            "scope": _SCOPES[alert.scope],
            **alert.labels,
        },
        "annotations": {
            "summary": facts.filled(alert.summary),
            "description": " ".join(facts.filled(alert.description).split()),
            "run": facts.filled(alert.run),
            "runbook": f"{facts.runbooks}/{alert.name}.md",
        },
    }


def _expression(facts: Facts, text: str) -> str:
    return scoped(" ".join(facts.filled(text).split()), f'cluster="{facts.cluster}"')


__all__ = ["RUNBOOKS", "all_groups", "rule_file", "rule_groups"]
