"""The definition of AMP's alert manager: who is told, in which words, how soon and how often.

AMP User Guide, "Alert manager", read 2026-11-22: `alertmanager_config` beside `template_files`; receivers are
SNS, whose `sigv4.region` must be there, and PagerDuty; `repeat_interval` is five days at most; a subject has
100 characters of ASCII at most, a message 256 KB.
"""

from __future__ import annotations

from typing import Any

from ultracluster.metrics.alert import Severity
from ultracluster.metrics.text import yaml_text
from ultracluster.model.cluster import Cluster

MOST_IN_A_MESSAGE = 20
"""Alerts that one message has in full; 72 GPUs of a rack are one cause, and nobody reads the 21st."""
_TIMES: dict[Severity, dict[str, str]] = {
    # what fails with a rack fails within a scrape or two: half a minute makes it one message
    "page": {"group_wait": "30s", "group_interval": "5m", "repeat_interval": "4h"},
    "ticket": {"group_wait": "2m", "group_interval": "30m", "repeat_interval": "1d"},
    "info": {"group_wait": "10m", "group_interval": "6h", "repeat_interval": "5d"},
}
_DOWN = "NodeDown|NodeNotReady"
_SYMPTOMS = (
    "NodeSilent|ExporterDown|GpuMissing|GpuMetricsMissing|EfaDevicesMissing|LustreStalled|HealthCheckCritical"
)
_SUBJECT = (
    '{{ define "ultracluster.subject" }}'
    '{{ if eq .Status "resolved" }}RESOLVED {{ end }}{{ .CommonLabels.severity | toUpper }}'
    " {{ .GroupLabels.cluster }}"
    '{{ if ne .GroupLabels.scope "cluster" }}, {{ .GroupLabels.scope }}{{ end }}: '
    "{{ if .CommonLabels.alertname }}{{ .CommonLabels.alertname }}"
    "{{ if gt (len .Alerts) 1 }} ({{ len .Alerts }}){{ end }}"
    "{{ else }}{{ len .Alerts }} alerts{{ end }}{{ end }}"
)
_MESSAGE = f"""{{{{ define "ultracluster.message" -}}}}
{{{{ with .Alerts.Firing }}}}{{{{ len . }}}} firing
{{{{ range $number, $one := . }}}}{{{{ if lt $number {MOST_IN_A_MESSAGE} }}}}
{{{{ $one.Annotations.summary }}}}
  {{{{ $one.Annotations.description }}}}
  Run first: {{{{ $one.Annotations.run }}}}
  Runbook: {{{{ $one.Annotations.runbook }}}}
  {{{{ $one.Labels.alertname }}}} since {{{{ $one.StartsAt.UTC.Format "2006-01-02 15:04:05 UTC" }}}}
{{{{ else if eq $number {MOST_IN_A_MESSAGE} }}}}
These are the first {MOST_IN_A_MESSAGE}; the others are on the board and in the list of alerts.
{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}
{{{{- with .Alerts.Resolved }}}}
{{{{ len . }}}} over
{{{{ range $number, $one := . }}}}{{{{ if lt $number {MOST_IN_A_MESSAGE} }}}}  {{{{ .Annotations.summary }}}}
{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}
{{{{- end }}}}"""


def alert_manager(cluster: Cluster, *, topic_arn: str, region: str) -> str:
    """Return what AMP takes as the definition of its alert manager.

    Args:
        cluster: what the environment comes to.
        topic_arn: standard SNS topic of everybody who is told; a subscription may take only a part, by the
            message attributes `severity` and `cluster`.
        region: of the topic.
    """
    return yaml_text(
        {
            "template_files": {"default_template": f"{_SUBJECT}\n{_MESSAGE}\n"},
            "alertmanager_config": yaml_text(
                {
                    "templates": ["default_template"],
                    "route": _route(),
                    "inhibit_rules": _inhibitions(),
                    "receivers": [_receiver(name, cluster, topic_arn, region) for name in _TIMES],
                }
            ),
        }
    )


def _route() -> dict[str, Any]:
    return {
        "receiver": "ticket",
        "group_by": ["cluster", "scope"],
        **_TIMES["ticket"],
        "routes": [
            {"receiver": name, "matchers": [f'severity="{name}"'], **times} for name, times in _TIMES.items()
        ],
    }


def _inhibitions() -> list[dict[str, Any]]:
    """Return which alerts say nothing beside another one."""
    same_node = ["cluster", "node"]
    return [
        # a node that is gone has no other news
        _hides(f'alertname=~"{_DOWN}"', ['severity=~"ticket|info"', 'node=~".+"'], same_node),
        _hides(f'alertname=~"{_DOWN}"', [f'alertname=~"{_SYMPTOMS}"', 'node=~".+"'], same_node),
        _hides(
            'alertname="NodeSilent"', ['alertname=~"ExporterDown|TextfileStale|RemoteWriteBehind"'], same_node
        ),
        # what the driver has said explains what is missing
        _hides(
            'alertname=~"GpuXid(Replace|Reboot|Reset)"',
            ['alertname=~"GpuMissing|GpuMetricsMissing"'],
            same_node,
        ),
        # an alert of its own says more than the check that found the same; a ticket hides no page
        _hides(
            'alertname!="HealthCheckCritical",severity="page",check=~".+"',
            ['alertname="HealthCheckCritical"'],
            ["cluster", "node", "check"],
        ),
        _hides('alertname="LustreStalled"', ['alertname="LustreSlow"'], ["cluster", "fs"]),
        _hides('alertname="LustreFull"', ['alertname=~"LustreFillsUp|LustreNearlyFull"'], ["cluster", "fs"]),
        _hides(
            'alertname="TrainingStalled"',
            ['alertname=~"StragglerNode|StragglerByGpu|GoodputLow|CheckpointTooOld"', 'job_id=~".+"'],
            ["cluster", "job_id"],
        ),
        _hides('alertname="StragglerNode"', ['alertname="StragglerByGpu"'], same_node),
    ]


def _hides(source: str, target: list[str], equal: list[str]) -> dict[str, Any]:
    return {"source_matchers": source.split(","), "target_matchers": target, "equal": equal}


def _receiver(name: Severity, cluster: Cluster, topic_arn: str, region: str) -> dict[str, Any]:
    return {
        "name": name,
        "sns_configs": [
            {
                "topic_arn": topic_arn,
                "sigv4": {"region": region},
                "subject": '{{ template "ultracluster.subject" . }}',
                "message": '{{ template "ultracluster.message" . }}',
                "attributes": {"severity": name, "cluster": cluster.cluster_name},
                "send_resolved": name != "info",
            }
        ],
    }
