"""Rules of Prometheus for one cluster: what Amazon Managed Service for Prometheus or any other one takes.

Limits of AMP (AMP User Guide, quotas, read 2026-11-22): a rule interval of 30 seconds at least, 2,000 rules,
20 rules of a group by default, a file of 1 MB. Fields that not every Prometheus knows are left out
(`keep_firing_for` came with 2.42; whether AMP takes it is not documented): what must not flap looks back over
a window instead.
"""

from __future__ import annotations

from ultracluster.metrics.alert import GROUPS, Alert, Record, alerts, records
from ultracluster.metrics.expressions import scoped
from ultracluster.metrics.facts import Facts, facts_of
from ultracluster.metrics.text import yaml_text
from ultracluster.model.cluster import Cluster

RUNBOOKS = "docs/runbooks"
"""Where runbooks are, from the root of this repository."""
MOST_RULES = 20
"""Facts of a group: the default quota of AMP, and of Grafana Mimir. A group with more becomes several."""
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
        f"{facts.environment}-records": rule_file(_records(facts)),
        f"{facts.environment}-alerts": rule_file(
            [alert for name in GROUPS for alert in _alerts(facts, name)]
        ),
    }


def rule_file(groups: list[dict[str, object]]) -> str:
    return yaml_text({"groups": groups})


def all_groups(facts: Facts) -> list[dict[str, object]]:
    """Every group of rules, those of the records first."""
    return [*_records(facts), *(alert for name in GROUPS for alert in _alerts(facts, name))]


def _records(facts: Facts) -> list[dict[str, object]]:
    wanted = [record for record in records() if record.needs <= facts.haves]
    return _groups(facts, "records", [_record(facts, one) for one in wanted])


def _alerts(facts: Facts, name: str) -> list[dict[str, object]]:
    wanted = [alert for alert in alerts() if alert.group == name and alert.needs <= facts.haves]
    return _groups(facts, name, [_alert(facts, one) for one in wanted])


def _groups(facts: Facts, name: str, rules: list[dict[str, object]]) -> list[dict[str, object]]:
    """Groups of as many rules as one may have: `dev-records`, `dev-records-2`; none without rules."""
    return [
        {
            "name": f"{facts.environment}-{name}{f'-{at // MOST_RULES + 1}' if at else ''}",
            "interval": f"{facts.evaluation_seconds}s",
            "rules": rules[at : at + MOST_RULES],
        }
        for at in range(0, len(rules), MOST_RULES)
    ]


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
