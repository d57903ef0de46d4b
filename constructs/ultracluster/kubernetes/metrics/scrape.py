"""What Prometheus asks of a Kubernetes cluster: which targets, which labels, how much of each.

One text for the agent in the cluster, one for the collector that AWS runs. Prometheus documentation,
"Configuration", `kubernetes_sd_config` and `relabel_config`; Amazon Managed Service for Prometheus User
Guide, "Set up managed collectors for Amazon EKS".

Exporters of a node are looked for by the node, not by their pod: a node without its exporter then is a target
that is down, and what is known of the node, its instance among it, is known of each series. Labels are the
same as on Slurm nodes: `cluster`, `node`, `node_group`, `instance_type`, `instance_id`, `rack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultracluster.catalog.metrics import metrics, series_names
from ultracluster.kubernetes.isolation import METRICS_NAMESPACE, job_namespace
from ultracluster.kubernetes.labels import GPU_LABEL
from ultracluster.kubernetes.metrics.relabel import (
    Job,
    Step,
    caps,
    copied,
    is_cluster,
    kept,
    node_label,
    of_node_labels,
)
from ultracluster.kubernetes.yaml_text import yaml_text
from ultracluster.model import Cluster
from ultracluster.model.inference import serves
from ultracluster.model.observability import assumed_role, observability_of, series_budget, workspace_region
from ultracluster.model.team_shares import scheduler_of

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
            job["relabel_configs"] += [
                {
                    "source_labels": ["__address__"],
                    "modulus": shards,
                    "target_label": "__tmp_shard",
                    "action": "hashmod",
                },
                {"source_labels": ["__tmp_shard"], "regex": str(shard), "action": "keep"},
            ]
    if shard == 0:
        jobs.append(_state(cluster))
        if scheduler_of(cluster) == "kueue":
            jobs.append(_kueue(cluster))
    jobs.append(_own(cluster, shard))
    # 1,000 samples are far below the megabyte that a request may have; 20 of them at once are 20,000 samples
    # in a tenth of a second, and a throttled one is kept
    queue = {
        "capacity": 10_000,
        "max_shards": 20,
        "max_samples_per_send": 1_000,
        "min_backoff": "1s",
        "max_backoff": "30s",
        "retry_on_http_429": True,
    }
    signed = {"region": workspace_region(cluster)}
    if role := assumed_role(cluster):
        signed["role_arn"] = role
    write = {"url": remote_write_url, "sigv4": signed, "queue_config": queue}
    every = _seconds(cluster)
    return yaml_text({"global": _global(every), "scrape_configs": jobs, "remote_write": [write]})


def scraper_configuration(cluster: Cluster) -> str:
    """Configuration of a managed collector, as YAML; where it writes is not a part of it."""
    jobs = [*_node_jobs(cluster), _state(cluster)]
    if training_is_scraped(cluster):
        jobs += _training(cluster, attach=False)
    every = max(LEAST_MANAGED_SECONDS, _seconds(cluster))
    return yaml_text({"global": _global(every), "scrape_configs": jobs})


def training_is_scraped(cluster: Cluster) -> bool:
    """Whether what collects is let in to pods of jobs: AWS's collector is no pod that a policy can name."""
    wanted, settings = observability_of(cluster), cluster.kubernetes
    return bool(wanted and settings and (wanted.collector == "agent" or not settings.network_policies))


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
        if any(known.accelerator and known.accelerator.manufacturer == maker for known in group.known_types)
    ]


def _of_nodes(cluster: Cluster, name: str, port: int, *, only: tuple[str, str] | None = None) -> Job:
    steps: list[Step] = []
    if only:
        steps.append({"source_labels": [node_label(only[0])], "regex": only[1], "action": "keep"})
    steps += [
        {
            "source_labels": ["__meta_kubernetes_node_address_InternalIP"],
            "regex": "(.+)",
            "replacement": f"$1:{port}",
            "target_label": "__address__",
        },
        copied("__meta_kubernetes_node_name", "instance"),
        copied("__meta_kubernetes_node_name", "node"),
        # HyperPod's own id ends with the instance's, and so does the name of its nodes
        *(
            copied(f"__meta_kubernetes_node_{key}", "instance_id", regex=".*(i-[0-9a-f]{8,17})")
            for key in ("name", "provider_id")
        ),
        *of_node_labels(),
        is_cluster(cluster),
    ]
    return {
        "job_name": name,
        "kubernetes_sd_configs": [{"role": "node"}],
        **caps(series_budget(cluster)),
        "relabel_configs": steps,
        "metric_relabel_configs": [
            kept(series_names(name)),
            # of the pod or the node, by version of dcgm-exporter: `node` says it for all
            {"regex": "Hostname|hostname", "action": "labeldrop"},
        ],
    }


def _training(cluster: Cluster, *, attach: bool) -> list[Job]:
    """Pods of jobs that ask for it by the usual annotations: only what a training script says of itself.

    Each namespace has limits of its own: where there are too many targets Prometheus takes in none of them,
    and a team must not be able to do that to another.
    """
    jobs = [_training_in(cluster, namespace, attach=attach) for namespace in job_namespaces(cluster)]
    if not serves(cluster):
        return jobs
    servers = [_serving(job) for job in jobs]
    for job in jobs:  # a model server is asked once
        job["relabel_configs"].insert(0, {"source_labels": [_SERVES], "regex": ".+", "action": "drop"})
    return jobs + servers


