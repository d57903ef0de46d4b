"""Rules, the alert manager and boards as files, for a Prometheus and a Grafana that are not ours."""

from __future__ import annotations

import json

from ultracluster.metrics.boards import boards
from ultracluster.metrics.routing import alert_manager
from ultracluster.metrics.rules import rule_groups
from ultracluster.model.cluster import Cluster
from ultracluster.model.observability import collects, observability_of

TOPIC = "arn:aws:sns:REGION:ACCOUNT:TOPIC"
"""In the place of the topic that a deploy makes: the file is to be completed."""


def observability_files(cluster: Cluster, *, runbooks: str) -> dict[str, str]:
    """Texts by their path; none where no metrics of ours are collected."""
    wanted = observability_of(cluster)
    if wanted is None or not collects(cluster):
        return {}
    topic = wanted.alerts.topic_arn or TOPIC
    files = {f"rules/{name}.yaml": text for name, text in rule_groups(cluster, runbooks=runbooks).items()}
    files["alertmanager.yaml"] = alert_manager(cluster, topic_arn=topic, region=cluster.region)
    for name, board in boards(cluster, runbooks=runbooks).items():
        files[f"dashboards/{name}.json"] = json.dumps(board, indent=1, ensure_ascii=False) + "\n"
    return files
