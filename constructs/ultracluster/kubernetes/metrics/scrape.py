"""What Prometheus asks of a Kubernetes cluster: which targets, which labels, how much of each.

One text for the agent in the cluster, one for the collector that AWS runs. Prometheus documentation,
"Configuration", `kubernetes_sd_config` and `relabel_config`; Amazon Managed Service for Prometheus User
Guide, "Set up managed collectors for Amazon EKS".

Exporters of a node are looked for by the node, not by their pod: a node without its exporter then is a target
that is down, and what is known of the node, its instance among it, is known of each series. Labels are the
same as on Slurm nodes: `cluster`, `node`, `node_group`, `instance_type`, `instance_id`, `rack`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ultracluster.catalog.metrics import metrics, series_names
from ultracluster.config.nodes import GROUP_LABEL
from ultracluster.kubernetes.isolation import METRICS_NAMESPACE, job_namespace
from ultracluster.kubernetes.labels import GPU_LABEL
from ultracluster.kubernetes.topology import LAYERS, ULTRASERVER
from ultracluster.kubernetes.yaml_template import filled
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.inference import serves
from ultracluster.model.observability import assumed_role, observability_of, series_budget, workspace_region
from ultracluster.model.team_shares import scheduler_of

Job = dict[str, Any]
Step = dict[str, Any]

_FILE = Path(__file__).with_name("scrape.yaml")
STATE_METRICS = "kube-state-metrics"
NODE_PORT, DCGM_PORT, STATE_PORT, AGENT_PORT, KUEUE_PORT = 9100, 9400, 8080, 9095, 8443
KUEUE_NAMESPACE = "kueue-system"
"""Of the chart (`catalog/charts.json`), and of HyperPod's task governance."""
LEAST_MANAGED_SECONDS = 30
"""Between two scrapes of a managed collector (User Guide, same page)."""
SERIES_OF_A_POD = 1_000
"""Of a training pod; one of eight ranks has about 150."""
_PODS_OF_A_NODE = 8
_SERVES = "__meta_kubernetes_pod_annotation_ultracluster_serves"
"""Annotation `SERVES`, as Prometheus names it."""


def agent_configuration(cluster: Cluster, *, remote_write_url: str, shard: int = 0, shards: int = 1) -> str:
    """Configuration of a Prometheus in agent mode, as YAML.

    Args:
        cluster: what it is worked out to be.
        remote_write_url: of the workspace; a token is left as it is.
        shard: which part of the targets it takes, from 0.
        shards: parts that there are.
    """
    jobs = [*_node_jobs(cluster), *_training(cluster, attach=True)]
    if shards > 1:
        for job in jobs:
            job["relabel_configs"] += filled(_FILE, "shard", shard=str(shard), shards=shards)
    if shard == 0:
        jobs.append(_state(cluster))
        if scheduler_of(cluster) == "kueue":
            jobs.append(_kueue(cluster))
    jobs.append(_job(cluster, "own", 5_000, _kept(series_names("agent")), port=AGENT_PORT, shard=shard))
    return yaml_text(
        filled(
            _FILE,
            "agent",
            seconds=_seconds(cluster),
            jobs=jobs,
            remote_write_url=remote_write_url,
            region=workspace_region(cluster),
            role=assumed_role(cluster) or None,
        )
    )


def scraper_configuration(cluster: Cluster) -> str:
    """Configuration of a managed collector, as YAML; where it writes is not a part of it."""
    jobs = [*_node_jobs(cluster), _state(cluster)]
    if training_is_scraped(cluster):
        jobs += _training(cluster, attach=False)
    every = max(LEAST_MANAGED_SECONDS, _seconds(cluster))
    return yaml_text(filled(_FILE, "collector", seconds=every, jobs=jobs))


def training_is_scraped(cluster: Cluster) -> bool:
    """Whether what collects is let in to pods of jobs: AWS's collector is no pod that a policy can name."""
    observability, kubernetes = observability_of(cluster), cluster.kubernetes
    return bool(
        observability
        and kubernetes
        and (observability.collector == "agent" or not kubernetes.network_policies)
    )


def job_namespaces(cluster: Cluster) -> list[str]:
    """`default`, and those of teams."""
    return sorted({job_namespace(cluster, team).name for team in (None, *cluster.environment.teams)})


def _node_jobs(cluster: Cluster) -> list[Job]:
    """The exporters of nodes; no job for a device that no group has."""
    jobs = [_of_nodes(cluster, "node", NODE_PORT)]
    if nvidia_groups(cluster):
        jobs.append(_of_nodes(cluster, "dcgm", DCGM_PORT, only=(GPU_LABEL, "true")))
    return jobs


def nvidia_groups(cluster: Cluster) -> list[str]:
    """Compute groups with NVIDIA GPUs; none where another makes them resources: there is no dcgm-exporter."""
    settings = cluster.kubernetes
    return _groups_of(cluster, "NVIDIA") if settings and settings.gpu_plugin != "none" else []


