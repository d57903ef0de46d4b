"""What collects metrics in a Kubernetes cluster: objects of our own, and the values of dcgm-exporter's chart.

The agent and kube-state-metrics need nothing of a node, and stand in a namespace of the level `restricted`;
what reads the nodes is in `nodes`, what is asked of whom in `scrape`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ultracluster.catalog.metrics import series_names
from ultracluster.config.nodes import ROLE_LABEL
from ultracluster.kubernetes.isolation import AGENT, APP_LABEL, METRICS_NAMESPACE
from ultracluster.kubernetes.metrics.nodes import PRIORITY, container, node_objects
from ultracluster.kubernetes.metrics.scrape import (
    AGENT_PORT,
    STATE_METRICS,
    STATE_PORT,
    agent_configuration,
)
from ultracluster.kubernetes.pod_security import namespace_labels
from ultracluster.kubernetes.tolerations import system_tolerations
from ultracluster.kubernetes.yaml_template import filled
from ultracluster.model import Cluster
from ultracluster.model.metric_series import all_series
from ultracluster.model.observability import observability_of
from ultracluster.scripts_folder import scripts_folder

Manifest = dict[str, Any]

SERIES_OF_AN_AGENT = 500_000
"""What one agent holds in the memory that it requests."""
BYTES_OF_A_SAMPLE = 8
"""In the write-ahead log, compressed; measured at 2 to 6 for counters that move."""
BUFFER_HOURS = 2
"""That the workspace may be away before samples are lost."""
_FILE = Path(__file__).with_name("objects.yaml")
_URL = "https://workspace.invalid/"
"""Stands for the workspace in what tells one configuration from another: its address is known at deploy."""


def metrics_objects(cluster: Cluster, *, remote_write_url: str | None) -> tuple[tuple[Manifest, ...], ...]:
    """Objects in the order in which they are applied, in parts that depend on those before them.

    Args:
        cluster: what it is worked out to be, with observability of ours.
        remote_write_url: of the workspace, or a token; None where AWS's collector scrapes.
    """
    common, *groups = node_objects(cluster)
    shared = (*common, _namespace(cluster), *_policies(cluster, agent=remote_write_url is not None))
    parts = [shared, *groups, state_metrics(cluster)]
    if remote_write_url is not None:
        parts.append(agent(cluster, remote_write_url=remote_write_url))
    return tuple(parts)


def dcgm_values() -> dict[str, Any]:
    """Values of dcgm-exporter's chart where its metrics are collected: our fields, on the node's own address,
    with a priority before which no job has to go."""
    fields = (scripts_folder() / "metrics" / "dcgm_counters.csv").read_text(encoding="utf-8")
    return {
        "customMetrics": fields,
        "hostNetwork": True,
        "priorityClassName": PRIORITY,
        "service": {"enable": False},
    }


def agents(cluster: Cluster) -> int:
    """Among how many agents the targets are divided."""
    return max(1, -(-all_series(cluster) // SERIES_OF_AN_AGENT))


def buffer_gib(cluster: Cluster) -> int:
    """Of the volume of each agent, in GiB: what it has not written yet, for `BUFFER_HOURS`, twice, because
    the log is cut in halves."""
    settings = observability_of(cluster)
    assert settings
    series = min(SERIES_OF_AN_AGENT, -(-all_series(cluster) // agents(cluster)))
    samples = series * BUFFER_HOURS * 3600 / settings.scrape_seconds
    return max(2, round(2 * samples * BYTES_OF_A_SAMPLE / 2**30 + 0.5))


def agent(cluster: Cluster, *, remote_write_url: str) -> tuple[Manifest, ...]:
    """Prometheus in agent mode: it scrapes, keeps what it has not written on a bounded volume, and writes."""
    objects: list[Manifest] = [*_account(AGENT, "agent_rules")]
    shards = agents(cluster)
    for shard in range(shards):
        text = agent_configuration(cluster, remote_write_url=remote_write_url, shard=shard, shards=shards)
        template = re.sub(f'"?{re.escape(remote_write_url)}"?', _URL, text)
        name = f"{AGENT}-{shard}"
        prometheus = container(cluster, "prometheus", AGENT)
        objects += [
            _filled("configuration", name=name, text=text),
            _deployment(
                cluster,
                name,
                AGENT,
                _filled("agent", container=prometheus, hours=BUFFER_HOURS, port=AGENT_PORT),
                volumes=_filled("agent_volumes", name=name, buffer=buffer_gib(cluster)),
                annotations={"ultracluster/configuration": hashlib.sha256(template.encode()).hexdigest()},
            ),
        ]
    return tuple(objects)


def state_metrics(cluster: Cluster) -> tuple[Manifest, ...]:
    """kube-state-metrics: only the metrics of the catalogue, and only the rights that these need."""
    plain, names = container(cluster, STATE_METRICS), ",".join(series_names(STATE_METRICS))
    pod = _filled("state_metrics", container=plain, port=STATE_PORT, names=names)
    return (
        *_account(STATE_METRICS, "state_rules"),
        _deployment(cluster, STATE_METRICS, STATE_METRICS, pod),
    )


def _deployment(
    cluster: Cluster,
    name: str,
    app: str,
    container: Manifest,
    *,
    volumes: list[Manifest] | None = None,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    return _filled(
        "deployment",
        name=name,
        labels={APP_LABEL: app, "app.kubernetes.io/instance": name},
        annotations=annotations,
        account=app,
        priority=PRIORITY,
        node_selector={ROLE_LABEL: "system"},
        tolerations=system_tolerations(cluster) or None,
        container=container,
        volumes=volumes,
    )


def _namespace(cluster: Cluster) -> Manifest:
    settings = cluster.kubernetes
    assert settings
    return _filled("namespace", labels=namespace_labels("restricted", settings.kubernetes_version))


def _policies(cluster: Cluster, *, agent: bool) -> tuple[Manifest, ...]:
    """Nothing gets in but the agent to kube-state-metrics; AWS's collector is no pod that could be named."""
    settings = cluster.kubernetes
    if not agent or settings is None or not settings.network_policies:
        return ()
    state, reader = {APP_LABEL: STATE_METRICS}, {APP_LABEL: AGENT}
    return tuple(_filled("policies", state=state, agent=reader, port=STATE_PORT))


def _account(name: str, rules: str) -> tuple[Manifest, ...]:
    """A service account that may do this in every namespace."""
    return tuple(_filled("account", name=name, rules=_filled(rules)))


def _filled(template: str, **values: Any) -> Any:
    return filled(_FILE, template, namespace=METRICS_NAMESPACE, **values)


__all__: Sequence[str] = [
    "agent",
    "agents",
    "buffer_gib",
    "dcgm_values",
    "metrics_objects",
    "state_metrics",
]
