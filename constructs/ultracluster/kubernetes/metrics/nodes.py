"""What runs on every node to be scraped: node_exporter, our collectors beside it, neuron-monitor.

In `kube-system`, where host paths are allowed. A group's nodes have a DaemonSet of their own, because the
collectors compare what a node has with what its group should have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ultracluster.catalog.metrics_images import metrics_images
from ultracluster.config.nodes import GROUP_LABEL, ROLE_LABEL
from ultracluster.kubernetes.metrics.scrape import NODE_PORT, neuron_groups
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
_COLLECTORS = ("efa", "health", "lustre", "node")
_FOLDER = "/opt/ultracluster/metrics"
_NOBODY = 65534
EXPORTED = (
    *("diskstats", "filefd", "filesystem", "loadavg", "meminfo", "netdev", "netstat", "pressure", "stat"),
    *("textfile", "time", "timex", "uname", "vmstat"),
)
"""Of node_exporter, as on Slurm nodes; without `cpu`, which has eight series for each of 192 processors."""


def priority_class() -> Manifest:
    """Above jobs, so that they push nothing of this away, and without the right to push jobs away."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PRIORITY},
        "value": 1_000_000,
        "preemptionPolicy": "Never",
        "description": "What collects metrics: not evicted for jobs, and evicts none",
    }


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
    wanted = observability_of(cluster)
    assert wanted
    told: dict[str, Any] = {
        "cluster": cluster.environment.cluster_name,
        "environment": cluster.name,
        "orchestrator": cluster.settings.kind,
        "release": cluster.environment.software.release,
        "node_group": group.name,
        "role": group.role,
        "slurm": False,
        "scrape_seconds": wanted.scrape_seconds,
        "max_series_per_node": series_budget(cluster, group),
    }
    # with several types, which one a node has is its own to say
    known = group.type if group.type and not group.further_types else None
    if known:
        accelerator = known.accelerator
        maker = {"NVIDIA": "nvidia", "AWS": "neuron"}.get(accelerator.manufacturer) if accelerator else "none"
        told["instance_type"] = known.name
        told |= {"accelerator": maker} if maker else {}
        told |= {"accelerators": accelerator.count} if accelerator else {"accelerators": 0}
        told["efa_interfaces"] = known.least_efa_interfaces
    if lustres := cluster.lustres_of(group.name):
        told["lustre_efa"] = any(one.efa for one in lustres.values())
    if price := usd_per_hour(cluster, group):
        told["usd_per_hour"] = round(price, 6)
    return told


def container(cluster: Cluster, image: str, name: str | None = None, **more: Any) -> Manifest:
    """A container of a pinned image with the requests that the catalogue counts."""
    row = metrics_images()[image]
    settings = cluster.kubernetes
    assert settings
    return {
        "name": name or image,
        "image": row.reference(settings.chart_repository),
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": f"{row.cpu}m", "memory": f"{row.memory}Mi"},
            "limits": {"memory": f"{row.limit}Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        **more,
    }


def _daemon_set(
    cluster: Cluster, group: Group | None, scripts: Manifest, settings: Manifest | None = None
) -> Manifest:
    name = f"{APP}-{group.name}" if group else APP
    labels = {"app.kubernetes.io/name": APP, "app.kubernetes.io/instance": name}
    containers = [_node_exporter(cluster)]
    volumes: list[Manifest] = [
        {"name": "root", "hostPath": {"path": "/"}},
        {"name": "metrics", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
    ]
    annotations: dict[str, str] = {}
    if group and settings:
        containers.append(_collectors(cluster))
        sources = [{"configMap": {"name": one["metadata"]["name"]}} for one in (scripts, settings)]
        volumes.append({"name": "collectors", "projected": {"sources": sources, "defaultMode": 0o444}})
        # what a pod reads once, at its start: another content, another pod
        annotations["ultracluster/content"] = _digest({**scripts["data"], **settings["data"]})
        if "neuron-monitor" in node_images(cluster, group):
            containers.append(_neuron_monitor(cluster))
    there = {"key": GROUP_LABEL, "operator": "In", "values": [group.name]} if group else _NOT_COMPUTE
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})},
                "spec": {
                    # by the node's address: EFA's counters are those of the node's own network namespace
                    "hostNetwork": True,
                    "dnsPolicy": "Default",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "priorityClassName": PRIORITY,
                    "tolerations": [dict(one) for one in EVERYWHERE],
                    "terminationGracePeriodSeconds": 5,
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchExpressions": [there]}]
                            }
                        }
                    },
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": containers,
                    "volumes": volumes,
                },
            },
        },
    }