def neuron_groups(cluster: Cluster) -> list[str]:
    """Compute groups with Trainium or Inferentia."""
    return _groups_of(cluster, "AWS")


def _groups_of(cluster: Cluster, maker: str) -> list[str]:
    return [
        name
        for name, group in cluster.with_role("compute").items()
        if any(
            instance_type.accelerator and instance_type.accelerator.manufacturer == maker
            for instance_type in group.known_types
        )
    ]


def _of_nodes(cluster: Cluster, name: str, port: int, *, only: tuple[str, str] | None = None) -> Job:
    steps = [{"source_labels": [_node_label(only[0])], "regex": only[1], "action": "keep"}] if only else []
    kept = _kept(series_names(name))
    return _job(cluster, "nodes", series_budget(cluster), kept, name=name, port=port, only=steps)


def _training(cluster: Cluster, *, attach: bool) -> list[Job]:
    """Pods of jobs that ask for it by the usual annotations: only what a training script says of itself.

    Each namespace has limits of its own: where there are too many targets Prometheus takes in none of them,
    and a team must not be able to do that to another. Model servers have the same rules, and other names of
    metrics; each is asked once.
    """
    jobs: dict[str, tuple[str, Sequence[str]]] = {"training": ("drop", _training_names())}
    if serves(cluster):
        jobs["serving"] = ("keep", series_names("serving"))
    return [
        _job(
            cluster,
            "training",
            SERIES_OF_A_POD,
            _kept(names),
            job=job,
            namespace=namespace,
            attach={"node": True} if attach else None,
            pods=_PODS_OF_A_NODE * max(1, _compute_nodes(cluster)),
            servers=[{"source_labels": [_SERVES], "regex": ".+", "action": action}] * (len(jobs) > 1),
        )
        for job, (action, names) in jobs.items()
        for namespace in job_namespaces(cluster)
    ]


def _state(cluster: Cluster) -> Job:
    series = max(20_000, 100 * _compute_nodes(cluster))
    pods = _pods(
        cluster, STATE_METRICS, series, METRICS_NAMESPACE, STATE_PORT, app_kubernetes_io_name=STATE_METRICS
    )
    return filled(_FILE, "state", pods=pods)


def _kueue(cluster: Cluster) -> Job:
    pods = _pods(cluster, "kueue", 20_000, KUEUE_NAMESPACE, KUEUE_PORT, control_plane="controller-manager")
    return filled(_FILE, "kueue", pods=pods)


def _pods(cluster: Cluster, name: str, series: int, namespace: str, port: int, **labels: str) -> Job:
    ((label, value),) = labels.items()
    kept = _kept(series_names(name))
    return _job(cluster, "pods", series, kept, namespace=namespace, port=port, label=label, value=value)


def _job(cluster: Cluster, template: str, series: int, kept: Step, **values: Any) -> Job:
    return filled(
        _FILE,
        template,
        limits=filled(_FILE, "limits", series=series),
        cluster=cluster.environment.cluster_name,
        node_labels=_of_node_labels(),
        kept=kept,
        **values,
    )


def _training_names() -> list[str]:
    """On Slurm nodes a collector hands them on, under Kubernetes the training script itself."""
    ours = (row for row in metrics().values() if row.exporter == "collectors/training")
    return [name for metric in ours for name in metric.series_names]


def _of_node_labels() -> list[Step]:
    """What the node's own labels say. The last place that a node has in the network is its rack."""
    rack = [*LAYERS.values(), "topology.k8s.aws/network-node-layer-4", ULTRASERVER]
    labels = [
        (GROUP_LABEL, "node_group", "(.+)"),
        ("node.kubernetes.io/instance-type", "instance_type", r"(?:ml\.)?(.+)"),
        *((label, "rack", "(.+)") for label in rack[2:]),
    ]
    return [
        {"source_labels": [_node_label(name)], "regex": regex, "replacement": "$1", "target_label": target}
        for name, target, regex in labels
    ]


def _kept(names: Iterable[str]) -> Step:
    return {"source_labels": ["__name__"], "regex": "|".join(sorted(names)), "action": "keep"}


def _node_label(name: str) -> str:
    """Prometheus' name for a label of a node: what is no letter, digit or underscore is an underscore."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return f"__meta_kubernetes_node_label_{plain}"


def _seconds(cluster: Cluster) -> int:
    settings = observability_of(cluster)
    assert settings, "nothing is scraped without observability"
    return settings.scrape_seconds


def _compute_nodes(cluster: Cluster) -> int:
    return sum(group.most_nodes for group in cluster.with_role("compute").values())


__all__: Sequence[str] = [
    "AGENT_PORT",
    "DCGM_PORT",
    "KUEUE_PORT",
    "NODE_PORT",
    "STATE_METRICS",
    "STATE_PORT",
    "agent_configuration",
    "job_namespaces",
    "neuron_groups",
    "nvidia_groups",
    "scraper_configuration",
    "training_is_scraped",
]