def _serving(training: Job) -> Job:
    """Model servers instead of training scripts: the same pods' rules, other names of metrics."""
    steps = [
        {**step, "replacement": "serving"} if step.get("target_label") == "job" else step
        for step in training["relabel_configs"]
    ]
    return {
        **training,
        "job_name": training["job_name"].replace("training", "serving", 1),
        "relabel_configs": [{"source_labels": [_SERVES], "regex": ".+", "action": "keep"}, *steps],
        "metric_relabel_configs": [kept(series_names("serving"))],
    }


def _training_in(cluster: Cluster, namespace: str, *, attach: bool) -> Job:
    annotation = "__meta_kubernetes_pod_annotation_prometheus_io_"
    found: dict[str, Any] = {"role": "pod", "namespaces": {"names": [namespace]}}
    if attach:
        found["attach_metadata"] = {"node": True}
    return {
        "job_name": f"training-{namespace}",
        "kubernetes_sd_configs": [found],
        **caps(SERIES_OF_A_POD),
        "target_limit": _PODS_OF_A_NODE * max(1, _compute_nodes(cluster)),
        "relabel_configs": [
            {"source_labels": [f"{annotation}scrape"], "regex": "true", "action": "keep"},
            {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
            {"source_labels": [f"{annotation}port"], "regex": "[0-9]{1,5}", "action": "keep"},
            {
                # of its own address: nobody's annotation sends us elsewhere
                "source_labels": ["__meta_kubernetes_pod_ip", f"{annotation}port"],
                "regex": "(.+);([0-9]{1,5})",
                "replacement": "$1:$2",
                "target_label": "__address__",
            },
            copied(f"{annotation}path", "__metrics_path__", regex="(/[A-Za-z0-9_./-]*)"),
            {"target_label": "job", "replacement": "training"},
            copied("__meta_kubernetes_namespace", "namespace"),
            copied("__meta_kubernetes_pod_name", "pod"),
            copied("__meta_kubernetes_pod_name", "instance"),
            copied("__meta_kubernetes_pod_node_name", "node"),
            copied("__meta_kubernetes_pod_node_name", "instance_id", regex=".*(i-[0-9a-f]{8,17})"),
            *of_node_labels(),
            is_cluster(cluster),
        ],
        "metric_relabel_configs": [kept(_training_names())],
    }


def _state(cluster: Cluster) -> Job:
    """kube-state-metrics: its series name nodes and pods themselves."""
    return {
        "job_name": STATE_METRICS,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [METRICS_NAMESPACE]}}],
        **caps(max(20_000, 100 * _compute_nodes(cluster))),
        "relabel_configs": [
            {
                "source_labels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"],
                "regex": STATE_METRICS,
                "action": "keep",
            },
            copied("__meta_kubernetes_pod_ip", "__address__", replacement=f"$1:{STATE_PORT}"),
            copied("__meta_kubernetes_pod_name", "instance"),
            is_cluster(cluster),
        ],
        "metric_relabel_configs": [kept(series_names(STATE_METRICS))],
    }


def _training_names() -> list[str]:
    """On Slurm nodes a collector hands them on, under Kubernetes the training script itself."""
    ours = (one for one in metrics().values() if one.exporter == "collectors/training")
    return sorted(name for one in ours for name in one.series_names)


def _kueue(cluster: Cluster) -> Job:
    """Kueue's queues. It signs its own certificate, and lets in whom the Kubernetes API lets read metrics."""
    return {
        "job_name": "kueue",
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {"credentials_file": "/var/run/secrets/kubernetes.io/serviceaccount/token"},
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [KUEUE_NAMESPACE]}}],
        **caps(20_000),
        "relabel_configs": [
            {
                "source_labels": ["__meta_kubernetes_pod_label_control_plane"],
                "regex": "controller-manager",
                "action": "keep",
            },
            copied("__meta_kubernetes_pod_ip", "__address__", replacement=f"$1:{KUEUE_PORT}"),
            copied("__meta_kubernetes_pod_name", "instance"),
            is_cluster(cluster),
        ],
        "metric_relabel_configs": [kept(series_names("kueue"))],
    }


def _own(cluster: Cluster, shard: int) -> Job:
    """The agent's own: what it has not written yet, and what was refused.

    Each has a name of its own: of two that write one series the workspace refuses the second, and with it all
    that is in the same request.
    """
    return {
        "job_name": "agent",
        "static_configs": [{"targets": [f"127.0.0.1:{AGENT_PORT}"]}],
        **caps(5_000),
        "relabel_configs": [
            {"target_label": "instance", "replacement": f"agent-{shard}"},
            is_cluster(cluster),
        ],
        "metric_relabel_configs": [kept(series_names("agent"))],
    }


def _global(every: int) -> dict[str, Any]:
    return {"scrape_interval": f"{every}s", "scrape_timeout": "10s"}


def _seconds(cluster: Cluster) -> int:
    wanted = observability_of(cluster)
    assert wanted, "nothing is scraped without observability"
    return wanted.scrape_seconds


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
