"""What runs on every node to be scraped: node_exporter, our collectors beside it, neuron-monitor.

In `kube-system`, where host paths are allowed. A group's nodes have a DaemonSet of their own, because the
collectors compare what a node has with what its group should have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ultracluster.catalog.metrics_images import metrics_images
from ultracluster.config.nodes import GROUP_LABEL, ROLE_LABEL
from ultracluster.kubernetes.metrics.scrape import NODE_PORT, neuron_groups
from ultracluster.kubernetes.yaml_template import filled
from ultracluster.model import Cluster, Group
from ultracluster.model.node_price import usd_per_hour
from ultracluster.model.observability import observability_of, series_budget
from ultracluster.scripts_folder import scripts_folder

Manifest = dict[str, Any]

NAMESPACE = "kube-system"
PRIORITY = "ultracluster-metrics"
EVERYWHERE: list[dict[str, str]] = [{"operator": "Exists"}]
"""Also on nodes with taints of accelerators, and on those that are being repaired: then it matters most."""
APP = "ultracluster-node-metrics"
_FILE = Path(__file__).with_name("nodes.yaml")
EXPORTED = (
    *("diskstats", "filefd", "filesystem", "loadavg", "meminfo", "netdev", "netstat", "pressure", "stat"),
    *("textfile", "time", "timex", "uname", "vmstat"),
)
"""Of node_exporter, as on Slurm nodes; without `cpu`, which has eight series for each of 192 processors."""


def priority_class() -> Manifest:
    """Above jobs, so that they push nothing of this away, and without the right to push jobs away."""
    return filled(_FILE, "priority_class", priority=PRIORITY)


def node_objects(cluster: Cluster) -> Iterator[tuple[Manifest, ...]]:
    """Objects by group: what they have in common first, then system nodes, then each compute group."""
    scripts = _scripts()
    yield (priority_class(), scripts)
    yield (_daemon_set(cluster, None, scripts),)
    for group in cluster.with_role("compute").values():
        settings = _settings(cluster, group)
        yield (settings, _daemon_set(cluster, group, scripts, settings))


def node_images(cluster: Cluster, group: Group | None) -> tuple[str, ...]:
    """Names of the images that run on a node of a group; None stands for system nodes."""
    if group is None:
        return ("node-exporter",)
    neuron = ("neuron-monitor",) if group.name in neuron_groups(cluster) else ()
    return ("node-exporter", "python", *neuron)


def collector_settings(cluster: Cluster, group: Group) -> dict[str, Any]:
    """What the collectors are told of a group's nodes; a key is absent where it is not known."""
    settings = observability_of(cluster)
    assert settings
    values: dict[str, Any] = {
        "cluster": cluster.environment.cluster_name,
        "environment": cluster.name,
        "orchestrator": cluster.settings.kind,
        "release": cluster.environment.software.release,
        "node_group": group.name,
        "role": group.role,
        "slurm": False,
        "scrape_seconds": settings.scrape_seconds,
        "max_series_per_node": series_budget(cluster, group),
    }
    # with several types, which one a node has is its own to say
    instance_type = group.type if group.type and not group.further_types else None
    if instance_type:
        accelerator = instance_type.accelerator
        maker = {"NVIDIA": "nvidia", "AWS": "neuron"}.get(accelerator.manufacturer) if accelerator else "none"
        values["instance_type"] = instance_type.name
        values |= {"accelerator": maker} if maker else {}
        values |= {"accelerators": accelerator.count} if accelerator else {"accelerators": 0}
        values["efa_interfaces"] = instance_type.least_efa_interfaces
    if lustres := cluster.lustres_of(group.name):
        values["lustre_efa"] = any(lustre.efa for lustre in lustres.values())
    if price := usd_per_hour(cluster, group):
        values["usd_per_hour"] = round(price, 6)
    return values


def container(cluster: Cluster, image: str, name: str | None = None) -> Manifest:
    """A container of a pinned image with the requests that the catalogue counts."""
    row = metrics_images()[image]
    settings = cluster.kubernetes
    assert settings
    reference = row.reference(settings.chart_repository)
    return filled(
        _FILE,
        "container",
        name=name or image,
        image=reference,
        cpu=row.cpu,
        memory=row.memory,
        limit=row.limit,
    )


def _daemon_set(
    cluster: Cluster, group: Group | None, scripts: Manifest, settings: Manifest | None = None
) -> Manifest:
    name = f"{APP}-{group.name}" if group else APP
    exported = [f"--collector.{collector}" for collector in EXPORTED]
    exporter = container(cluster, "node-exporter")
    containers = [filled(_FILE, "node_exporter", container=exporter, exported=exported, port=NODE_PORT)]
    volumes: list[Manifest] = []
    annotations = None
    if group and settings:
        collectors = observability_of(cluster)
        assert collectors
        python, seconds = container(cluster, "python", "collectors"), str(collectors.scrape_seconds)
        containers.append(filled(_FILE, "collectors", container=python, seconds=seconds))
        sources = [collector["metadata"]["name"] for collector in (scripts, settings)]
        volumes = filled(_FILE, "collectors_volume", scripts=sources[0], settings=sources[1])
        # what a pod reads once, at its start: another content, another pod
        annotations = {"ultracluster/content": _digest({**scripts["data"], **settings["data"]})}
        if "neuron-monitor" in node_images(cluster, group):
            monitor = container(cluster, "neuron-monitor")
            containers.append(filled(_FILE, "neuron_monitor", container=monitor))
    label, operator, value = (GROUP_LABEL, "In", group.name) if group else (ROLE_LABEL, "NotIn", "compute")
    return filled(
        _FILE,
        "daemon_set",
        name=name,
        namespace=NAMESPACE,
        labels={"app.kubernetes.io/name": APP, "app.kubernetes.io/instance": name},
        annotations=annotations,
        priority=PRIORITY,
        everywhere=EVERYWHERE,
        label=label,
        operator=operator,
        value=value,
        containers=containers,
        volumes=volumes,
    )


def _scripts() -> Manifest:
    folder = scripts_folder() / "metrics"
    files = [*sorted(folder.glob("*.py")), folder / "neuron_monitor.json"]
    data = {file.name: file.read_text(encoding="utf-8") for file in files}
    return _config_map("ultracluster-collectors", data)


def _settings(cluster: Cluster, group: Group) -> Manifest:
    text = json.dumps(collector_settings(cluster, group), indent=2, sort_keys=True) + "\n"
    return _config_map(f"ultracluster-collectors-{group.name}", {"settings.json": text})


def _config_map(name: str, data: Mapping[str, str]) -> Manifest:
    return filled(_FILE, "config_map", name=name, namespace=NAMESPACE, data=dict(data))


def _digest(data: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


__all__: Sequence[str] = [
    "APP",
    "EVERYWHERE",
    "NAMESPACE",
    "PRIORITY",
    "collector_settings",
    "container",
    "node_images",
    "node_objects",
    "priority_class",
]
