"""What collects metrics in a Kubernetes cluster: objects of our own, and the values of dcgm-exporter's chart.

The agent and kube-state-metrics need nothing of a node, and stand in a namespace of the level `restricted`;
what reads the nodes is in `nodes`, what is asked of whom in `scrape`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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
_NOBODY = 65534
_RBAC = "rbac.authorization.k8s.io"
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
    wanted = observability_of(cluster)
    assert wanted
    series = min(SERIES_OF_AN_AGENT, -(-all_series(cluster) // agents(cluster)))
    samples = series * BUFFER_HOURS * 3600 / wanted.scrape_seconds
    return max(2, round(2 * samples * BYTES_OF_A_SAMPLE / 2**30 + 0.5))


def agent(cluster: Cluster, *, remote_write_url: str) -> tuple[Manifest, ...]:
    """Prometheus in agent mode: it scrapes, keeps what it has not written on a bounded volume, and writes."""
    rules = [
        _rule("get list watch", "nodes", "pods"),
        # Kueue asks the Kubernetes API whether the reader of its metrics may
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    objects = [*_account(AGENT, rules)]
    shards = agents(cluster)
    for shard in range(shards):
        text = agent_configuration(cluster, remote_write_url=remote_write_url, shard=shard, shards=shards)
        known = agent_configuration(cluster, remote_write_url=_URL, shard=shard, shards=shards)
        name = f"{AGENT}-{shard}"
        objects += [
            _object("v1", "ConfigMap", name, data={"prometheus.yml": text}),
            _deployment(
                cluster,
                name,
                AGENT,
                account=AGENT,
                containers=[_agent(cluster)],
                volumes=[
                    {"name": "configuration", "configMap": {"name": name}},
                    {"name": "buffer", "emptyDir": {"sizeLimit": f"{buffer_gib(cluster)}Gi"}},
                ],
                annotations={"ultracluster/configuration": hashlib.sha256(known.encode()).hexdigest()},
            ),
        ]
    return tuple(objects)


def state_metrics(cluster: Cluster) -> tuple[Manifest, ...]:
    """kube-state-metrics: only the metrics of the catalogue, and only the rights that these need."""
    names = series_names(STATE_METRICS)
    arguments = [
        f"--port={STATE_PORT}",
        "--telemetry-port=8081",
        "--resources=nodes,pods",
        f"--metric-allowlist={','.join(names)}",
    ]
    probe = {"httpGet": {"path": "/livez", "port": STATE_PORT}, "initialDelaySeconds": 5, "timeoutSeconds": 5}
    made = container(
        cluster,
        STATE_METRICS,
        args=arguments,
        ports=[{"name": "metrics", "containerPort": STATE_PORT, "protocol": "TCP"}],
        livenessProbe=probe,
    )
    return (
        *_account(STATE_METRICS, [_rule("list watch", "nodes", "pods")]),
        _deployment(
            cluster, STATE_METRICS, STATE_METRICS, account=STATE_METRICS, containers=[made], volumes=[]
        ),
    )


def _agent(cluster: Cluster) -> Manifest:
    def probe(path: str, delay: int) -> Manifest:
        return {"httpGet": {"path": path, "port": AGENT_PORT}, "initialDelaySeconds": delay}

    return container(
        cluster,
        "prometheus",
        AGENT,
        args=[
            "--agent",
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.agent.path=/buffer",
            f"--storage.agent.retention.max-time={BUFFER_HOURS}h",
            f"--web.listen-address=:{AGENT_PORT}",
            # the address of a workspace that was replaced reaches the pod without a new one
            "--enable-feature=auto-reload-config",
        ],
        # a network without a way out has only the Region's own endpoint of STS
        env=[{"name": "AWS_STS_REGIONAL_ENDPOINTS", "value": "regional"}],
        ports=[{"name": "metrics", "containerPort": AGENT_PORT, "protocol": "TCP"}],
        readinessProbe=probe("/-/ready", 5),
        livenessProbe=probe("/-/healthy", 60),
        volumeMounts=[
            {"name": "configuration", "mountPath": "/etc/prometheus", "readOnly": True},
            {"name": "buffer", "mountPath": "/buffer"},
        ],
    )


def _deployment(
    cluster: Cluster,
    name: str,
    app: str,
    *,
    account: str,
    containers: list[Manifest],
    volumes: list[Manifest],
    annotations: dict[str, str] | None = None,
) -> Manifest:
    labels = {APP_LABEL: app, "app.kubernetes.io/instance": name}
    metadata: Manifest = {"labels": labels, **({"annotations": annotations} if annotations else {})}
    tolerations = system_tolerations(cluster)
    return _object(
        "apps/v1",
        "Deployment",
        name,
        spec={
            "replicas": 1,
            "selector": {"matchLabels": labels},
            # two at once would write the same samples twice
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": metadata,
                "spec": {
                    "serviceAccountName": account,
                    "enableServiceLinks": False,
                    "priorityClassName": PRIORITY,
                    "nodeSelector": {ROLE_LABEL: "system"},
                    **({"tolerations": tolerations} if tolerations else {}),
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _NOBODY,
                        "runAsGroup": _NOBODY,
                        "fsGroup": _NOBODY,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": containers,
                    **({"volumes": volumes} if volumes else {}),
                },
            },
        },
    )


def _namespace(cluster: Cluster) -> Manifest:
    settings = cluster.kubernetes
    assert settings
    labels = namespace_labels("restricted", settings.kubernetes_version)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": METRICS_NAMESPACE, "labels": labels},
    }


def _policies(cluster: Cluster, *, agent: bool) -> tuple[Manifest, ...]:
    """Nothing gets in but the agent to kube-state-metrics; AWS's collector is no pod that could be named."""
    settings = cluster.kubernetes
    if not agent or settings is None or not settings.network_policies:
        return ()
    let_in = {
        "from": [{"podSelector": {"matchLabels": {APP_LABEL: AGENT}}}],
        "ports": [{"protocol": "TCP", "port": STATE_PORT}],
    }
    return (
        _policy("ultracluster-default-deny", {"podSelector": {}, "policyTypes": ["Ingress"]}),
        _policy(
            "ultracluster-state-metrics",
            {
                "podSelector": {"matchLabels": {APP_LABEL: STATE_METRICS}},
                "policyTypes": ["Ingress"],
                "ingress": [let_in],
            },
        ),
    )


def _policy(name: str, spec: Manifest) -> Manifest:
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, spec=spec)


def _account(name: str, rules: list[Manifest]) -> tuple[Manifest, ...]:
    """A service account that may do this in every namespace."""
    role = f"ultracluster-metrics-{name}"
    return (
        _object("v1", "ServiceAccount", name),
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": METRICS_NAMESPACE}],
        },
    )


def _rule(verbs: str, *resources: str) -> Manifest:
    return {"apiGroups": [""], "resources": list(resources), "verbs": verbs.split()}


def _object(api: str, kind: str, name: str, **more: Any) -> Manifest:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": METRICS_NAMESPACE},
        **more,
    }


__all__: Sequence[str] = [
    "agent",
    "agents",
    "buffer_gib",
    "dcgm_values",
    "metrics_objects",
    "state_metrics",
]