_NO_DISKS = (
    *("autofs", "binfmt_misc", "bpf", "cgroup2?", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
    *("fusectl", "hugetlbfs", "lustre", "mqueue", "nfs4?", "nsfs", "overlay", "proc", "pstore", "ramfs"),
    *("rpc_pipefs", "securityfs", "squashfs", "sysfs", "tmpfs", "tracefs"),
)
"""File systems that node_exporter does not ask."""
_NOT_COMPUTE = {"key": ROLE_LABEL, "operator": "NotIn", "values": ["compute"]}


def _node_exporter(cluster: Cluster) -> Manifest:
    probe = {"httpGet": {"path": "/", "port": NODE_PORT}, "periodSeconds": 30, "timeoutSeconds": 5}
    arguments = [
        "--path.procfs=/host/proc",
        "--path.sysfs=/host/sys",
        "--path.rootfs=/host",
        "--web.listen-address=$(HOST_IP):9100",
        "--web.disable-exporter-metrics",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in EXPORTED),
        "--collector.textfile.directory=/metrics",
        # a stalled Lustre would hold up the scrape; each pod brings mounts and an interface of its own
        f"--collector.filesystem.fs-types-exclude=^({'|'.join(_NO_DISKS)})$",
        "--collector.filesystem.mount-points-exclude=^/(dev|proc|run|sys|var/lib/(containerd|kubelet))($|/)",
        "--collector.netdev.device-exclude=^(cali|dummy|eni|lo|veth).*",
        "--collector.diskstats.device-exclude=^(dm-|loop|ram).*",
    ]
    return container(
        cluster,
        "node-exporter",
        args=arguments,
        env=[{"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        ports=[{"name": "metrics", "containerPort": NODE_PORT, "protocol": "TCP"}],
        livenessProbe=probe,
        volumeMounts=[
            {"name": "root", "mountPath": "/host", "readOnly": True, "mountPropagation": "HostToContainer"},
            {"name": "metrics", "mountPath": "/metrics", "readOnly": True},
        ],
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
        },
    )


def _collectors(cluster: Cluster) -> Manifest:
    """As root, without any of root's capabilities: Lustre's counters belong to it."""
    wanted = observability_of(cluster)
    assert wanted
    return container(
        cluster,
        "python",
        "collectors",
        command=["python3", "-ISB", f"{_FOLDER}/main.py"],
        args=[
            *("--loop", str(wanted.scrape_seconds)),
            *("--only", ",".join(_COLLECTORS)),
            *("--root", "/host"),
            *("--to", "/metrics"),
            # what it keeps between two rounds: node_exporter reads no folders in there
            *("--state", "/metrics/state"),
            *("--settings", f"{_FOLDER}/settings.json"),
        ],
        volumeMounts=[
            {"name": "root", "mountPath": "/host", "readOnly": True, "mountPropagation": "HostToContainer"},
            {"name": "metrics", "mountPath": "/metrics"},
            {"name": "collectors", "mountPath": _FOLDER, "readOnly": True},
        ],
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
        },
    )


def _neuron_monitor(cluster: Cluster) -> Manifest:
    """Our collector in the image that has neuron-monitor: the names are those of Slurm nodes. Privileged, as
    AWS's own manifest has it: it speaks to the driver of all devices."""
    return container(
        cluster,
        "neuron-monitor",
        command=["python3", "-ISB", f"{_FOLDER}/neuron.py"],
        args=["--to", "/metrics", "--settings", f"{_FOLDER}/settings.json"],
        env=[
            {"name": "GOMEMLIMIT", "value": "160MiB"},
            {"name": "PATH", "value": "/opt/aws/neuron/bin:/opt/bin:/usr/local/bin:/usr/bin:/bin"},
        ],
        volumeMounts=[
            {"name": "metrics", "mountPath": "/metrics"},
            {"name": "collectors", "mountPath": _FOLDER, "readOnly": True},
        ],
        securityContext={"privileged": True},
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
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": dict(data),
    }


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
